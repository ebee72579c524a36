import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_to_triton.schema.job import Job, Runtime

JOBS = Path(__file__).parent / "jobs"


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


@pytest.fixture(scope="session")
def honest() -> Callable[..., Job]:
    return lambda what, **arguments: Job(kind=str(JOBS / "honest.py"), arguments={"what": what, **arguments})


@pytest.fixture(scope="session")
def hostile() -> Callable[[str], Job]:
    return lambda how: Job(kind=str(JOBS / "hostile.py"), arguments={"how": how})
