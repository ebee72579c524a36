"""Functions that use a torch.autograd.Function: gradients are what its own backward computes."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Resolving
from .drafting import in_file, written_drafts

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "jobs" / "gradients_beside_eager.py"
SOURCE = """import torch
import torch.nn.functional as F

INPUTS = {inputs}
DIMS = {{"M": [5], "N": [9]}}


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {parameters}):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}


def f({inputs_of_f}):
    return {value}
"""
ONE = {"x": "float32[M, N]"}
OWN: Mapping[str, tuple[Mapping[str, str], str, str, str, str]] = {
    "rounding straight through": (ONE, "x", "return x.round()", "return g", "Own.apply(x * 8) / 8"),
    "a sign with a window": (
        ONE, "x", "ctx.save_for_backward(x); return x.sign()",
        "(x,) = ctx.saved_tensors; return g * (x.abs() <= 1)", "Own.apply(x).sum(-1)",
    ),
    "a reversed gradient": (
        ONE, "x, scale", "ctx.scale = scale; return x.view_as(x)", "return -ctx.scale * g, None",
        "Own.apply(x.tanh(), 0.5).softmax(-1)",
    ),
    "a swish that saves its input": (
        ONE, "x", "ctx.save_for_backward(x); return x * x.sigmoid()",
        "(x,) = ctx.saved_tensors; s = x.sigmoid(); return g * (s * (1 + x * (1 - s)))", "Own.apply(x)",
    ),
    "a product": (
        {"x": "float32[M, N]", "w": "float32[N, 7]"}, "x, w", "ctx.save_for_backward(x, w); return x @ w",
        "x, w = ctx.saved_tensors; return g @ w.T, 0.5 * (x.T @ g)", "Own.apply(x, w).relu()",
    ),
    "applied twice": (ONE, "x", "return x.round()", "return 2 * g", "Own.apply(Own.apply(x) * 0.3)"),
    "a gradient of rows": (
        ONE, "x", "y = x.softmax(-1); ctx.save_for_backward(y); return y",
        "(y,) = ctx.saved_tensors; return y * (g - (g * y).sum(-1, keepdim=True))", "Own.apply(x * 2)",
    ),
    "beside what autograd differentiates": (
        {"x": "float32[M, N]", "b": "float32[N]"}, "x", "return (x > 0).float()", "return g",
        "Own.apply(x + b) * F.layer_norm(x, (x.shape[-1],))",
    ),
}  # fmt: skip
"""What is declared; of the Function its parameters and both bodies; and what f returns."""


def target_of(name: str, folder: Path) -> Target:
    inputs, parameters, forward, backward, value = OWN[name]
    named = {"parameters": parameters, "forward": forward, "backward": backward, "value": value}
    text = SOURCE.format(inputs=dict(inputs), inputs_of_f=", ".join(inputs), **named)
    return in_file(folder, name, text)


async def test_every_stage_has_the_gradients_of_the_functions_own_backward(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    functions = []
    for name, (inputs, *_) in OWN.items():
        target = target_of(name, tmp_path)
        files = written_drafts((await resolved(target, backward=True)).convertible(), target, tmp_path)
        shapes = {
            n: [{"M": 5, "N": 9}.get(s) or int(s) for s in re.findall(r"[MN]|\b\d+", t[7:])]
            for n, t in inputs.items()
        }
        functions.append({"name": name, "source": str(target.path), "files": files, "shapes": shapes})
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": functions})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer == dict.fromkeys(OWN, ""), outcome.detail


async def test_a_backward_that_needs_values_is_refused_with_its_line_and_a_way_forward(
    resolved: Resolving, tmp_path: Path
) -> None:
    target = target_of("rounding straight through", tmp_path)
    text = target.path.read_text(encoding="utf-8")
    target.path.write_text(text.replace("return g\n", "return g * float(g.sum())\n"), encoding="utf-8")
    with pytest.raises(NotConvertible, match=r"the backward of Own \(line \d+\) cannot be traced") as refusal:
        (await resolved(target, backward=True)).convertible()
    assert "without backward" in refusal.value.hint
