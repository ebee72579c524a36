"""Functions that write to their arguments: drafts leave in them what PyTorch does, and return the same."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Resolving
from .drafting import finished_text, in_file
from .eager_calls import outcome_of

pytestmark = pytest.mark.anyio

SOURCE = """import torch

INPUTS = {inputs}
DIMS = {{"M": [1, 5], "N": [3, 40]}}


def f({parameters}):
    {body}
"""
ONE = {"x": "float32|bfloat16[M, N]"}
TWO = {"x": "bfloat16[M, N]", "y": "bfloat16[M, N]"}
FLOAT = {"x": "float32[M, N]"}
WRITING: Mapping[str, tuple[Mapping[str, object], str]] = {
    "scaled in place": (ONE, "return x.mul_(2).add_(1)"),
    "nothing returned": (FLOAT, "x.sub_(x.mean(-1, keepdim=True))"),
    "a number where a condition holds": (FLOAT, "x[x < 0] = 0; return x.sum(-1)"),
    "a mask given": ({**FLOAT, "keep": "bool[M, N]"}, "x.masked_fill_(~keep, -1.0); return keep.sum(1)"),
    "a moving average": (TWO, "y.mul_(0.9).add_(x, alpha=0.1); return x - y"),
    "a buffer copied to": (TWO, "y.copy_(x.exp()); return y.sum()"),
    "out": (TWO, "return torch.exp(x, out=y)"),
    "a column and a row": (ONE, "x[:, 0] = 1.0; x[-1] += 2; return x * 3"),
    "momentum": (
        {"p": "float32[M, N]", "g": "float32[M, N]", "m": "float32[M, N]"},
        "m.mul_(0.9).add_(g); p.sub_(m, alpha=0.01)",
    ),
    "two that change places": (TWO, "t = x.clone(); x.copy_(y); y.copy_(t)"),
    "shifted by one": (FLOAT, "x[:, 1:] = x[:, :-1].clone(); return x"),
    "a running maximum": (
        {"x": "float32[M, N]", "top": "float32[N]"}, "top.copy_(torch.maximum(top, x.amax(0)))",
    ),
    "a counter": ({"x": "float32[M, N]", "count": "int64[N]"}, "count += (x > 0).sum(0); return x.relu_()"),
}  # fmt: skip
"""What is declared, and the body."""


def target_of(name: str, folder: Path) -> Target:
    inputs, body = WRITING[name]
    text = SOURCE.format(inputs=dict(inputs), parameters=", ".join(inputs), body=body)
    return in_file(folder, name, text)


async def test_a_draft_leaves_in_arguments_what_eager_pytorch_does(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    targets = {name: target_of(name, tmp_path) for name in WRITING}
    differ, left = await outcome_of(worker, interpreter, targets, tmp_path, (3,))
    assert differ == {name: [] for name in WRITING}
    assert left == {name: set() for name in WRITING}


async def test_a_value_of_the_same_element_is_stored_where_the_argument_lies(
    resolved: Resolving, tmp_path: Path
) -> None:
    for name, is_elsewhere in (("scaled in place", False), ("shifted by one", True)):
        draft = (await resolved(target_of(name, tmp_path))).convertible().drafted(1)
        assert ("torch.empty" in draft.text) == is_elsewhere


async def test_the_finished_function_declares_what_it_writes_to(resolved: Resolving, tmp_path: Path) -> None:
    target = await resolved(target_of("a moving average", tmp_path))
    assert 'mutates_args=("y",)' in finished_text(target, tmp_path)


async def test_with_gradients_it_is_refused_with_what_can_be_done(
    resolved: Resolving, tmp_path: Path
) -> None:
    with pytest.raises(NotConvertible, match="writes to its arguments") as refusal:
        (await resolved(target_of("a moving average", tmp_path), backward=True)).convertible()
    assert "without backward" in refusal.value.hint
