"""Sizes named with `--at`: what they leave out is filled in, and where nothing can be called is refused."""

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import parse_declaration, parse_points
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inputs.timing_dims import filled_in, named_points

INPUTS: dict[str, object] = {"x": "float32[M, N]", "index": "int64[M] in 0..N"}
DIMS = {"M": [3, 16], "N": [8, 40]}


@pytest.mark.parametrize(
    ("texts", "requires", "points"),
    [
        (["M=8192,N=4096"], (), [{"M": 8192, "N": 4096}]),
        (["M=8192,N=4096", "M=16,N=128"], (), [{"M": 16, "N": 128}, {"M": 8192, "N": 4096}]),
        (["M=16,N=128", "N=128,M=16"], (), [{"M": 16, "N": 128}]),
        (["N=4096"], (), [{"M": 16, "N": 4096}]),
        (["N=4096"], ("M < 10",), [{"M": 3, "N": 4096}]),
        (["M=0"], (), [{"M": 0, "N": 40}]),
        ([], (), []),
    ],
)
def test_a_point_has_a_size_of_every_dim_and_the_smallest_comes_first(
    texts: list[str], requires: tuple[str, ...], points: list[Point]
) -> None:
    declaration = parse_declaration(INPUTS, DIMS, requires)
    assert [*named_points(declaration, parse_points(texts))] == points


@pytest.mark.parametrize(
    ("texts", "requires", "words"),
    [
        (["K=4"], (), "no input uses K"),
        (["M=5,N=7"], ("N % 8 == 0",), "no call can be made at M=5 N=7: N % 8 == 0 does not hold"),
        (["N=4"], ("N >= 8",), "N >= 8 does not hold"),
        (["M=5,N=8", "M=5,N=12"], ("N % 8 == 0",), "at M=5 N=12"),
        (["N=0"], (), "no call can be made at M=16 N=0: "),
    ],
)
def test_a_point_at_which_nothing_can_be_called_is_refused(
    texts: list[str], requires: tuple[str, ...], words: str
) -> None:
    declaration = parse_declaration(INPUTS, DIMS, requires)
    with pytest.raises(BadInput) as refused:
        named_points(declaration, parse_points(texts))
    assert words in str(refused.value.message)


def test_what_was_filled_in_is_said() -> None:
    declaration = parse_declaration(INPUTS, DIMS)
    points = parse_points(["N=4096", "N=64"])
    said = filled_in(points, named_points(declaration, points))
    assert said == "Dims that --at leaves out have their largest declared sizes: M=16."
    whole = parse_points(["M=1,N=4096"])
    assert filled_in(whole, named_points(declaration, whole)) == ""
