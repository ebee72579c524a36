"""Functions and modules that take and return more than single tensors: `run` takes and returns the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytorch_to_triton.convert.resolve import ResolvedTarget
from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.errors import NotConvertible, TargetBroken
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..conftest import Written
from .conftest import Comparing, Resolving
from .drafting import drafts_of, finished_text
from .drafting import written as draft_file
from .eager_calls import calls, draft_of, sizes

pytestmark = pytest.mark.anyio

SOURCE = """
import dataclasses
import math
from typing import NamedTuple

import torch
from torch import nn

DIMS = {"M": [1, 5], "N": [3, 9]}


class Pair(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor
    eps: float = 1e-5


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor
    hidden: torch.Tensor | None = None


def of_a_dict(batch):
    return batch["x"] * batch["mask"]["keep"].float() * batch["scale"]


def of_tuples(pairs):
    (a, b), c = pairs
    return (a * b).sum(-1) + c


def of_a_named_tuple(pair, gain=2.0):
    return Pair((pair.high - pair.low) * gain, pair.low)


def of_an_object(batch):
    x = batch.x.masked_fill(~batch.mask, 0.0)
    logits = x / (x.pow(2).mean(-1, keepdim=True) + batch.eps).sqrt()
    return Output(loss=logits.mean(), logits=logits)


def of_defaults(x, lowest=-float("Inf"), gain=math.log(1000 / 16)):
    return x.clamp(min=lowest) * gain


def towards(x, target):
    return (x - target.detach()).square().mean(-1)


def rounded(x):
    return (x * 2).to(torch.float8_e4m3fn)


def of_all(*xs):
    return torch.stack(xs).sum(0).relu()


def of_keywords(x, *, gain=1.0, **more):
    return x.masked_fill(more["mask"], 0) * gain


def nested_results(x, y):
    h = x + y
    return h, [h.relu(), {"mean": h.mean(-1), "none": None, "sizes": h.shape[0]}], "kept", x


@torch.no_grad()
def averaged(averages, values, counts):
    for average, value in zip(averages, values):
        average.sub_(0.1 * (average - value))
    counts["steps"] += 1
    return averages


@torch.jit.script
def scripted(x: torch.Tensor, gain: float, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x + b) * gain


def of_nothing_more(x, *args, **kwargs):
    return x * kwargs.get("gain", 2.0 + len(args))


def logged(function):
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@logged
def behind_a_decorator(x, y, gain=2.0):
    return x * gain + y.relu()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(7, 8), nn.Linear(8, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.embedding(ids).relu()).softmax(-1)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, *xs, residual=None, **more):
        h = sum(xs) * self.weight
        return {"h": h if residual is None else h + residual, "gate": more["gate"].sigmoid()}
"""
GENERATED = """
import torch

DIMS = {"M": [1, 5], "N": [3, 9]}


def inputs(M, N):
    boxes = [torch.randn(M, 4), torch.randn(2 * M, 4)]
    return {"batch": {"boxes": boxes, "labels": torch.randint(0, N, (M,))}, "scale": 0.5}


def losses(batch, scale):
    total = sum(b.square().mean() for b in batch["boxes"]) * scale
    return total, batch["labels"].float() / 2
