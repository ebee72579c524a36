import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pytorch_to_triton.gpu.door import Door, open_door
from pytorch_to_triton.gpu.run_folder import RunFolders
from pytorch_to_triton.schema.job import Mode


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
