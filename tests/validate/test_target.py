"""Targets that cannot be used are refused with what is wrong and how to fix it; unusual ones load."""

import os
import py_compile
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetBroken, TargetNotFound
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Role, Target
from pytorch_to_triton.targets.describe import declaration_of, describe
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

pytestmark = pytest.mark.anyio

ADD = """
import torch
INPUTS = {"x": "float32[N]", "y": "float32[N]"}
DIMS = {"N": [4, 9]}
def reference(x, y): return x + y
def run(x, y): return x + y
"""

BAD_TARGETS = [
    (None, None, TargetNotFound, ["There is no file", "k.py"]),
    ("softmx", "def softmax(x): return x", TargetNotFound, ["no `softmx`", "nearest: `softmax`"]),
    ("zzz", "def softmax(x): return x", TargetNotFound, ["it defines `softmax`"]),
    (None, "def softmax(x): return x", TargetNotFound, ["neither `run`", "nor `ModelNew`"]),
    (None, "def run(x:\n    return x", TargetBroken, ["k.py, line 1", "def run(x:\n", "^"]),
    (None, "import no_such_package", TargetBroken, ["No module named 'no_such_package'", "(line 1)"]),
    (None, "\n1 / 0", TargetBroken, ["ZeroDivisionError", "(line 2)"]),
    (None, "def halve():\n    1 // 0\nhalve()", TargetBroken, ["division or modulo", "(line 2)"]),
    (None, "import sys; sys.exit(0)", TargetBroken, ["SystemExit"]),
    (None, "import os; os._exit(3)", TargetBroken, ["exit code 3"]),
    ("N", "N = 3", TargetBroken, ["`N` is of type int"]),
    ("C", "class C: pass", TargetBroken, ["`C` is the class C"]),
    (
        "kernel",
        "import triton\n@triton.jit\ndef kernel(x_ptr): pass",
        TargetBroken,
        ["@triton.jit kernel", "launches it"],
    ),
    (
        "M",
        "from torch import nn\nclass M(nn.Module):\n    def __init__(self, n): super().__init__()",
        TargetBroken,
        ["Constructing `M` raised TypeError", "get_init_inputs()"],
    ),
    (
        None,
        "import torch\nINPUTS = {'x': torch.ones(3)}\ndef run(x): return x",
        TargetBroken,
        ['INPUTS["x"] is tensor', "'float32[M, N]'"],
    ),
    (
        "M",
        "from torch import nn\nM = nn.ReLU\ndef get_inputs(): return [1, 2]",
        TargetBroken,
        ["returns 2 values", "`M` takes input"],
    ),
]


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return path


Loading = Callable[..., Awaitable[Description]]


@pytest.fixture
def loaded(worker: WorkerClient, interpreter: Runtime) -> Loading:
    """Describes a file, or a name in it."""

    async def load(path: Path, name: str | None = None, role: Role = "reference") -> Description:
        return await describe(worker, Target(path=path, name=name), role, interpreter)

    return load


@pytest.mark.parametrize(
    ("name", "source", "refusal", "fragments"), BAD_TARGETS, ids=[str(b[3][0]) for b in BAD_TARGETS]
)
async def test_a_target_that_cannot_be_used_is_refused(
    name: str | None,
    source: str | None,
    refusal: type[BadInput],
    fragments: list[str],
    loaded: Loading,
    tmp_path: Path,
) -> None:
    if source is not None:
        write(tmp_path, "k.py", source)
    with pytest.raises(refusal) as refused:
        await loaded(tmp_path / "k.py", name, "candidate")
    for fragment in fragments:
        assert fragment in refused.value.message
    assert refused.value.hint


