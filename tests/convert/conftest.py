from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import convert
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

Conversions = Callable[..., Awaitable[Conversion]]


@pytest.fixture
def converted(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Conversions:
    """Converts a target with a fixed seed into a temporary folder."""

    async def converted(
        target: Target, options: Options = NO_OPTIONS, into: Path = tmp_path / "converted"
    ) -> Conversion:
        request = ConversionRequest(target=target, options=options, into=into, seed=7)
        return await convert(worker, request, interpreter)

    return converted
