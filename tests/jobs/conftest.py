import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Runtime

JOBS = Path(__file__).parent / "jobs"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def worker(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerClient]:
    """One client for all tests: each runtime's fork server starts once."""
    async with open_client(RunFolders(tmp_path_factory.mktemp("runs"))) as worker:
        yield worker


@pytest.fixture(scope="session")
def compiled() -> Runtime:
    return Runtime(python=sys.executable, interpreter=False)


@pytest.fixture(scope="session")
def honest() -> Callable[..., Job]:
    return lambda what, **arguments: Job(kind=str(JOBS / "honest.py"), arguments={"what": what, **arguments})


@pytest.fixture(scope="session")
def hostile() -> Callable[[str], Job]:
    return lambda how: Job(kind=str(JOBS / "hostile.py"), arguments={"how": how})
