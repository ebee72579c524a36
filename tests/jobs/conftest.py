import sys
from functools import partial
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from tests.jobs.processes import LONG_SECONDS, Ask


@pytest.fixture(scope="session")
def compiled() -> Runtime:
    return Runtime(python=sys.executable, interpreter=False)


@pytest.fixture(scope="session")
def empty_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH: torch and triton without contents, for processes that compute nothing."""
    folder = tmp_path_factory.mktemp("empty_libraries")
    for file in ("torch.py", "triton/__init__.py", "triton/language.py"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    return folder


@pytest.fixture
def ask(worker: WorkerClient, compiled: Runtime) -> Ask:
    return partial(worker.ask, runtime=compiled, seconds=LONG_SECONDS)
