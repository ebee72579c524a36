from collections.abc import Awaitable, Callable

import pytest

from pytorch_to_triton.graph.tracing import Traced

from ..conftest import Tracing, Written

TracingText = Callable[..., Awaitable[Traced]]


@pytest.fixture
def traced(written: Written, traced: Tracing) -> TracingText:
    """Traces `f` of a file's text, torch imported above it."""
    return lambda text, **options: traced(written(text), **options)
