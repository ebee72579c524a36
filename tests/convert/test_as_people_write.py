"""Functions as people write them: each is drafted, and all stages compute what eager PyTorch does."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from .drafting import STAGES, in_file
from .eager_calls import outcome_of

pytestmark = pytest.mark.anyio

DIMS = {"B": [1, 2], "H": [4, 7], "W": [5, 9], "N": [0, 4]}
SOURCE = """import math
from typing import NamedTuple
import torch
import torch.nn.functional as F

INPUTS = {inputs}
DIMS = {dims}


class Pair(NamedTuple):
    values: torch.Tensor
    indices: torch.Tensor


def f({parameters}):
    {body}
"""
IMAGE = {"x": "float32[B, 3, H, W]"}
MASKED = {"x": "float64|bfloat16[H, W]", "z": "float64|bfloat16[W]", "keep": "bool[H, W]"}
FUNCTIONS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "an image of half its size": (IMAGE, "return F.interpolate(x, scale_factor=0.5).relu()"),
    "a share of each row": (IMAGE, "return x[..., : int(x.shape[-1] * 0.7)] * math.ceil(x.shape[2] / 1.5)"),
    "labels that are not kept": (
        {"y": "int64[H, W]", "keep": "bool[H, W]"}, "z = y.clone(); z[~keep] = -100; return z",
    ),
    "a number where a mask holds": (MASKED, "y = x.clone(); y[keep] = 0; y[y < 0] = 0.01; return y"),
    "rows where a mask holds": (MASKED, "y = x.clone(); y[keep[:, 0]] = 0.5; return y.sum(1)"),
    "a column and a row": (MASKED, "y = x.clone(); y[:, 0] = 1.0; y[1] = z; return y"),
    "a part of each row, in place": (
        MASKED, "y = x * 2; y[:, 1:] += z[1:]; y += 1; y.mul_(3).clamp_(min=0); return y",
    ),
    "the last of each row, as many as given": (
        {"x": "float32[H, W]", "y": "float32[H, B]"}, "return x[:, -y.shape[1] :].sum(1) + y[:, :-4].sum(1)",
    ),
    "columns from the end and from before the start": (
        {"x": "float32[H, W]", "y": "float32[H, B]"},
        "z = x.clone(); z[:, -y.shape[1] :] = y; return z[:, -7:-1].mean(1) * z[:, -y.shape[1]]",
    ),
    "a NamedTuple": (IMAGE, "v, i = x.max(-1); return Pair(v * 2, i)"),
    "torch's own NamedTuple": (IMAGE, "return (x * 2).max(-1)"),
    "a border from the other side": (IMAGE, "return F.pad(x, (1, 2, 2, 1), mode='circular') * 2"),
    "a mask drawn into memory of its own": (
        {"x": "float32[H, W]"}, "return x.exp() * x.new_empty(x.shape[0], 1).bernoulli_(1.0)",
    ),
    "running statistics, a step further": (
        {"x": "float32[N, 3]", "mean": "float32[3]", "var": "float32[3]"},
        "m, v = mean.clone(), var.clone(); F.batch_norm(x, m, v, training=True); return m * 2, v * 2",
    ),
    "a tensor by its type": (
        {"x": "float32[H, W]"}, "return x.exp() if type(x) is torch.Tensor else sum(part for part in x)",
    ),
    "parts of sizes in a list": (
        {"x": "float32[H, 8]", "parts": [2, 6]}, "a, b = x.split(parts, -1); return a.exp(), b",
    ),
    "negative floats in uint8": (IMAGE, "return (x * 100).to(torch.uint8), ~(x > 0).to(torch.uint8)"),
    "a float8 on the way": (IMAGE, "return (x * 2).to(torch.float8_e5m2).float() + 1"),
    "rounded to float8": (IMAGE, "return (x * 2).to(torch.float8_e4m3fn).flatten(1).float()"),
    "an unsigned integer": (IMAGE, "return (x > 0).to(torch.uint16)"),
    "complex rotations": (
        {"x": "float32[H, 2*W]", "angles": "float32[H, W]"},
        "f = torch.polar(torch.ones_like(angles), angles)\n    "
        "q = torch.view_as_complex(x.reshape(len(x), -1, 2))\n    "
        "return torch.view_as_real(q * f).flatten(1) * 2",
    ),
    "Llama's rotary embedding": (
        {"x": "float32|bfloat16[B, H, 3, 2*W]", "freqs_cis": "complex64[H, W]"},
        "q = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))\n    "
        "f = freqs_cis.view(1, x.shape[1], 1, x.shape[-1] // 2)\n    "
        "return torch.view_as_real(q * f).flatten(3).type_as(x)",
    ),
    "complex arithmetic": (
        {"x": "float32[H, 2*W]", "y": "float32[H, 2*W]"},
        "z = torch.where(x > 0, torch.complex(x, y), 1j * x)\n    "
        "w = torch.stack(z.chunk(2, -1)).sum(0)\n    "
        "u = torch.cat([w.conj(), 1 / (w + 2)], -1) - z / (1 + 2j)\n    "
        "return u.abs(), u.angle(), torch.exp(z[:, 1:]).imag, (z @ u.mT).real, torch.log(z + 3).imag.sum()",
    ),
    "a complex result": (
        {"x": "float32[H, W]", "y": "float32[H, W]"}, "return torch.polar(x.exp(), y) * 2.0, y + 1",
    ),
    "a spectrum": (IMAGE, "z = torch.fft.rfft(x.flatten(1), 16); return (z * z.conj()).real.log1p()"),
}  # fmt: skip
"""What is declared, and the body."""
FIRST = (
    "a border from the other side", "a number where a mask holds", "parts of sizes in a list",
    "an unsigned integer", "complex arithmetic", "a spectrum", "running statistics, a step further",
)  # fmt: skip
"""Of each kind one for every change, the others with the corpora."""
LEFT: Mapping[str, tuple[str, ...]] = {
    "a float8 on the way": ("aten._to_copy.default", "aten.add.Tensor"),
    "an unsigned integer": ("aten._to_copy.default",),
    "a spectrum": ("aten._fft_r2c.default", "aten.view_as_real.default"),
    "Llama's rotary embedding": ("aten.view_as_real.default",),
    "a complex result": ("aten.view_as_complex.default",),
}
"""The operators that stay PyTorch's; none of the functions not named."""


@pytest.mark.parametrize(
    ("names", "stages"),
    [
        pytest.param(FIRST, (3,), id="some at the last stage"),
        pytest.param([*FUNCTIONS], STAGES, id="all", marks=pytest.mark.corpora),
    ],
)
async def test_every_stage_computes_what_eager_pytorch_does(
    names: Sequence[str], stages: Sequence[Stage], worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    targets = {}
    for name in names:
        inputs, body = FUNCTIONS[name]
        dims = {d: s for d, s in DIMS.items() if re.search(rf"\b{d}\b", str(inputs))}
        named = {"inputs": dict(inputs), "dims": dims, "parameters": ", ".join(inputs), "body": body}
        targets[name] = in_file(tmp_path, name, SOURCE.format(**named))
    differ, left = await outcome_of(worker, interpreter, targets, tmp_path, stages)
    assert differ == {name: [] for name in names}
    assert left == {name: set(LEFT.get(name, ())) for name in names}
