"""Small graphs written by hand, in the words of schema/graph.py."""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    GraphOutput,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    Shape,
    TensorInput,
)
from pytorch_to_triton.worker.wire.packing import Packing

DIMS = {"B": 5, "S": 7, "H": 9, "M": 11, "N": 13, "D": 24, "G": 6}


def shape(*dims: str) -> Shape:
    """A shape over DIMS; `1`, products like `B*S` and quotients like `D//G` are allowed."""
    return Shape(expressions=dims, traced=tuple(sizes.value(sizes.size(d), DIMS) for d in dims))


def node(
    name: str, op: str, arguments: tuple[object, ...], to: tuple[str, ...], dtype: DType = "float32"
) -> Node:
    """An operator call; text arguments are values, lists are lists of whole numbers."""
    args = tuple(_argument(a) for a in arguments)
    return Node(name=name, op=f"aten.{op}", args=args, kwargs={}, shape=shape(*to), dtype=dtype, line=1)


def graph(inputs: dict[str, tuple[str, ...]], nodes: tuple[Node, ...], outputs: tuple[str, ...]) -> Graph:
    """A function of float32 tensors that returns the named values."""
    used = {d: n for d, n in DIMS.items() if any(d in dims for dims in inputs.values())}
    return Graph(
        function="f",
        parameters=tuple(inputs),
        inputs=tuple(TensorInput(name=n, shape=shape(*dims), dtype="float32") for n, dims in inputs.items()),
        state={},
        constants={},
        fixed=(),
        nodes=nodes,
        outputs=tuple(GraphOutput(path=f"out[{i}]", name=name) for i, name in enumerate(outputs)),
        result=Packing(kind="tuple", items=tuple(f"out[{i}]" for i in range(len(outputs)))),
        dims=used,
        guards=(),
    )


def _argument(value: object) -> NodeArgument:
    match value:
        case str():
            return NodeRef(name=value)
        case list():
            return ArgumentList(items=tuple(_argument(v) for v in value))
        case bool() | int() | float() | None:
            return Literal_(value=value)
    raise AssertionError(value)
