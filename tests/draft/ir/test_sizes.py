"""Sizes are read from Python and written back as Python of the same value."""

import math

import pytest

from pytorch_to_triton.draft.ir.sizes import (
    FloorDiv,
    Mod,
    Size,
    divides,
    equal,
    in_quotients,
    names,
    product,
    size,
    text,
    value,
)

DIMS = {"M": 7, "N": 12, "K": 3}
WRITTEN = (
    "N", "(N + 1)//2", "max(N, M)", "min(N, 5) * K", "N - M", "-M + 2*N", "M*(N - 1)", "N % 5",
    "(M*N + K)//K", "N**2", "((N + 4)//5 + 1)//2", "K*((N - 1)//K)", "int((N + 1)/2.0)",
    "int(0.3 * float(N))", "math.ceil(M / 1.5) * K + 1", "max(1, round(0.7 * float(N + K))) // 2",
)  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN)
def test_a_size_is_worth_what_python_says(written: str) -> None:
    expected = eval(written, {"math": math}, dict(DIMS))
    assert value(size(written), DIMS) == expected
    assert eval(text(size(written)), {"math": math}, dict(DIMS)) == expected
    assert size(text(size(written))) == size(written)


@pytest.mark.parametrize("written", ["N / 2", "f(N)", "N.real", "1.5", "N < 3"])
def test_other_python_is_no_size(written: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        size(written)


def test_what_divides_is_taken_out() -> None:
    n, k = size("N"), size("K")
    assert FloorDiv(n * k, k) == n
    assert FloorDiv(n * k + 1, k) == n + FloorDiv(size(1), k)
    assert Mod(n * k, k) == 0
    assert FloorDiv(size(7), size(2)) == 3
    assert size("(2*N + 1) // 256") == size("N // 128")
    assert size("(2*N + 1) // (2 * (N // 128))") == size("N // (N // 128)")
    assert size("(4*N - 6*K + 5) // 2") == size("2*N - 3*K + 2")


def test_sizes_are_compared_as_polynomials() -> None:
    n, m = size("N"), size("M")
    assert equal((n + 1) * m, n * m + m)
    assert not equal(n, m)
    assert product([n, m, n]) == n * n * m
    assert product([]) == 1
    assert names(n * m + 2) == {"N", "M"}


@pytest.mark.parametrize(
    "divisors", [{"N": 4}, {"N": size("K")}, {"N": size("2*K")}, {"N": size("K"), "K": 3}], ids=str
)
@pytest.mark.parametrize(
    "written",
    [
        "N//K",
        "N//K + 1",
        "(N//K + 2)//3",
        "M*N//K",
        "K*(N//K)",
        "N//(2*K)",
        "N",
        "N//4",
        "4*(N//4)",
        "(N + 1)//2",
        "M*N//4",
        "N//8",
        "N % 3",
        "N - 1",
        "N**2",
        "max(N, M)",
    ],
)
def test_a_size_in_shares_is_worth_the_same_and_written_over_the_dims(
    written: str, divisors: dict[str, Size | int]
) -> None:
    shared = in_quotients(size(written), divisors)
    expected = eval(written, {"max": max}, dict(DIMS))
    assert value(shared, DIMS) == expected
    assert eval(text(shared), {"max": max}, dict(DIMS)) == expected
    assert in_quotients(shared, divisors) == shared


def test_what_is_known_to_divide_is_no_division() -> None:
    n, k = (in_quotients(size(written), {"N": 4}) for written in ("N", "N//4"))
    assert equal(4 * k, n)
    assert divides(size(2), n)
    assert not divides(size(8), n)
    assert (text(n), text(k)) == ("N", "N // 4")


def test_what_a_dim_is_known_to_divide_is_no_division_by_it() -> None:
    n, share, groups = (in_quotients(size(t), {"N": size("K")}) for t in ("N", "N//K", "N//(N//K)"))
    assert equal(share * size("K"), n)
    assert divides(size("K"), n)
    assert divides(share, n)
    assert not divides(size("M"), n)
    assert [text(e) for e in (n, share, groups)] == ["N", "N // K", "K"]
