"""Calls that stay PyTorch's, and views of tensors in `run`, as source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytorch_to_triton.draft.program import Program
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    ScalarRef,
    SizeRef,
)

METHODS: Mapping[str, str] = {
    "permute": "permute", "transpose": "transpose", "t": "t", "unsqueeze": "unsqueeze", "squeeze": "squeeze",
    "expand": "expand", "view": "reshape", "_unsafe_view": "reshape", "reshape": "reshape", "flip": "flip",
    "clone": "clone", "contiguous": "contiguous", "detach": "detach", "select": "select",
}  # fmt: skip
"""Operators that a person writes as a method of the tensor."""
DTYPE_NAMES = frozenset(
    {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"}
)


def tensor_text(program: Program, name: str) -> str:
    """The value of a node of the graph, as an expression in `run`."""
    if name in program.names:
        tensor = program.tensors.get(name)
        own = program.names[name]
        made = {own} | {n for c in program.calls for n in c.names}
        if own in program.steps or (own in made and any(own in c.names for c in program.calls)):
            return own
        assert tensor is not None
        return call_text(program, next(n for n in program.graph.nodes if n.name == name))
    node = next((n for n in program.graph.nodes if n.name == name), None)
    if node is None:
        return name
    of, index = node.args
    assert isinstance(of, NodeRef)
    assert isinstance(index, Literal_)
    call = next(c for c in program.calls if c.node.name == of.name)
    return call.names[int(index.value)]  # type: ignore[arg-type]


def call_text(program: Program, node: Node) -> str:
    """An operator call."""
    operator = node.op.split(".")[1]
    if operator in PRETTY and (found := PRETTY[operator](program, node)):
        return found
    arguments = [argument_text(program, a) for a in node.args]
    keywords = [f"{n}={argument_text(program, a)}" for n, a in node.kwargs.items()]
    if operator in METHODS:
        return f"{arguments[0]}.{METHODS[operator]}({', '.join([*map(_bare, arguments[1:]), *keywords])})"
    return f"torch.ops.{'.'.join(node.op.split('.')[:2])}({', '.join([*arguments, *keywords])})"


def _bare(text: str) -> str:
    """A list of sizes as a method takes it."""
    return text[1:-1] if text.startswith("[") and len(text) > 2 else text


def argument_text(program: Program, argument: NodeArgument) -> str:
    """An argument as source."""
    match argument:
        case NodeRef(name=name):
            return tensor_text(program, name)
        case ScalarRef(name=name):
            return name
        case SizeRef(expression=text):
            return text
        case NonFinite(value=text):
            return f'float("{text}")'
        case ArgumentList(items=items):
            return f"[{', '.join(argument_text(program, i) for i in items)}]"
        case Literal_(value=str(text)) if text in DTYPE_NAMES:
            return f"torch.{text}"
        case Literal_(value=value):
            return repr(value)
    raise AssertionError(argument)


def _convolution(program: Program, node: Node) -> str | None:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.args
    rank = len(_numbers(stride))
    is_transposed = transposed == Literal_(value=True)
    given = [tensor_text(program, a.name) for a in (x, weight, bias) if isinstance(a, NodeRef)]
    options: list[tuple[str, Sequence[int], int]] = [
        ("stride", _numbers(stride), 1),
        ("padding", _numbers(padding), 0),
        ("dilation", _numbers(dilation), 1),
    ]
    if is_transposed:
        options.insert(2, ("output_padding", _numbers(output_padding), 0))
    keywords = [f"{n}={_size(v)}" for n, v, plain in options if any(i != plain for i in v)]
    if groups != Literal_(value=1):
        keywords.append(f"groups={argument_text(program, groups)}")
    name = f"conv{'_transpose' if is_transposed else ''}{rank}d"
    return f"torch.nn.functional.{name}({', '.join([*given, *keywords])})"


def _numbers(argument: NodeArgument) -> list[int]:
    assert isinstance(argument, ArgumentList)
    return [int(i.value) for i in argument.items if isinstance(i, Literal_)]  # type: ignore[arg-type]


def _size(values: Sequence[int]) -> str:
    return str(values[0]) if len(set(values)) == 1 else f"({', '.join(map(str, values))})"


PRETTY: Mapping[str, Callable[[Program, Node], str | None]] = {"convolution": _convolution}
"""Operators with a name of their own in torch.nn.functional."""
