"""Configurations that are chosen for short rows are launched with no tile too large for registers."""

import math
import re

import pytest

from pytorch_to_triton.draft.file.launches import Kernel
from pytorch_to_triton.draft.schedule.blocks import KNOWN
from pytorch_to_triton.inputs.expression import holds

from .graphs import drafted, graph, node, single

ROWS, STACK = ("M", "N"), ("B", "M", "N")
SIZES = [*(1 << n for n in range(15)), 4097, 16385, 40000]
FUNCTIONS = {
    "softmax": single("softmax.int", ("x", -1), ROWS),
    "sums of rows": single("sum.dim_IntList", ("x", [1]), ("M",), x=ROWS),
    "sums of columns": single("sum.dim_IntList", ("x", [0]), ("N",), x=ROWS),
    "softmax of columns": single("softmax.int", ("x", 0), ROWS),
    "running sums": single("cumsum.default", ("x", 1), ROWS),
    "a bias": single("add.Tensor", ("x", "w"), STACK, x=STACK, w=("N",)),
    "softmax of means": graph(
        {"x": STACK},
        (
            node("m", "mean.dim", ("x", [1]), ("B", "N")),
            node("s", "softmax.int", ("m", -1), ("B", "N")),
        ),
        ("s",),
    ),
}


def largest_tile(kernel: Kernel, point: dict[str, int]) -> int:
    """Elements of the largest configuration that is tried at these sizes; 0 where the kernel is not taken."""
    found = [0]
    for variant in kernel.variants:
        if holds(variant.condition, point):
            sized = [eval(text, {**KNOWN}, dict(point)) for text in kernel.printed.schedule.sized.values()]
            blocks = [[n for b, n in c.items() if b.startswith("BLOCK")] for c in variant.candidates]
            found += [math.prod([*sized, *each]) for each in blocks]
    return max(found)


@pytest.mark.parametrize("declared", [3, 64, 1000])
@pytest.mark.parametrize("what", FUNCTIONS)
def test_no_configuration_holds_more_than_registers_do_at_any_size_that_run_takes(
    what: str, declared: int
) -> None:
    made = drafted(FUNCTIONS[what], 2, {"B": [100000], "M": [declared, 100000], "N": [declared]})
    points = [{"B": 7, "M": m, "N": n} for m in SIZES for n in SIZES]
    for point in (p for p in points if all(holds(limit, p) for limit in made.file.limits)):
        for kernel in made.kernels:
            assert largest_tile(kernel, point) <= 65536, (kernel.name, point)


def test_rows_too_long_for_the_configurations_of_short_ones_are_read_in_a_loop() -> None:
    made = drafted(FUNCTIONS["softmax"], 2, {"M": [32], "N": [1, 33, 64]})
    assert [kernel.printed.loops > 0 for kernel in made.kernels] == [False, True]
    assert made.file.limits == ()


def test_a_draft_for_long_rows_has_one_kernel() -> None:
    made = drafted(FUNCTIONS["softmax"], 2, {"M": [32], "N": [1, 5000]})
    assert [kernel.printed.loops for kernel in made.kernels] == [0]
    assert made.file.limits == ("N <= 16384",)


@pytest.mark.parametrize("rows", [1, 4, 128])
@pytest.mark.parametrize("n", [64, 1000, 16384])
def test_what_was_measured_on_short_rows_keeps_the_elements_of_a_program(rows: int, n: int) -> None:
    tuned = {"f_kernel": {"BLOCK_M": rows, "num_warps": 4}}
    text = drafted(FUNCTIONS["softmax"], 3, {"M": [32], "N": [1, 64]}, tuned=tuned).text
    block_n, blocks = 1 << (n - 1).bit_length(), {}
    for name in ("block_m", "num_warps"):
        if line := re.search(rf"{name} = (.*)", text):
            blocks[name] = eval(line[1], {**KNOWN}, {"block_n": block_n})
        else:
            blocks[name] = int(re.search(rf"{name.replace('block_m', 'BLOCK_M')}=(\d+)", text)[1])
    assert (blocks["block_m"], blocks["num_warps"]) == {
        (1, 64): (1, 4), (1, 1000): (1, 4), (1, 16384): (1, 16),
        (4, 64): (4, 4), (4, 1000): (1, 4), (4, 16384): (1, 16),
        (128, 64): (128, 4), (128, 1000): (8, 4), (128, 16384): (1, 8),
    }[rows, n]  # fmt: skip
