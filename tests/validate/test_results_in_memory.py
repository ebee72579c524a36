"""What results share with inputs and with each other, and which of them need a kernel."""

from pathlib import Path

import pytest

from .kernel_files import changed_file
from .verdicts import Judge, violations

pytestmark = pytest.mark.anyio

SILU = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "h": "float32[M, N]"}
DIMS = {"M": [1, 5], "N": [9]}


def reference(x, h):
    silu = torch.nn.functional.silu
    REFERENCE


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < n)
    tl.store(out_ptr + index, x * tl.sigmoid(x), mask=index < n)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(x_ptr + index, mask=index < n), mask=index < n)


def launch(kernel, x, out):
    if x.numel() > 0:
        kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


def silu(x):
    x = x.contiguous()
    return launch(silu_kernel, x, torch.empty_like(x))


def run(x, h):
    RUN
"""
CASES = ("M=5 N=9", "M=1 N=9", "M=5 N=9 bfloat16", "M=5 N=9 x transposed")
HONEST: dict[str, tuple[str, ...]] = {
    "an input as it is": ("return silu(h), x", "return silu(h), x"),
    "a view at some layouts": ("return silu(h), x.reshape(-1)", "return silu(h), x.reshape(-1)"),
    "an input in one dtype": ("return silu(h), x.float()", "return silu(h), x.float()"),
    "a copy for an input": ("return silu(h), x", "return silu(h), x.clone()"),
    "a view of a result": ("y = silu(h); return y, y[:1]", "y = silu(h); return y, y[:1]"),
    "halves of a buffer": (
        "return silu(h), silu(h)",
        "both = torch.empty(2, *h.shape, device=h.device); "
        "return launch(silu_kernel, h, both[0]), launch(silu_kernel, h, both[1])",
    ),
    "columns of a buffer": (
        "return silu(h), silu(h)",
        "both = torch.empty(*h.shape, 2, device=h.device); both[:] = silu(h)[..., None]; "
        "return both[..., 0], both[..., 1]",
    ),
    "an input changed in place": ("return silu(h, inplace=True)", "return launch(silu_kernel, h, h)"),
    "no rows beside an input": ("return silu(h)[1:], x", "return silu(h[1:]), x"),
    "no rows beside an allowed operator": (
        "return silu(h)[1:], x.sort(-1)[1]",
        "return silu(h[1:]), x.sort(-1)[1]",
    ),
}
WRONG: dict[str, tuple[str, ...]] = {
    "an input for a copy": ("return x * 1", "return launch(copy_kernel, x, x)", "shares_memory"),
    "a view at other layouts": ("return silu(h), x.contiguous()", "return silu(h), x", "shares_memory"),
    "overlapping windows": (
        "return silu(h)[:-1], silu(h)[1:]",
        "y = silu(h); return y[:-1], y[1:]",
        "shares_memory",
    ),
    "zeros in place of x": ("return x.zero_()", "return x.zero_()", "no_triton_kernel"),
    "nothing but copies": (
        "return x.t().contiguous(), h.clone()",
        "launch(copy_kernel, x, torch.empty_like(x)); return x.t().contiguous(), h.clone()",
        "output_without_kernel",
    ),
}


def silu_file(folder: Path, reference: str, run: str) -> Path:
    return changed_file(folder, SILU, ("    REFERENCE", f"    {reference}"), ("    RUN", f"    {run}"))


@pytest.mark.parametrize("name", HONEST | WRONG)
async def test_a_result_lies_where_that_of_pytorch_does_or_apart_and_comes_from_a_kernel(
    name: str, judge: Judge, tmp_path: Path
) -> None:
    reference, run, *kind = (HONEST | WRONG)[name]
    file = silu_file(tmp_path, reference, run)
    verdict = await judge(file, cases=CASES, allow_torch=frozenset({"sort"}))
    assert verdict.verdict == ("failed" if kind else "passed"), verdict.summary
    assert violations(verdict).keys() >= set(kind)


BELOW = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, M]"}
DIMS = {"M": [1, 5]}


def reference(x):
    return REFERENCE


@triton.jit
def below_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    mask = (col < m) & MASK
    tl.store(out_ptr + row * m + col, tl.load(x_ptr + row * m + col, mask=mask), mask=mask)


def run(x):
    x = x.contiguous()
    out = torch.zeros_like(x)
    below_kernel[(len(x),)](x, out, len(x), BLOCK=triton.next_power_of_2(len(x)))
    return out
"""
BELOW_CASES = ("M=1", "M=5")
STORED_NOTHING = "below_kernel was launched with it and stored nothing in it."


async def test_a_kernel_whose_mask_leaves_nothing_to_store_in_one_case_is_right_there(
    judge: Judge, tmp_path: Path
) -> None:
    below = ("REFERENCE", "x.tril(-1)"), ("MASK", "(col < row)")
    for cases in (BELOW_CASES, BELOW_CASES[:1]):
        right = await judge(changed_file(tmp_path, BELOW, *below), cases=cases)
        assert (right.verdict, right.violations) == ("passed", ()), right.summary


async def test_a_kernel_that_stores_nothing_in_any_case_is_refused_though_zeros_are_right(
    judge: Judge, tmp_path: Path
) -> None:
    never = ("REFERENCE", "torch.zeros_like(x)"), ("MASK", "(col < 0)")
    verdict = await judge(changed_file(tmp_path, BELOW, *never))
    (violation,) = verdict.violations
    assert verdict.verdict == "failed"
    assert violation.message == f"No kernel wrote to out in any case: {STORED_NOTHING}"
    assert {case.status for case in verdict.cases} == {"passed"}


async def test_of_a_wrong_result_it_is_said_that_the_kernel_stored_nothing(
    judge: Judge, tmp_path: Path
) -> None:
    odd = ("REFERENCE", "x + 1"), ("MASK", "(col < m // 2 * 2)")
    verdict = await judge(changed_file(tmp_path, BELOW, *odd), cases=BELOW_CASES[:1])
    assert f"No kernel wrote to out: {STORED_NOTHING}" in verdict.cases[0].why


async def test_a_copy_of_what_pytorch_hands_on_is_noted(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(silu_file(tmp_path, *HONEST["a copy for an input"]), cases=CASES)
    assert "out[1] has memory of its own in some cases where PyTorch's shares that of x." in verdict.notes
