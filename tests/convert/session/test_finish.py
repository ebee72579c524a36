"""The finished files work where only torch and triton are: as a function, compiled, in a module, in tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.convert.session.finish import FinishRequest, finish, with_measured
from pytorch_to_triton.convert.session.store import SessionFolder
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.versions import Device, Versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.finished import FinishedConversion
from pytorch_to_triton.schema.job import Runtime

from ...benchmark.sweeps import benchmark, softmax_sweep
from ...conftest import Written
from ..drafting import finished_text
from .conftest import Starting, Submitting
from .files import AUTOTUNED, DOUBLED_KERNEL
from .silent import Silent

pytestmark = pytest.mark.anyio

SCALED = """
INPUTS = {"x": "float32[M, 3] in -4..4", "scale": 0.5}
DIMS = {"M": [4]}


def f(x, scale=0.5):
    return x * scale, x.sum(dim=-1)
"""
GATED = """
INPUTS = {"x": "float32[M, 16]"}
DIMS = {"M": [1, 5]}


class Gated(torch.nn.Module):
    def __init__(self, width: int = 16, sharpness: float = 2.0):
        super().__init__()
        self.sharpness = sharpness
        self.listed = [torch.nn.LayerNorm(width)]
        self.layers = torch.nn.ModuleList(self.listed)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x):
        return x + self.dropout(torch.sigmoid(self.sharpness * self.layers[0](x)))
"""
DOUBLED = """
INPUTS = {"x": "float32[M, N] in -4..4", "offset": 1.0}
DIMS = {"M": [3], "N": [40]}


def f(x, offset=1.0, exactly=True):
    return 2.0 * x + offset if exactly else (2.0 * x).floor() + offset
"""
Finishing = Callable[..., Awaitable[FinishedConversion]]


@pytest.fixture
def session(started: Starting, submitted: Submitting) -> Starting:
    """A session whose first gate has opened, for a draft or for a kernel that somebody wrote."""

    async def session(text: str, kernel: str | None = None, **setting: Any) -> SessionFolder:
        folder = await started(text, **setting)
        answer = await submitted(folder, kernel)
        assert answer.verdict == "opened", answer.summary
        return folder

    return session


class Watching(Silent):
    """Keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.shown.append(message)


