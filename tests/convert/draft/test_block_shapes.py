"""Blocks, warps and the width of loads follow the sizes at hand."""

import re

import pytest

from pytorch_to_triton.schema.graph import Graph

from .graphs import drafted, graph, node, single

ROWS = single("softmax.int", ("x", -1), ("M", "N"))
HEADS = single("mul.Tensor", ("x", "y"), ("B", "S", "N"), x=("B", "S", "N"), y=("S", "N"))
PIXELS = graph(
    {"x": ("B", "N", "3")},
    (
        node("t", "permute.default", ("x", [0, 2, 1]), ("B", "3", "N")),
        node("s", "exp.default", ("t",), ("B", "3", "N")),
    ),
    ("s",),
)
PAIRS = graph(
    {"x": ("M", "N")},
    (
        node("c", "cos.default", ("x",), ("M", "N")),
        node("s", "sin.default", ("x",), ("M", "N")),
        node("u", "unsqueeze.default", ("c", -1), ("M", "N", "1")),
        node("v", "unsqueeze.default", ("s", -1), ("M", "N", "1")),
        node("pairs", "cat.default", (["u", "v"], -1), ("M", "N", "2")),
    ),
    ("pairs",),
)
COLUMNS = single("softmax.int", ("x", 1), ("B", "M", "N"))


@pytest.mark.parametrize(("length", "block"), [(3, 4), (19, 32), (100, 128), (1000, 1024), (16000, 16384)])
def test_each_program_has_enough_elements_and_each_warp_too(length: int, block: int) -> None:
    """Short rows come many to a program, and 1,024 elements never on 16 warps."""
    (kernel,) = drafted(ROWS, 3, {"M": [8], "N": [3, length]}, {"M": 2**20, "N": length}).kernels
    for config in kernel.printed.schedule.configs:
        elements = config["BLOCK_M"] * block
        assert 1024 <= elements <= max(8192, block), config
        assert 128 <= elements // config["num_warps"] <= 2048, config
        assert config["BLOCK_M"] == 1 or elements <= 8192, config


@pytest.mark.parametrize(("length", "block"), [(3, 4), (100, 128), (50000, 16384)])
def test_a_plain_loop_has_no_longer_blocks_than_the_sizes_at_hand(length: int, block: int) -> None:
    """Else no small case would see its second turn."""
    text = drafted(ROWS, 1, {"M": [8], "N": [3, length]}, {"M": 2**20, "N": length}).text
    assert re.findall(r"BLOCK_N=(\d+)", text) == [str(block)]


@pytest.mark.parametrize(
    ("op", "length", "first"),
    [
        ("softmax.int", 50257, (4096, 4)),
        ("amax.default", 65536, (2048, 8)),
        ("amax.default", 50257, (1024, 8)),
    ],
)
def test_loops_over_a_long_row_have_blocks_by_what_they_take_and_how_it_is_loaded(
    op: str, length: int, first: tuple[int, int]
) -> None:
    shape = ("M", "N") if op == "softmax.int" else ("M",)
    given = ("x", -1) if op == "softmax.int" else ("x", [-1], False)
    rows = graph({"x": ("M", "N")}, (node("y", op, given, shape),), ("y",))
    rows = rows.model_copy(
        update={"inputs": tuple(i.model_copy(update={"dtype": "bfloat16"}) for i in rows.inputs)}
    )
    kernels = drafted(rows, 3, {"M": [8192], "N": [length]}, {"M": 8192, "N": length}).kernels
    configs = [k.printed.schedule.configs[0] for k in kernels if "for start in" in "\n".join(k.lines)]
    assert (configs[0]["BLOCK_N"], configs[0]["num_warps"]) == first


def test_of_few_rows_no_program_takes_more_than_there_are() -> None:
    (kernel,) = drafted(ROWS, 3, {"M": [2], "N": [19]}).kernels
    assert {c["BLOCK_M"] for c in kernel.printed.schedule.configs} == {2}


def test_columns_that_are_held_whole_are_fewer_a_program_where_they_are_long() -> None:
    widths = []
    for length in (9, 500):
        (kernel, *_) = drafted(COLUMNS, 3, {"B": [4], "M": [length], "N": [4096]}).kernels
        widths.append({c["BLOCK_N"] for c in kernel.printed.schedule.configs})
    assert widths == [{64, 128, 256, 512}, {16}]


