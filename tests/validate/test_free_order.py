"""A kernel whose results come in another order than PyTorch's is right where the target frees it."""

from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options
from pytorch_to_triton.schema.target import Target

from .verdicts import Judge

pytestmark = pytest.mark.anyio
FREE = "unordered(out[0], out[1])"
TARGET = """import torch

INPUTS = {"x": "float32[T, 6] in 0..8"}
DIMS = {"T": [1, 5]}


def f(x):
    values, order = x.sort(-1)
    return order, values * 2.0
"""
KERNEL = '''import torch
import triton
import triton.language as tl


@triton.jit
def reversed_kernel(x_ptr, order_ptr, values_ptr):
    """A row as it is, from its end: each element with its place."""
    at = tl.program_id(0) * 6 + tl.arange(0, 8)
    inside = tl.arange(0, 8) < 6
    last = tl.program_id(0) * 6 + 5 - tl.arange(0, 8)
    x = tl.load(x_ptr + at, mask=inside)
    tl.store(values_ptr + last, x * 2.0, mask=inside)
    tl.store(order_ptr + last, tl.arange(0, 8).to(tl.int64), mask=inside)


def run(x):
    x = x.contiguous()
    order, values = torch.empty_like(x, dtype=torch.int64), torch.empty_like(x)
    if x.numel():
        reversed_kernel[(x.shape[0],)](x, order, values)
    return order, values
'''
TORN = KERNEL.replace("values_ptr + last", "values_ptr + at")


@pytest.fixture
def judged(judge: Judge, tmp_path: Path):  # type: ignore[no-untyped-def]
    """What validate says of a kernel with this line in the target's file."""

    async def judged(
        kernel: str, line: str = "", options: Options = NO_OPTIONS
    ) -> tuple[str, tuple[str, ...]]:
        target, file = tmp_path / "target.py", tmp_path / "kernel.py"
        target.write_text(f"{line}\n{TARGET}", encoding="utf-8")
        file.write_text(kernel, encoding="utf-8")
        reference = Target(path=target, name="f")
        verdict = await judge(
            file, reference=reference, options=options, cases=("T=5", "T=1", "T=7 x transposed")
        )
        return verdict.verdict, verdict.notes

    return judged


async def test_it_passes_where_the_file_or_an_option_says_so_and_the_verdict_does_too(judged) -> None:  # type: ignore[no-untyped-def]
    note = "Compared as declared: unordered(out[0], out[1], dim=-1)."
    for line, options in ((f"COMPARE = {FREE!r}", NO_OPTIONS), ("", parse_options([], [], [], [FREE]))):
        verdict, notes = await judged(KERNEL, line, options)
        assert verdict == "passed"
        assert note in notes
    assert (await judged(KERNEL))[0] == "failed"


async def test_results_that_no_longer_belong_together_fail(judged) -> None:  # type: ignore[no-untyped-def]
    assert (await judged(TORN, f"COMPARE = [{FREE!r}]"))[0] == "failed"


async def test_the_kernel_s_own_file_does_not_free_what_the_target_declares(judged) -> None:  # type: ignore[no-untyped-def]
    assert (await judged(KERNEL.replace("import torch\n", f"import torch\nCOMPARE = {FREE!r}\n", 1)))[
        0
    ] == "failed"


async def test_a_comparison_that_does_not_fit_is_refused_with_what_to_do(judged) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TargetBroken) as caught:
        await judged(KERNEL, 'COMPARE = "unordered(out[0], out[2])"')
    assert "names out[2], and the results are out[0], out[1]" in caught.value.message
    assert "COMPARE or --compare" in caught.value.hint
    with pytest.raises(BadInput, match="this is no comparison"):
        await judged(KERNEL, "COMPARE = 3")
