"""Symbolic sizes stay products, so that equal sizes look equal and print as a person would write them."""

from pytorch_to_triton.graph.symbolic_size import ONE, ZERO, SymbolicSize, contiguous_strides, product


def test_text_is_read_as_a_product() -> None:
    for text, size in [
        ("N", SymbolicSize(1, ("N",))),
        ("12", SymbolicSize(12)),
        ("2*H", SymbolicSize(2, ("H",))),
        ("H*2*B", SymbolicSize(2, ("B", "H"))),
        ("N + 1", SymbolicSize(1, ("(N + 1)",))),
        ("2*(N//2)", SymbolicSize(2, ("(N // 2)",))),
    ]:
        assert SymbolicSize.parse(text) == size


def test_the_order_of_factors_does_not_matter() -> None:
    assert (
        SymbolicSize.parse("H*B")
        == SymbolicSize.parse("B*H")
        == SymbolicSize.parse("B") * SymbolicSize.parse("H")
    )


def test_a_size_prints_as_python() -> None:
    for size, text in [
        (ONE, "1"),
        (ZERO, "0"),
        (SymbolicSize(1, ("N",)), "N"),
        (SymbolicSize(2, ("B", "H")), "2 * B * H"),
        (SymbolicSize(7), "7"),
    ]:
        assert str(size) == text


def test_a_product_with_zero_is_plain_zero() -> None:
    assert SymbolicSize.parse("N") * ZERO == ZERO


def test_the_product_of_nothing_is_one() -> None:
    assert product([]).is_one


def test_contiguous_strides_are_row_major() -> None:
    sizes = tuple(SymbolicSize.parse(t) for t in ("B", "S", "2*H"))
    assert [str(s) for s in contiguous_strides(sizes)] == ["2 * H * S", "2 * H", "1"]