@pytest.mark.parametrize(("length", "aligned"), [(100, True), (1000, True), (33, False), (4096, False)])
def test_loads_are_as_wide_as_the_length_of_rows_allows(length: int, aligned: bool) -> None:
    """Triton itself sees multiples of 16, and of odd numbers there is nothing to say."""
    text = drafted(ROWS, 3, {"M": [8], "N": [length]}, {"M": 2**20, "N": length}).text
    assert ("math.gcd(N, 16)" in text) is aligned


def test_nothing_is_divided_by_element_where_operands_share_rows() -> None:
    (kernel,) = drafted(HEADS, 3, {"B": [4], "S": [64], "N": [128]}).kernels
    divided = [line.strip() for line in kernel.printed.body if "//" in line or "%" in line]
    assert divided == ["pid_col = pid % n_col_blocks", "pid_row = pid // n_col_blocks"]


def test_a_tile_that_is_short_along_one_side_is_long_along_the_other() -> None:
    (kernel,) = drafted(PIXELS, 3, {"B": [4], "N": [50176]}).kernels
    assert all(c["BLOCK_M"] == 4 and c["BLOCK_N"] >= 128 for c in kernel.printed.schedule.configs)


@pytest.mark.parametrize(("length", "walks"), [(40, ["row", "col"]), (50176, ["outer", "row", "col"])])
def test_an_operand_in_short_runs_is_turned_tile_by_tile_where_rows_are_long(
    length: int, walks: list[str]
) -> None:
    (kernel,) = drafted(PIXELS, 3, {"B": [4], "N": [length]}).kernels
    assert list(kernel.printed.schedule.walks) == walks


@pytest.mark.parametrize(("length", "joined"), [(9, 0), (4096, 1)])
def test_results_that_lie_in_turn_are_stored_side_by_side_where_rows_are_long(
    length: int, joined: int
) -> None:
    (kernel,) = drafted(PAIRS, 3, {"M": [64], "N": [length]}).kernels
    body = "\n".join(kernel.printed.body)
    assert (body.count("tl.store("), body.count("tl.join(")) == (1, joined)


STREAMED = 'eviction_policy="evict_first"'


def reading_rows(last: str) -> Graph:
    """A loss of rows; the sum of their logarithms; or the rows minus that, which reads them twice."""
    rows = ("M", "2048")
    loss = (
        node("squares", "mul.Tensor", ("x", "x"), rows),
        node("loss", "sum.dim_IntList", ("squares", [0, 1]), ()),
    )
    again = (
        node("each", "logsumexp.default", ("x", [-1]), ("M",)),
        node("total", "sum.dim_IntList", ("each", [0]), ()),
        node("shifted", "sub.Tensor", ("x", "total"), rows),
    )
    return graph({"x": rows}, loss if last == "loss" else again[: 2 if last == "total" else 3], (last,))


@pytest.mark.parametrize(("last", "streams"), [("loss", True), ("total", True), ("shifted", False)])
def test_what_no_other_kernel_reads_again_takes_no_room_in_the_cache(last: str, streams: bool) -> None:
    text = drafted(reading_rows(last), 3, {"M": [5, 4096]}).text
    assert ('eviction_policy="evict_first"' in text) is streams


@pytest.mark.parametrize(("more", "warps"), [((), 2), (("y", "z"), 4)])
def test_rows_of_several_float32_tensors_have_as_many_warps_again(more: tuple[str, ...], warps: int) -> None:
    shape = ("M", "1024")
    added = [node(f"with_{n}", "add.Tensor", (f"with_{m}" if m else "x", n), shape) for m, n in chain(more)]
    last = added[-1].name if added else "x"
    nodes = (*added, node("s", "_softmax.default", (last, -1, False), shape))
    text = drafted(graph(dict.fromkeys(("x", *more), shape), nodes, ("s",)), 3, {"M": [5]}).text
    assert re.search(rf"num_warps={warps}\b", text)


def chain(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return list(zip(("", *names), names, strict=False))


@pytest.mark.parametrize(("weight", "rows"), [(("512",), 4), (("M", "1"), 2)])
def test_rows_that_share_a_weight_come_twice_as_many_to_a_program(weight: tuple[str, ...], rows: int) -> None:
    shape = ("M", "512")
    nodes = (
        node("p", "mul.Tensor", ("x", "w"), shape),
        node("s", "_softmax.default", ("p", -1, False), shape),
    )
    text = drafted(graph({"x": shape, "w": weight}, nodes, ("s",)), 3, {"M": [64]}).text
    assert f"BLOCK_M={rows}," in text
