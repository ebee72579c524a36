"""What a graph must move: inputs once, outputs once, at the dims and dtypes that are asked about."""

from pytorch_to_triton.graph.cost import bytes_moved
from pytorch_to_triton.schema.case import DType
from pytorch_to_triton.schema.graph import Graph, Node, NodeRef, Output, Shape, TensorInput

WIDE = Shape(expressions=("M", "N"), traced=(11, 13))
ROW = Shape(expressions=("M",), traced=(11,))


def computed(name: str, op: str, shape: Shape, dtype: DType) -> Node:
    return Node(name=name, op=op, args=(NodeRef(name="x"),), kwargs={}, shape=shape, dtype=dtype)


def row_sum() -> Graph:
    """x: float32[M, N] -> float32[M], and a mask bool[M, N]."""
    return Graph(
        function="f",
        parameters=("x",),
        inputs=(TensorInput(name="x", shape=WIDE, dtype="float32"),),
        state={},
        constants={},
        fixed=(),
        nodes=(
            computed("s", "aten.sum.dim_IntList", ROW, "float32"),
            computed("m", "aten.gt.Scalar", WIDE, "bool"),
        ),
        outputs=(Output(path="out[0]", name="s"), Output(path="out[1]", name="m")),
        structure="tuple",
        dims={"M": 11, "N": 13},
        guards=(),
    )


def test_inputs_and_outputs_count_once_each() -> None:
    assert bytes_moved(row_sum(), {"M": 2, "N": 100}, {}) == 2 * 100 * 4 + 2 * 4 + 2 * 100


def test_an_output_follows_the_dtype_of_the_first_input() -> None:
    assert bytes_moved(row_sum(), {"M": 2, "N": 100}, {"x": "bfloat16"}) == 2 * 100 * 2 + 2 * 2 + 2 * 100


def test_an_empty_size_moves_only_what_has_elements() -> None:
    assert bytes_moved(row_sum(), {"M": 2, "N": 0}, {}) == 2 * 4