"""


@dataclass(frozen=True)
class Row:
    """A target, its inputs as options, and lines of the drafted `run`."""

    name: str
    inputs: Sequence[str]
    lines: Sequence[str] = ()


ROWS = (
    Row(
        "of_a_dict",
        ['batch={"x": "float32|bfloat16[M,N]", "mask": {"keep": "bool[M,N]"}, "scale": 0.5}'],
        (
            "def run(batch):",
            'if set(batch["mask"]) != {"keep"}:',
            'batch_x, batch_mask_keep, batch_scale = batch["x"], batch["mask"]["keep"], batch["scale"]',
        ),
    ),
    Row("of_tuples", ["pairs=((float32[M,N], float32[N]), float32[])"]),
    Row("of_a_named_tuple", ["pair=Pair(low=float32[M,N], high=float32[M,N])"]),
    Row("of_an_object", ["batch=Batch(x=float32[M,N], mask=bool[M,N], eps=1e-5)"]),
    Row("of_defaults", ["x=float32[M,N]"]),
    Row("towards", ["x=float32[M,N]", "target=float32[M,N]"]),
    Row("of_all", ["xs=[float32[M,N], float32[M,N]]"], ("def run(*xs):", "xs_0, xs_1 = xs")),
    Row(
        "of_keywords",
        ["x=float32[M,N]", "mask=bool[M,N]", "gain=0.5"],
        ("def run(x, *, gain=1.0, **more):", 'mask = more["mask"]'),
    ),
    Row(
        "of_nothing_more",
        ["x=float32[M,N]"],
        ("def run(x, *args, **kwargs):", "if len(args) != 0:", "if kwargs:"),
    ),
    Row(
        "nested_results",
        ["x=float32[M,N]", "y=float32[M,N]"],
        ('return h, [out, {"mean": out_2, "none": None, "sizes": M}], "kept", x',),
    ),
    Row(
        "averaged",
        [
            "averages=[float32[M,N], float32[N]]",
            "values=[float32[M,N], float32[N]]",
            'counts={"steps": int64[N]}',
        ],
    ),
    Row("scripted", ["x=float32[M,N]", "gain=0.5", "b=float32[N]"], ("def run(x, gain, b):",)),
    Row(
        "behind_a_decorator",
        ["args=[float32[M,N], float32[M,N]]", "gain=0.5"],
        ("def run(*args, **kwargs):",),
    ),
    Row("Tied", ["ids=int64[M,N] in 0..7"], ("def run(ids, embedding_weight):",)),
    Row("Mixed", ["xs=[float32[M,8], float32[M,8]]", "residual=float32[8]", "gate=float32[M,N]"]),
)


@pytest.fixture
def of_row(resolved: Resolving, tmp_path: Path) -> Resolving:
    """Resolves the target of a row."""

    async def of_row(row: Row, source: str = SOURCE, *, backward: bool = False) -> ResolvedTarget:
        path = tmp_path / f"{row.name}.py"
        path.write_text(source)
        dims = [d for d in ("M=1,5", "N=3,9") if any(d[0] in text for text in row.inputs)]
        options = parse_options(row.inputs, dims)
        return await resolved(Target(path=path, name=row.name), options=options, backward=backward)

    return of_row


async def test_a_draft_takes_and_returns_what_its_function_does(
    of_row: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    drafts = []
    for row, source in [*((row, SOURCE) for row in ROWS), (Row("losses", ()), GENERATED)]:
        target = await of_row(row, source)
        drafted = drafts_of(target.convertible(), (2,))
        folder = tmp_path / row.name
        folder.mkdir()
        paths = [draft_file(d, target.target, folder, stage) for stage, d in drafted.items()]
        declaration = target.declaration
        drafts.append(draft_of(row.name, target.target, paths, calls(declaration, sizes(declaration))))
        assert [line for line in row.lines if line not in drafted[2].text] == []
        assert drafted[2].left == ()
    assert await compared(*drafts) == {str(draft["name"]): [] for draft in drafts}


@pytest.mark.parametrize(
    ("name", "backward"),
    [
        pytest.param("Mixed", True, marks=pytest.mark.corpora),
        pytest.param("of_an_object", True, marks=pytest.mark.corpora),
        ("averaged", False),
        ("of_nothing_more", False),
        ("of_defaults", True),
        ("towards", True),
        ("rounded", False),
    ],
)
async def test_the_finished_file_passes_its_own_tests(
    name: str, backward: bool, of_row: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    row = next((row for row in ROWS if row.name == name), Row(name, ["x=float32[M,N]"]))
    finished_text(await of_row(row, backward=backward), tmp_path)
    (tests,) = tmp_path.glob("test_*_triton.py")
    outcome = await run_tests(worker, tests, interpreter, seconds=300)
    assert outcome.passed, outcome


async def test_an_object_of_no_class_in_the_file_is_refused(of_row: Resolving) -> None:
    target = await of_row(Row("of_a_named_tuple", ["pair=Pear(low=float32[M,N], high=float32[M,N])"]))
    with pytest.raises(NotConvertible, match="has no class Pear"):
        target.convertible()


async def test_inputs_declared_under_other_names_than_the_parameters_are_refused_with_both(
    resolved: Resolving, written: Written
) -> None:
    options = parse_options(["y=float32[N]"], ["N=5"])
    with pytest.raises(TargetBroken, match=r"takes x, .*not declared: x; not taken: y"):
        await resolved(written("\n\ndef f(x):\n    return 2 * x\n"), options=options)
