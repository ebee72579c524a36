"""Small graphs written by hand, in the words of schema/graph.py, and drafts of them."""

from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Drafted, Source, draft
from pytorch_to_triton.draft.file.reference import function_reference
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.schedule.schedule import Config
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


def single(op: str, arguments: tuple[object, ...], to: tuple[str, ...], **inputs: tuple[str, ...]) -> Graph:
    """One operator, of x in the shape of its result where no inputs are given."""
    return graph(inputs or {"x": to}, (node("s", op, arguments, to),), ("s",))


def drafted(
    traced: Graph,
    stage: Stage,
    dims: Mapping[str, Sequence[int]] | None = None,
    timed: Mapping[str, int] | None = None,
    tuned: Mapping[str, Config] | None = None,
) -> Drafted:
    """A draft at declared sizes, 5 of each dim without any, and those at which it is timed."""
    inputs = {i.name: f"float32[{', '.join(i.shape.expressions)}]" for i in traced.inputs}
    reference = function_reference(f"import torch\n\n\ndef f({', '.join(inputs)}):\n    return (x,)\n", "f")
    sizes_of = {name: (dims or {}).get(name, [5]) for name in traced.dims}
    declared = {"INPUTS": inputs, "DIMS": sizes_of, "REQUIRES": []}
    dtypes = {o.path: "x.dtype" for o in traced.outputs}
    return draft(traced, Source("f", reference, declared, dtypes, (timed,) if timed else ()), stage, tuned)


def text(traced: Graph, stage: Stage) -> str:
    """The drafted file."""
    return drafted(traced, stage).text


def _argument(value: object) -> NodeArgument:
    match value:
        case str():
            return NodeRef(name=value)
        case list():
            return ArgumentList(items=tuple(_argument(v) for v in value))
        case bool() | int() | float() | None:
            return Literal_(value=value)
    raise AssertionError(value)
