"""A kernel that leaves dropout to PyTorch is compared with the same draws as its reference."""

from pathlib import Path

import pytest

from .kernel_files import changed_file
from .verdicts import ANY, Judge

pytestmark = pytest.mark.anyio

DROPPED = """
import torch

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [4, 9], "N": [16]}
KEPT = {}


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x * 2, 0.25, True)


def mask_of(x: torch.Tensor, p: float) -> torch.Tensor:
    return torch.ops.aten.native_dropout(torch.ones_like(x, dtype=x.dtype), p, True)[1]


def run(x: torch.Tensor) -> torch.Tensor:
    RESULT
"""
CASES = ("M=4 N=16", "M=4 N=16 ones", "M=9 N=16 bfloat16", "M=9 N=16 x transposed", "M=4 N=0")


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
