from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.convert.convert import convert
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import ResolvedTarget, resolve
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .eager_calls import Draft, differences

Conversions = Callable[..., Awaitable[Conversion]]
Resolving = Callable[..., Awaitable[ResolvedTarget]]
Judging = Callable[..., Awaitable[Verdict]]
Comparing = Callable[..., Awaitable[Mapping[str, object]]]


@pytest.fixture
def converted(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Conversions:
    """Converts a target with a fixed seed into a temporary folder."""

    async def converted(
        target: Target, options: Options = NO_OPTIONS, into: Path = tmp_path / "converted", **asked: Any
    ) -> Conversion:
        request = ConversionRequest(target=target, options=options, into=into, seed=7, **asked)
        return await convert(worker, request, interpreter)

    return converted


@pytest.fixture(scope="session")
def resolved(worker: WorkerClient, interpreter: Runtime) -> Resolving:
    """Resolves a target; what else is asked of its conversion is given by name."""

    async def resolved(target: Target, **asked: Any) -> ResolvedTarget:
        return await resolve(worker, ConversionRequest(target=target, **asked), interpreter)

    return resolved


@pytest.fixture
def judged(worker: WorkerClient, interpreter: Runtime) -> Judging:
    """Validates a file against the target that it was drafted from."""

    async def judged(file: Path | str, target: Target, **asked: Any) -> Verdict:
        asked = {"candidate": Target(path=Path(file)), "reference": target, "seed": 7, **asked}
        return await validate(worker, ValidationRequest(**asked), interpreter)

    return judged


@pytest.fixture
def compared(worker: WorkerClient, interpreter: Runtime) -> Comparing:
    """Runs drafts beside eager PyTorch: what differs, by their names."""

    async def compared(*drafts: Draft) -> Mapping[str, object]:
        return await differences(worker, interpreter, drafts)

    return compared
