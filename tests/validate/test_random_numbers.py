"""A kernel that leaves dropout to PyTorch is compared with the same draws as its reference."""

from pathlib import Path

import pytest

from .kernel_files import changed_file
from .verdicts import ANY, Judge

pytestmark = pytest.mark.anyio

DROPPED = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [4, 9], "N": [16]}
KEPT = {}


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x * 2, 0.25, True)


def mask_of(x: torch.Tensor, p: float) -> torch.Tensor:
    return torch.ops.aten.native_dropout(torch.ones_like(x, dtype=x.dtype), p, True)[1]


@triton.jit
def drop_kernel(x_ptr, out_ptr, seed_ptr, n, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    keep = tl.rand(tl.load(seed_ptr), i) > p
    tl.store(out_ptr + i, tl.where(keep, 2 * x / (1 - p), x * 0), mask=i < n)


def dropped(x: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        drop_kernel[(triton.cdiv(x.numel(), 32),)](x, out, seed, x.numel(), 0.25, BLOCK=32)
    return out


def run(x: torch.Tensor) -> torch.Tensor:
    RESULT
"""
CASES = ("M=4 N=16", "M=4 N=16 ones", "M=9 N=16 bfloat16", "M=9 N=16 x transposed", "M=4 N=0")


@pytest.mark.parametrize(
    ("seed", "outcome"),
    [
        ("torch.randint(2**62, (), device=x.device)", "passed"),
        ("torch.full((), 7, device=x.device)", "failed"),
        ("torch.randint(2**62, (2,), device=x.device)[1]", "failed"),
    ],
    ids=["torch's", "fixed", "another"],
)
async def test_a_kernel_may_draw_itself_and_is_told_how(
    judge: Judge, tmp_path: Path, seed: str, outcome: str
) -> None:
    path = changed_file(tmp_path, DROPPED, ("RESULT", f"return dropped(x, {seed})"))
    verdict = await judge(path, allow_torch=frozenset({"randint"}), cases=CASES)
    assert verdict.verdict == outcome, verdict.summary
    assert any("seed = torch.randint(2**62, (), device=x.device)" in note for note in verdict.notes)


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("return torch.nn.functional.dropout(x * 2, 0.25, True)", "passed"),
        ("return torch.ops.aten.native_dropout((x * 2).contiguous(), 0.25, True)[0]", "passed"),
        ("return x.contiguous() * mask_of(x, 0.25) * (2 / 0.75)", "passed"),
        ("return x * mask_of(x, 0.3) * (2 / 0.7)", "failed"),
        ("return x * mask_of(x, 0.25) * 2", "failed"),
        ("return x * KEPT.setdefault(x.shape, mask_of(x, 0.25)) * (2 / 0.75)", "failed"),
        ("return x * 2", "failed"),
    ],
    ids=["as it is", "contiguous", "mask", "another p", "not scaled", "mask kept", "not dropped"],
)
async def test_what_is_dropped_is_what_pytorch_drops(
    judge: Judge, tmp_path: Path, result: str, outcome: str, backward: bool
) -> None:
    path = changed_file(tmp_path, DROPPED, ("RESULT", result))
    verdict = await judge(path, allow_torch=ANY, backward=backward, cases=CASES)
    assert verdict.verdict == outcome, verdict.summary
