from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import ConversionRequest, convert
from pytorch_to_triton.convert.tracing import Traced, trace
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.declaration import NO_OPTIONS, Options
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.target import declaration_of, describe

Written = Callable[[str], Target]
Tracing = Callable[[Target], Awaitable[Traced]]
Conversions = Callable[..., Awaitable[Conversion]]

HEAD = "import torch\nimport torch.nn.functional as F\n\n"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the text of a file with a function `f`, torch imported above it."""

    def written(text: str) -> Target:
        path = tmp_path / "target.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return Target(path=path, name="f")

    return written


@pytest.fixture
def traced(door: Door, interpreter: Mode) -> Tracing:
    """Traces a target."""

    async def traced(target: Target) -> Traced:
        description = await describe(door, target, "reference", interpreter)
        declaration = declaration_of(description, description, NO_OPTIONS)
        return await trace(door, target, declaration, interpreter)

    return traced


@pytest.fixture
def converted(door: Door, interpreter: Mode, tmp_path: Path) -> Conversions:
    """Converts a target with a fixed seed into a temporary folder."""

    async def converted(target: Target, options: Options = NO_OPTIONS) -> Conversion:
        request = ConversionRequest(target=target, options=options, into=tmp_path / "converted", seed=7)
        return await convert(door, request, interpreter)

    return converted
