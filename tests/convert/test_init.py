"""Module classes that take arguments: what `--init` gives constructs them, here, in drafts and in replays."""

import sys
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, NotConvertible, TargetBroken
from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.validate.request import ValidationRequest, command

from .conftest import Conversions, Resolving

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "draft" / "jobs" / "beside_eager.py"
FILE = """import torch
from torch import nn

INPUTS = {"x": "float32[M, 7]"}
DIMS = {"M": [5]}


def scaled(x, scale):
    return x * scale


class Base(nn.Module):
    def __init__(self, dim, eps=1e-5, kind="plain"):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, dim))
        self.eps = eps
        self.kind = kind

    def forward(self, x):
        return scaled(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps), self.weight)


class Norm(Base):
    pass


class Gate(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)
"""
STACKED = """import torch
from torch import nn

INPUTS = {"input": "float32[M, 7]"}
DIMS = {"M": [5]}


class Stacked(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(7, 3), nn.ReLU())
"""
INIT = ("dim=7", "eps=0.25", "kind=wide")


@pytest.fixture
def norm(tmp_path: Path) -> Target:
    path = tmp_path / "norms.py"
    path.write_text(FILE, encoding="utf-8")
    return Target(path=path, name="Norm")


async def test_a_class_is_constructed_with_the_arguments_given(
    worker: WorkerClient, interpreter: Runtime, norm: Target
) -> None:
    description = await describe(worker, norm.constructed_with(INIT), "reference", interpreter)
    assert [(tensor.name, tensor.shape) for tensor in description.state] == [("weight", (7,))]
    assert description.target.init == INIT


async def test_arguments_of_a_class_are_refused_for_a_function(resolved: Resolving, norm: Target) -> None:
    function = Target(path=norm.path, name="scaled").constructed_with(("dim=7",))
    with pytest.raises(BadInput, match=r"is a function, and --init \(dim=7\) is for an nn.Module class"):
        await resolved(function)


async def test_a_class_whose_arguments_are_missing_says_how_to_give_them(
    worker: WorkerClient, interpreter: Runtime, norm: Target
) -> None:
    with pytest.raises(TargetBroken, match=r"'dim'.*--init NAME=VALUE"):
        await describe(worker, norm, "reference", interpreter)


async def test_a_drafted_module_brings_its_arguments_its_bases_and_nothing_else(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, norm: Target, tmp_path: Path
) -> None:
    origin = (await resolved(norm.constructed_with(INIT))).convertible()
    reference = origin.source.reference
    assert "return Norm(dim=7, eps=0.25, kind='wide').eval()" in reference.definitions[-2]
    heads = [definition.partition("(")[0] for definition in reference.definitions]
    assert heads == [
        "def scaled",
        "class Base",
        "class Norm",
        "@functools.cache\ndef reference_module",
        "def reference",
    ]
    drafted = tmp_path / "drafted.py"
    drafted.write_text(origin.drafted(3).text, encoding="utf-8")
    original = tmp_path / "original.py"
    original.write_text(
        FILE + "\n\ndef f(x, weight):\n    return Norm(7, 0.25)(x).detach()\n", encoding="utf-8"
    )
    weights = {"name": "norm", "source": str(original), "drafts": [str(drafted)], "dims": {"M": [5]}}
    inputs = {"x": ["M", "7"], "weight": ["7"]}
    job = Job(
        kind=str(BESIDE_EAGER),
        arguments={"functions": [{**weights, "inputs": inputs, "given": {"weight": [0.5, 1.5, 7]}}]},
    )
    outcome = await worker.ask(job, interpreter, seconds=120.0)
    assert outcome.answer == {"norm": ""}


async def test_a_module_may_inherit_its_forward_from_torch(resolved: Resolving, tmp_path: Path) -> None:
    target = Target(path=tmp_path / "stacked.py", name="Stacked")
    target.path.write_text(STACKED, encoding="utf-8")
    origin = (await resolved(target)).whole
    assert origin is not None
    assert origin.reference.parameters.startswith("input, module_0_weight")
    assert "class Stacked(nn.Sequential):" in origin.drafted(3).text


async def test_a_class_of_another_file_is_refused(resolved: Resolving, tmp_path: Path) -> None:
    path = tmp_path / "borrowed.py"
    path.write_text('from torch.nn import Sigmoid\n\nINPUTS = {"input": "float32[M]"}\nDIMS = {"M": [5]}\n')
    with pytest.raises(NotConvertible, match="Sigmoid is not defined by a `class`"):
        (await resolved(Target(path=path, name="Sigmoid"))).convertible()


def test_the_command_that_replays_carries_arguments_and_requirements(norm: Target) -> None:
    runtime = Runtime(python=sys.executable, interpreter=True)
    options = Options(requires=("M % 2 == 0",))
    kernel = Target(path=norm.path.with_name("kernel.py"))
    request = ValidationRequest(candidate=kernel, reference=norm.constructed_with(INIT), options=options)
    line = command(request, runtime, 7, None)
    assert "--init dim=7 --init eps=0.25 --init kind=wide" in line
    assert "--require 'M % 2 == 0'" in line


@pytest.mark.parametrize("text", ["dim", "=7", "2d=7"])
def test_an_argument_that_does_not_read_is_refused(text: str, norm: Target) -> None:
    with pytest.raises(BadInput, match="is no argument of a class") as refusal:
        norm.constructed_with((text,))
    assert refusal.value.hint == "Write --init dim=512."


HALF = FILE.replace('"float32[M, 7]"', '"float32|float16[M, 7]"')


@pytest.mark.corpora
async def test_a_module_is_converted_in_each_dtype_with_parameters_that_follow_its_input(
    norm: Target, converted: Conversions
) -> None:
    norm.path.write_text(HALF, encoding="utf-8")
    conversion = await converted(norm.constructed_with(("dim=7",)))
    assert conversion.verdict == "converted", conversion.summary
    names = {case.name for stage in conversion.stages for case in stage.verdict.cases}
    assert any("float16" in name for name in names)
    assert conversion.kernel is not None
    assert '"weight": "float32|float16[7]"' in conversion.kernel.read_text(encoding="utf-8")
