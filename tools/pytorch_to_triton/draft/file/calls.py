"""Calls that stay PyTorch's, and views of tensors in `run`, as source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pytorch_to_triton.draft.file.lines import Lines, wrapped
from pytorch_to_triton.draft.program import Call, ConvolutionCall, Program, Seed, buffers_of, is_plain
from pytorch_to_triton.schema.dtype import ITEM_BYTES
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
    "permute": "permute", "unsqueeze": "unsqueeze", "squeeze": "squeeze", "expand": "expand",
    "view": "reshape", "flip": "flip", "clone": "clone", "select": "select",
}  # fmt: skip
"""Operators that a person writes as a method of the tensor."""
Operand = Callable[[str], str]
"""How a call writes a tensor, by the graph's name."""
TORCH_NAMES = frozenset({
    *ITEM_BYTES,
    "contiguous_format", "preserve_format", "channels_last", "channels_last_3d",
})  # fmt: skip
"""Dtypes and memory formats, which the graph has by name."""
TORCH_FUNCTIONS = frozenset({"addmm", "baddbmm", "bmm", "cumsum", "mm", "sort", "topk"})
"""Operators that are functions of torch with the same parameters."""
PRODUCTS = frozenset(f"aten.{name}.default" for name in ("mm", "bmm", "addmm", "baddbmm"))
"""Operators whose results always lie in order."""


def tensor_text(program: Program, name: str) -> str:
    """The value of a node of the graph, as an expression in `run`."""
    nodes = {n.name: n for n in program.graph.nodes}
    if name not in nodes:
        return name
    if name not in program.names:
        return _part_of(program, nodes[name])
    own = program.names[name]
    if own in program.steps or any(own in c.names for c in program.calls):
        return own
    for call in program.calls:
        if isinstance(call, ConvolutionCall) and call.node.name == name:
            return in_its_order(call.names[0], call)
    return _written(nodes[name], lambda n: tensor_text(program, n))


def _part_of(program: Program, node: Node) -> str:
    """One of several results: a step's tensor, a call's, or one of the views of another tensor."""
    if is_plain(program.tensors[node.name]):
        return buffers_of(program.tensors[node.name])[0]
    of, index = node.args
    assert isinstance(of, NodeRef)
    assert isinstance(index, Literal_)
    at = int(index.value)  # type: ignore[arg-type]
    call = next((c for c in program.calls if c.node.name == of.name), None)
    return f"{tensor_text(program, of.name)}[{at}]" if call is None else call.names[at]


def in_dtype(program: Program, name: str, dtype: str) -> str:
    """A node's value in a dtype; what it looks at may lie in another one."""
    buffers = buffers_of(program.tensors[name])
    kept = program.kept.get(buffers[0], dtype) if buffers else dtype
    text = tensor_text(program, name)
    return text if kept == dtype else f"{text}.to({dtype})"


def called(program: Program, call: Call, read: Collection[str]) -> list[Lines]:
    """A call that stays PyTorch's; its results need not lie in order, as what kernels `read` has to."""
    text = call_text(program, call)
    if isinstance(call, Seed):
        return [(f"{call.names[0]} = torch.randint(2**62, (), device=device)",)]
    if call.node.shape is not None:
        (name,) = call.names
        in_order = name not in read or text.endswith(".contiguous()") or call.node.op in PRODUCTS
        return [wrapped(f"{name} = {text}{'' if in_order else '.contiguous()'}")]
    results = wrapped(f"{', '.join([*call.names, '*_'])} = {text}")
    return [results, *((f"{name} = {name}.contiguous()",) for name in call.names if name in read)]


def call_text(program: Program, call: Call) -> str:
    """An operator call, with its operands in the dtypes in which PyTorch takes them."""
    taken = {n: dtype for n, dtype in program.dtypes.taken_by(call.node) if dtype}

    def operand(name: str) -> str:
        return in_dtype(program, name, taken[name]) if name in taken else tensor_text(program, name)

    if isinstance(call, ConvolutionCall):
        return _ordered_convolution(call, operand)
    return _written(call.node, operand)


