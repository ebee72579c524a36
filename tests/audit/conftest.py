"""An audit of files by their source alone, unless a test chooses what they run on."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.audit.audit import AuditRequest, audit
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.finding import AuditReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

Auditing = Callable[..., Awaitable[AuditReport]]


class Steps:
    """A listener that records the steps."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float | None]] = []

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.seen.append((done, total))

    async def item(self, result: dict[str, Any]) -> None:
        pass


async def nothing_runs() -> Runtime:
    raise AssertionError("source alone is audited, and something is to be run")


@pytest.fixture
def read(worker: WorkerClient) -> Auditing:
    """Audits files and folders; only what is at least medium is listed."""

    async def read(
        *paths: Path,
        listener: Steps | None = None,
        choose: Callable[[], Awaitable[Runtime]] = nothing_runs,
        **request_fields: Any,
    ) -> AuditReport:
        usual = {"targets": tuple(Target(path=path) for path in paths), "evidence": "source"}
        request = AuditRequest(**{**usual, "severity": "medium", **request_fields})
        return await audit(worker, request, choose, listener or Steps())

    return read
