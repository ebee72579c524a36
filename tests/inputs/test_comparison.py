"""COMPARE: what of the results is free; what cannot be read is answered with the form."""

import pytest

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.comparison import parse_comparisons, refuse_unknown
from pytorch_to_triton.worker.wire.comparison import Unordered


@pytest.mark.parametrize(
    ("text", "results", "dim"),
    [
        ("unordered(out)", ("out",), -1),
        ("unordered(out[0], out[1], dim=-1)", ("out[0]", "out[1]"), -1),
        (" unordered( out.boxes,out.scores[2] , dim = 1 ) ", ("out.boxes", "out.scores[2]"), 1),
    ],
)
def test_results_in_any_order_are_read_and_written(text: str, results: tuple[str, ...], dim: int) -> None:
    comparisons = (Unordered(results=results, dim=dim),)
    assert parse_comparisons([text]) == comparisons
    assert parse_comparisons([str(comparisons[0])]) == comparisons


@pytest.mark.parametrize(
    ("texts", "problem", "fix"),
    [
        (["pairs(out[0])"], "this is no comparison", "unordered(out[0], out[1], dim=-1)"),
        (["unordered()"], "this is no comparison", "unordered(out[0], out[1], dim=-1)"),
        ([{"out": "sorted"}], "this is no comparison", "unordered(out[0], out[1], dim=-1)"),
        (["unordered(out)", "unordered(out, dim=0)"], "out is named twice", "Name each result once"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_form(texts: list[object], problem: str, fix: str) -> None:
    with pytest.raises(BadDeclaration) as caught:
        parse_comparisons(texts)
    assert problem in caught.value.message
    assert fix in caught.value.hint


def test_a_result_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadDeclaration, match=r"out\[2\] is no result: there are out\[0\], out\[1\]"):
        refuse_unknown([Unordered(results=("out[0]", "out[2]"))], ["out[0]", "out[1]"])