def _written(node: Node, operand: Operand) -> str:
    operator = node.op.split(".")[1]
    if operator in PRETTY:
        return PRETTY[operator](node, operand)
    arguments = [argument_text(a, operand) for a in node.args]
    keywords = [
        f"{n}={'device' if n == 'device' else argument_text(a, operand)}"
        for n, a in node.kwargs.items()
        if n not in ("layout", "pin_memory")
    ]
    if operator in METHODS:
        return f"{arguments[0]}.{METHODS[operator]}({', '.join([*map(_bare, arguments[1:]), *keywords])})"
    function = operator if operator in TORCH_FUNCTIONS else f"ops.{'.'.join(node.op.split('.')[:2])}"
    return f"torch.{function}({', '.join([*arguments, *keywords])})"


def _bare(text: str) -> str:
    """A list of sizes as a method takes it."""
    return text[1:-1] if text.startswith("[") and len(text) > 2 else text


def argument_text(argument: NodeArgument, operand: Operand) -> str:
    """An argument as source."""
    match argument:
        case NodeRef(name=name):
            return operand(name)
        case ScalarRef(name=text):
            return text
        case SizeRef(expression=text):
            return text
        case NonFinite(value=text):
            return f'float("{text}")'
        case ArgumentList(items=items):
            return f"[{', '.join(argument_text(i, operand) for i in items)}]"
        case Literal_(value=str(text)) if text in TORCH_NAMES:
            return f"torch.{text}"
        case Literal_(value=value):
            return repr(value)
    raise AssertionError(argument)


def _ordered_convolution(call: ConvolutionCall, operand: Operand) -> str:
    """A call without bias, from and to memory of its order."""
    x, weight = (a.name for a in call.node.args[:2] if isinstance(a, NodeRef))
    if not call.order:
        return _convolution(call.node, [operand(x), operand(weight)])
    text = _convolution(call.node, [in_its_order(call.reads[0], call), operand(weight)])
    # Where a dim is 1, PyTorch may take another order for it: that is a copy then, and none otherwise.
    return f"{text}.permute({', '.join(map(str, call.order))}).contiguous()"


def in_its_order(name: str, call: ConvolutionCall) -> str:
    """The tensor in memory of the call's order, as PyTorch's operators see it."""
    back = [call.order.index(d) for d in range(len(call.order))]
    return f"{name}.permute({', '.join(map(str, back))})"


def _biased_convolution(node: Node, operand: Operand) -> str:
    return _convolution(node, [operand(a.name) for a in node.args[:3] if isinstance(a, NodeRef)])


def _convolution(node: Node, given: Sequence[str]) -> str:
    stride, padding, dilation, transposed, output_padding, groups = node.args[3:]
    rank = len(_numbers(stride))
    is_transposed = transposed == Literal_(value=True)
    options: list[tuple[str, Sequence[int], int]] = [
        ("stride", _numbers(stride), 1),
        ("padding", _numbers(padding), 0),
        ("dilation", _numbers(dilation), 1),
    ]
    if is_transposed:
        options.insert(2, ("output_padding", _numbers(output_padding), 0))
    keywords = [f"{n}={_size(v)}" for n, v, plain in options if any(i != plain for i in v)]
    if groups != Literal_(value=1):
        keywords.append(f"groups={argument_text(groups, str)}")
    name = f"conv{'_transpose' if is_transposed else ''}{rank}d"
    return f"torch.nn.functional.{name}({', '.join([*given, *keywords])})"


def _split(node: Node, operand: Operand) -> str:
    x, *sizes = (argument_text(a, operand) for a in node.args)
    return f"{x}.split({', '.join(sizes)})"


def _numbers(argument: NodeArgument) -> list[int]:
    assert isinstance(argument, ArgumentList)
    return [int(i.value) for i in argument.items if isinstance(i, Literal_)]  # type: ignore[arg-type]


def _size(values: Sequence[int]) -> str:
    return str(values[0]) if len(set(values)) == 1 else f"({', '.join(map(str, values))})"


PRETTY: Mapping[str, Callable[[Node, Operand], str]] = {
    "convolution": _biased_convolution, "split_with_sizes": _split,
}  # fmt: skip
"""Operators that a person writes in a way of their own."""
