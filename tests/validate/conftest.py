from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .verdicts import Judge

LONG_SECONDS = 120.0


@pytest.fixture(scope="session")
def judge(worker: WorkerClient, interpreter: Runtime) -> Judge:
    """Validates a file, or a name in it, under the interpreter and with a fixed seed."""

    async def judge(path: Path, name: str | None = None, **request: Any) -> Verdict:
        settings: dict[str, Any] = {"seed": 7, "seconds": LONG_SECONDS, **request}
        target = Target(path=path, name=name)
        return await validate(worker, ValidationRequest(candidate=target, **settings), interpreter)

    return judge