@pytest.fixture
def finished(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Finishing:
    """Finishes a session into a folder."""

    async def finished(
        folder: SessionFolder, listener: Silent | None = None, **options: Any
    ) -> FinishedConversion:
        request = FinishRequest(into=tmp_path / "result", **options)
        return await finish(worker, folder, request, interpreter, listener or Silent())

    return finished


def used(folder: Path, script: str) -> str:
    """What a user's script prints beside the finished files, in Triton's own interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


async def test_a_function_with_gradients_and_two_results_passes_the_tests_that_come_with_it(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    watching = Watching()
    result = await finished(await session(SCALED, backward=True), watching)
    assert watching.shown == ["running test_f_triton.py"]
    assert result.tests is not None
    assert result.verdict == "finished", result.tests.output
    assert " passed" in result.tests.summary
    assert [file.path.name for file in result.files] == [
        "f_triton.py", "test_f_triton.py", "bench_f_triton.py", "f_triton_report.md", "f_triton_report.html",
    ]  # fmt: skip
    assert str(tmp_path) not in (tmp_path / "result/f_triton.py").read_text(encoding="utf-8")


async def test_what_the_kernels_do_not_take_goes_to_pytorch(
    worker: WorkerClient, interpreter: Runtime, written: Written, tmp_path: Path
) -> None:
    request = ConversionRequest(target=written(DOUBLED))
    finished_text(await resolve(worker, request, interpreter), tmp_path)
    said = used(
        tmp_path,
        """
import torch
from f_triton import f, reference
x = torch.randn(3, 7)
assert torch.allclose(f(x, offset=0.25), reference(x, 0.25), atol=1e-6)
for _ in range(2):
    assert torch.equal(f(x.double()), reference(x.double()))
x.requires_grad_()
f(x).sum().backward()
assert x.grad is not None
""",
    )
    assert said.count("x is torch.float64") == 1
    assert said.count("gradients are wanted") == 1


@pytest.mark.corpora
async def test_the_tests_run_in_a_package_whatever_pytest_s_settings_are(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    result = await finished(await session(DOUBLED))
    package = tmp_path / "mine" / "kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for file in result.files:
        shutil.copy(file.path, package)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "--import-mode=importlib", str(package)],
        cwd=tmp_path / "mine",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.corpora
async def test_a_module_is_replaced_and_only_where_it_computes_the_same(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    result = await finished(await session(GATED, name="Gated"))
    assert result.tests is not None
    assert result.verdict == "finished", result.tests.output
    said = used(
        tmp_path / "result",
        """
import copy, pickle, torch
from gated_triton import Gated, GatedTriton, use_kernels
model = torch.nn.Sequential(Gated(), Gated(sharpness=3.0)).eval()
before = copy.deepcopy(model)
assert use_kernels(model) == 1
x = torch.randn(5, 16)
with torch.no_grad():
    assert torch.allclose(model(x), before(x), atol=1e-6)
    assert pickle.loads(pickle.dumps(model))(x).equal(model(x))
    model.train()
    torch.manual_seed(0); there = model(x)
    torch.manual_seed(0); assert torch.equal(there, before.train()(x))
assert [name for name, _ in model.named_parameters()] == [name for name, _ in before.named_parameters()]
""",
    )
    assert "this Gated is set up in another way" in said
    assert "it is in training mode" in said


@pytest.mark.corpora
async def test_a_kernel_written_by_hand_stands_for_the_declared_options_alone(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    kernel = DOUBLED_KERNEL.replace("def run(x):", "def run(x, offset=1.0, exactly=True):")
    kernel = kernel.replace("n_elements, BLOCK: tl.constexpr", "n_elements, offset, BLOCK: tl.constexpr")
    kernel = kernel.replace("2.0 * x + 1.0", "2.0 * x + offset").replace(
        "n_elements, BLOCK=64", "n_elements, offset, BLOCK=64"
    )
    result = await finished(await session(DOUBLED, kernel))
    assert result.tests is not None
    assert result.verdict == "finished", result.tests.output
    said = used(
        tmp_path / "result",
        """
import torch
from f_triton import f
assert torch.equal(f(torch.ones(3, 4), 5.0), torch.full((3, 4), 7.0))
assert torch.equal(f(torch.ones(3, 4), 5.0, exactly=False), torch.full((3, 4), 7.0))
""",
    )
    assert "offset" not in said
    assert "exactly is False, and the kernels are for True" in said


@pytest.mark.corpora
async def test_nothing_of_somebody_else_is_replaced_and_a_dry_run_writes_nothing(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    folder = await session(DOUBLED)
    planned = await finished(folder, dry_run=True)
    assert planned.verdict == "planned"
    assert {file.there for file in planned.files} == {"would be new"}
    assert not (tmp_path / "result").exists()
    (tmp_path / "result").mkdir()
    own = tmp_path / "result/test_f_triton.py"
    own.write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match="was not written by pytorch-to-triton"):
        await finished(folder)
    assert [file.name for file in (tmp_path / "result").iterdir()] == [own.name]
    assert (await finished(folder, force=True)).files[1].there == "replaced"
    assert "mine" not in own.read_text(encoding="utf-8")
    (tmp_path / "result/f_triton.py").write_text("changed by hand", encoding="utf-8")
    with pytest.raises(BadInput, match="changed after"):
        await finished(folder)


async def test_a_session_without_an_open_gate_is_not_finished(started: Starting, finished: Finishing) -> None:
    with pytest.raises(BadInput, match=r"No gate of .* has opened yet"):
        await finished(await started(DOUBLED))


def test_what_was_tuned_on_a_device_becomes_a_table_by_size() -> None:
    """The configurations are as a benchmark reports them; nothing is timed here."""
    chosen = [
        TunedConfig(kernel="double_kernel", key={"n_elements": n}, config={"BLOCK": b, "num_warps": 4})
        for n, b in ((4096, 128), (2**24, 1024))
    ]
    timed = benchmark("softmax.py", softmax_sweep()).model_copy(update={"tuned": tuple(chosen)})
    device = Device.model_construct(name="NVIDIA H200")
    found = Versions.model_construct(triton="3.6.0", devices=(device,))
    text, notes = with_measured(AUTOTUNED, timed, found)
    assert notes == ()
    assert "@triton.autotune" not in text
    assert "4096" in text
    assert "NVIDIA H200, Triton 3.6.0" in text
    untouched = timed.model_copy(update={"tuned": ()})
    assert with_measured(AUTOTUNED, untouched, found) == (AUTOTUNED, ())


@pytest.mark.corpora
async def test_a_replaced_module_follows_what_is_changed_later(
    session: Starting, finished: Finishing, tmp_path: Path
) -> None:
    await finished(await session(GATED, name="Gated"))
    used(
        tmp_path / "result",
        """
import copy, torch
from gated_triton import Gated, use_kernels

class Wrapped(torch.nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside, self.weight, self.bias = inside, inside.weight, inside.bias
    def forward(self, x):
        return self.inside(x) + 3

def sharper(module): module.sharpness = 5.0
def hooked(module): module.layers[0].register_forward_hook(lambda *given: 2 * given[2])
def wrapped(module): module.layers[0] = Wrapped(module.layers[0])
def coarser(module): module.layers[0].eps = 0.5

x = torch.randn(5, 16)
for change in (sharper, hooked, wrapped, coarser):
    there = Gated().eval()
    module = copy.deepcopy(there)
    assert use_kernels(module) == 1
    change(there), change(module)
    with torch.no_grad():
        assert torch.equal(module(x), there(x)), change
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        assert torch.allclose(compiled(x), there(x), atol=1e-6), change
""",
    )


@pytest.mark.corpora
async def test_results_in_a_dict_of_lists_are_finished(session: Starting, finished: Finishing) -> None:
    nested = DOUBLED.replace("return 2.0 * x + offset if exactly else (2.0 * x).floor() + offset",
                             "return {'a': torch.exp(x), 'b': [x + offset]}")  # fmt: skip
    result = await finished(await session(nested))
    assert result.tests is not None
    assert result.verdict == "finished", result.tests.output
