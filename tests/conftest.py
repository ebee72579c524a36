import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import HealthCheck, settings

from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import EXPORT, GRADIENTS, declaration_of, open_target
from pytorch_to_triton_server.machine import choose_runtime

Written = Callable[[str], Target]
Tracing = Callable[..., Awaitable[Traced]]

# How long something takes is no outcome: a busy machine is no defect.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

HEAD = "import torch\nimport torch.nn.functional as F\n\n"

# Rewriting assertions takes seconds: pytest keeps what it made of these files, whatever this shell says.
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", help="run one share of the selected tests alone: 2/3 is the second third")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `--share` does not ask for."""
    share = config.getoption("share")
    if share is None:
        return
    kept = items[share_of(share)]
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without looking for garbage: what is imported stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def share_of(text: str) -> slice:
    """Every third test, from the second on, of `2/3`: neighbors, which take about as long, are spread."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--share {text}: write it as 2/3, the second of three.")
    return slice(int(number) - 1, None, int(count))


def sampled(values: Sequence[object], step: int) -> list[ParameterSet]:
    """The parameters of a survey: one of `step` for every change, the others with the corpora."""
    return [pytest.param(v, marks=() if i % step == 0 else pytest.mark.corpora) for i, v in enumerate(values)]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache folder, away from the real one."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("PYTORCH_TO_TRITON_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def bytecode() -> Iterator[None]:
    """The processes that tests start keep bytecode, as a user's do, whatever this shell says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session")
async def worker(anyio_backend: str, cache: Path, bytecode: None) -> AsyncIterator[WorkerClient]:
    """One client for all tests: each runtime's fork server starts once."""
    async with open_client(RunFolders(cache / "runs")) as worker:
        yield worker


@pytest.fixture(scope="session")
def interpreter() -> Runtime:
    """Kernels run under Triton's interpreter, on CPU tensors."""
    return Runtime(python=sys.executable, interpreter=True)


@pytest.fixture(scope="session")
async def device(worker: WorkerClient) -> Runtime:
    """Kernels are compiled and run on a GPU; without one, whoever asks for it is skipped."""
    runtime = await choose_runtime(worker, "auto")
    if runtime.interpreter:
        pytest.skip("needs a GPU")
    return runtime


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the text of a file with a function `f`, torch imported above it."""

    def written(text: str) -> Target:
        path = tmp_path / "target.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return Target(path=path, name="f")

    return written


@pytest.fixture
def traced(worker: WorkerClient, interpreter: Runtime) -> Tracing:
    """Traces a target."""

    async def traced(target: Target, *, backward: bool = False) -> Traced:
        needs = GRADIENTS if backward else EXPORT
        async with open_target(worker, target, "reference", interpreter, needs=needs) as process:
            declaration = declaration_of(process.description, process.description)
            return await trace(process, declaration, backward=backward)

    return traced
