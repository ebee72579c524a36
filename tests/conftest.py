import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pytorch_to_triton.gpu.door import Door, open_door
from pytorch_to_triton.gpu.run_folder import RunFolders
from pytorch_to_triton.gpu.target import declaration_of, describe
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.schema.declaration import NO_OPTIONS
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton_server.machine import choose_mode

Written = Callable[[str], Target]
Tracing = Callable[[Target], Awaitable[Traced]]

# How long something takes is no outcome: a busy machine is no defect.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

HEAD = "import torch\nimport torch.nn.functional as F\n\n"


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


@pytest.fixture(scope="session")
async def door(anyio_backend: str, cache: Path) -> AsyncIterator[Door]:
    """One door for all tests: each mode's fork server starts once."""
    async with open_door(RunFolders(cache / "runs")) as door:
        yield door


@pytest.fixture(scope="session")
def interpreter() -> Mode:
    """Kernels run under Triton's interpreter, on CPU tensors."""
    return Mode(python=sys.executable, interpreter=True)


@pytest.fixture(scope="session")
async def device(door: Door) -> Mode:
    """Kernels are compiled and run on a GPU; without one, whoever asks for it is skipped."""
    mode = await choose_mode(door, "auto")
    if mode.interpreter:
        pytest.skip("needs a GPU")
    return mode


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the text of a file with a function `f`, torch imported above it."""

    def written(text: str) -> Target:
        path = tmp_path / "target.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return Target(path=path, name="f")

    return written


@pytest.fixture
def traced(door: Door, interpreter: Mode) -> Tracing:
    """Traces a target."""

    async def traced(target: Target) -> Traced:
        description = await describe(door, target, "reference", interpreter)
        declaration = declaration_of(description, description, NO_OPTIONS)
        return await trace(door, target, declaration, interpreter)

    return traced
