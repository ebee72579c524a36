"""Casts of what no integer holds: PyTorch's own kernels differ, and what GPUs give is right everywhere."""

import pytest

from ..conftest import Written
from .conftest import Conversions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("dtype", ["int16", "int32"])
async def test_a_cast_of_infinities_and_nan_is_a_kernel(
    dtype: str, written: Written, converted: Conversions
) -> None:
    head = 'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [3], "N": [5]}\n\n\n'
    conversion = await converted(written(f"{head}def f(x):\n    return (x.abs() * 2.0).to(torch.{dtype})\n"))
    assert conversion.verdict == "converted"
    assert not [note for note in conversion.notes if "leaves to PyTorch" in note]
