"""Inspecting real kernels, for GPUs that are not here."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.inspect.inspect import InspectionRequest, inspect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.compiled import Inspection
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

Inspecting = Callable[..., Awaitable[Inspection]]


@pytest.fixture(scope="session")
def inspecting(worker: WorkerClient, interpreter: Runtime) -> Inspecting:
    """Inspects a file, or `name` in it, for `arch`; the same question is asked once."""
    known: dict[str, Inspection] = {}

    async def inspecting(
        path: Path, arch: str | None, name: str | None = None, **settings: object
    ) -> Inspection:
        target = Target(path=path, name=name)
        request = InspectionRequest.model_validate({"candidate": target, "arch": arch, **settings})
        key = repr(request)
        if key not in known:
            known[key] = await inspect(worker, request, interpreter)
        return known[key]

    return inspecting