async def test_a_file_without_a_reference_is_refused_with_all_that_it_defines(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = write(tmp_path, "k.py", ADD.replace("def reference", "def expected"))
    with pytest.raises(TargetNotFound, match=r"neither `reference` .*; it defines `expected`, `run`"):
        await validate(worker, ValidationRequest(candidate=Target(path=path)), interpreter)


async def test_what_a_candidate_declares_counts_though_it_is_stopped_while_it_is_imported(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    reference = Target(path=write(tmp_path, "plain.py", "def plain(x, y): return x + y"), name="plain")
    path = write(tmp_path, "k.py", f"{ADD}\nimport subprocess\nsubprocess.run(['true'])\n")
    request = ValidationRequest(candidate=Target(path=path), reference=reference, cases=("N=4",))
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "failed"
    assert [violation.kind for violation in verdict.violations] == ["starts_processes"]


async def test_a_kernel_file_is_described_with_what_it_declares(loaded: Loading, tmp_path: Path) -> None:
    description = await loaded(write(tmp_path, "add.py", ADD))
    assert description.kind == "kernel_file"
    assert description.name == "reference"
    assert [parameter.name for parameter in description.parameters] == ["x", "y"]
    assert description.inputs == {"x": "float32[N]", "y": "float32[N]"}
    assert description.dims == {"N": [4, 9]}


async def test_a_project_with_packages_called_tools_and_server_can_be_a_target(
    loaded: Loading, tmp_path: Path
) -> None:
    for package in ("tools", "server"):
        write(tmp_path, f"{package}/__init__.py", "")
    write(tmp_path, "server/sizes.py", "FACTOR = 3")
    write(tmp_path, "tools/base.py", "def scaled(x, factor): return x * factor")
    source = """
        from server.sizes import FACTOR
        from .base import scaled
        def triple(x): return scaled(x, FACTOR)
    """
    path = write(tmp_path, "tools/triple.py", source)
    assert (await loaded(path, "triple")).name == "triple"


async def test_a_lone_file_may_import_its_neighbour(loaded: Loading, tmp_path: Path) -> None:
    write(tmp_path, "neighbour.py", "def double(x): return 2 * x")
    path = write(tmp_path, "lone-file.py", "from neighbour import double\ndef run(x): return double(x)")
    assert (await loaded(path, role="candidate")).name == "run"


async def test_a_file_named_like_a_standard_module_loads(loaded: Loading, tmp_path: Path) -> None:
    path = write(tmp_path, "select.py", "import subprocess\ndef run(x): return x")
    assert (await loaded(path, role="candidate")).name == "run"


async def test_a_module_is_described_with_its_state_and_example_inputs(
    loaded: Loading, tmp_path: Path
) -> None:
    source = """
        import torch
        from torch import nn
        class Model(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.norm = nn.BatchNorm1d(n)
            def forward(self, x, target, scale=1.0):
                return self.norm(x)
        def get_inputs(): return [torch.rand(4, 3), torch.randint(0, 3, (4,))]
        def get_init_inputs(): return [3]
    """
    description = await loaded(write(tmp_path, "model.py", source))
    assert description.kind == "model_file"
    state = {tensor.name: tensor.trained for tensor in description.state}
    assert state["norm_weight"] is True
    assert state["norm_running_var"] is False
    declaration = declaration_of(description, description)
    assert str(declaration.inputs["x"]) == "float32[M, 3]"
    target = str(declaration.inputs["target"])
    assert target.startswith("int64[N] in ")
    assert target.endswith("..3")


async def test_gigabytes_of_example_inputs_are_described_without_being_drawn(
    loaded: Loading, tmp_path: Path
) -> None:
    source = """
        import torch
        Model = torch.nn.ReLU
        def get_inputs(): return [torch.rand(1 << 20, 1 << 20)]
    """
    description = await loaded(write(tmp_path, "large.py", source))
    assert description.examples is not None
    assert description.examples[0].form == "tensor"
    assert description.examples[0].shape == (1 << 20, 1 << 20)


NO_FIT = [
    ("def reference(x): return x", "takes x, but the declared inputs are x, y", NO_OPTIONS),
    ("def reference(x, y, z): return x", "not declared: z", NO_OPTIONS),
    ("def reference(x, w): return x", "not declared: w; not taken: y", NO_OPTIONS),
    ("def reference(x, y): return x", "not taken: z", parse_options(["z=1"], [])),
]


@pytest.mark.parametrize(("signature", "message", "options"), NO_FIT, ids=[n[1] for n in NO_FIT])
async def test_inputs_that_do_not_fit_the_signature_are_refused(
    signature: str, message: str, options: Options, loaded: Loading, tmp_path: Path
) -> None:
    source = ADD.replace("def reference(x, y): return x + y", signature)
    description = await loaded(write(tmp_path, "add.py", source))
    with pytest.raises(TargetBroken) as refused:
        declaration_of(description, description, options)
    assert message in refused.value.message


async def test_one_function_of_several_needs_only_its_own_inputs(loaded: Loading, tmp_path: Path) -> None:
    source = ADD + 'INPUTS["w"] = "float32[M]"\nDIMS["M"] = [2, 3]\ndef double(x): return 2 * x\n'
    description = await loaded(write(tmp_path, "add.py", source), "double")
    declaration = declaration_of(description, description)
    assert list(declaration.inputs) == ["x"]
    assert list(declaration.dims) == ["N"]


async def test_other_keys_in_the_state_are_refused_with_both_lists(
    worker: WorkerClient, interpreter: Runtime
) -> None:
    path = Path(__file__).parents[1] / "kernels" / "linear_norm_module.py"
    request = ValidationRequest(candidate=Target(path=path, name="WithoutNorm"), reference=Target(path=path))
    with pytest.raises(TargetBroken) as refused:
        await validate(worker, request, interpreter)
    assert "the reference has `linear_weight`" in refused.value.message
    assert "`WithoutNorm` has `projection_weight`" in refused.value.message


@pytest.mark.parametrize("name", ["k.py", "package/k.py"])
async def test_a_target_rewritten_within_a_second_is_read_again_and_what_it_imports_keeps_its_bytecode(
    name: str, loaded: Loading, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if path.parent != tmp_path:
        write(path.parent, "__init__.py", "")
    write(tmp_path, "neighbour.py", "FIRST = 4")

    async def declared(size: int) -> object:
        path.write_text(f"import neighbour\n{ADD.replace('[4, 9]', f'[{size}, 9]')}", encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return (await loaded(path, role="candidate")).dims

    assert await declared(4) == {"N": [4, 9]}
    kept = {file.name.partition(".")[0] for file in tmp_path.rglob("*.pyc")}
    assert kept - {"__init__"} == {"neighbour"}
    # As whoever else imports the file leaves it: bytecode counts as new by size and second.
    py_compile.compile(str(path))
    assert await declared(8) == {"N": [8, 9]}
