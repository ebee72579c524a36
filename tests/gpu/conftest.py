import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.gpu.door import Door, open_door
from pytorch_to_triton.gpu.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Mode

JOBS = Path(__file__).parent / "jobs"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def door(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Door]:
    """One door for all tests: each mode's fork server starts once."""
    async with open_door(RunFolders(tmp_path_factory.mktemp("runs"))) as door:
        yield door


@pytest.fixture(scope="session")
def compiled() -> Mode:
    return Mode(python=sys.executable, interpreter=False)


@pytest.fixture(scope="session")
def honest() -> Callable[..., Job]:
    return lambda what, **arguments: Job(kind=str(JOBS / "honest.py"), arguments={"what": what, **arguments})


@pytest.fixture(scope="session")
def hostile() -> Callable[[str], Job]:
    return lambda how: Job(kind=str(JOBS / "hostile.py"), arguments={"how": how})
