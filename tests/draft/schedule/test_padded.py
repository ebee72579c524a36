"""Large products of tensors whose rows begin anywhere are products of copies whose rows do not."""

import numpy as np
import pytest

from pytorch_to_triton.schema.graph import Graph

from ...convert.draft.graphs import drafted, graph, node
from ..test_random_programs import disagreements

OUT = ("M", "N")


def product(op: str, x: tuple[str, ...], w: tuple[str, ...]) -> Graph:
    """A product, a bias for each column, and a residual."""
    out = (*x[:-2], *OUT)
    nodes = (
        node("p", op, ("x", "w"), out),
        node("t", "add.Tensor", ("p", "b"), out),
        node("s", "mul.Tensor", ("t", "r"), out),
    )
    return graph({"x": x, "w": w, "b": ("N",), "r": out}, nodes, ("s",))


PLAIN = product("mm.default", ("M", "D"), ("D", "N"))
PRODUCTS = {
    "rows by columns": PLAIN,
    "a linear layer": product("linear.default", ("M", "D"), ("N", "D")),
    "a batch": product("bmm.default", ("B", "M", "D"), ("B", "D", "N")),
    "as many summands as fill wide loads": product("mm.default", ("M", "64"), ("64", "N")),
}


@pytest.mark.parametrize("what", PRODUCTS)
def test_every_way_to_compute_it_agrees_with_its_steps(what: str) -> None:
    rng = np.random.default_rng(0)
    given = {i.name: rng.standard_normal(i.shape.traced) for i in PRODUCTS[what].inputs}
    assert not list(disagreements(PRODUCTS[what], given))


@pytest.mark.parametrize(
    ("sizes", "copies"),
    [
        ({"M": 1024, "D": 1023, "N": 1025}, {"x_padded", "w_padded"}),
        ({"M": 1024, "D": 8, "N": 1025}, set()),
        ({"M": 64, "D": 1023, "N": 1025}, set()),
        ({"M": 1023, "D": 1024, "N": 1024}, set()),
    ],
)
def test_copies_are_made_where_they_are_paid_for(sizes: dict[str, int], copies: set[str]) -> None:
    made = drafted(PLAIN, 3, {name: [size] for name, size in sizes.items()})
    stored = {b.name for k in made.kernels for b in k.printed.stores if b.name.endswith("_padded")}
    assert stored == copies


def test_a_copy_has_the_dtype_of_the_call_s_tensor() -> None:
    made = drafted(PLAIN, 3, {"M": [1024], "D": [1023], "N": [1025]})
    assert "x_padded = torch.empty((M, n_cols), device=device, dtype=x.dtype)" in made.text
