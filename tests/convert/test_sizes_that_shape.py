"""Loops over a size: a program for each declared one."""

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import parse_options

from ..conftest import Written
from .conftest import Resolving

pytestmark = pytest.mark.anyio

LOOP = """
INPUTS = {"x": "float32[T, E]"}
DIMS = {"T": [4], "E": [1, 5]}


def f(x):
    last, out = torch.zeros_like(x[0]), []
    for t in range(x.shape[0]):
        last = x[t] + 0.9 * last
        out.append(last)
    return torch.stack(out)
"""


async def test_a_loop_over_a_dim_of_one_declared_size_is_drafted_at_that_size(
    resolved: Resolving, written: Written
) -> None:
    target = await resolved(written(LOOP))
    assert target.fixed == {"T": 4}
    assert 'INPUTS = {"x": "float32[4, E]"}' in target.convertible().drafted(1).text


async def test_more_programs_than_a_file_has_are_refused_with_an_option_that_converts_four(
    resolved: Resolving, written: Written
) -> None:
    target = written(LOOP.replace("[4]", "[2, 3, 4, 5, 6]"))
    with pytest.raises(NotConvertible, match="more than 4 programs") as refusal:
        (await resolved(target)).convertible()
    assert "--dim T=2,3,4,5," in refusal.value.hint
    fewer = await resolved(target, options=parse_options([], ["T=2,3,4,5"]))
    assert "tl.store" in fewer.convertible().drafted(1).text
