"""In which dtype `run` keeps each tensor: PyTorch's own where it returns it, or a call or a product takes it.

What passes from one kernel to another is not rounded to 16 bits: what PyTorch rounds alike on both sides of a
difference cancels there, and would not where one side passes through memory and the other does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import Load, Map, Reduce, Value, op
from pytorch_to_triton.draft.library import CONVOLUTION, PRODUCTS
from pytorch_to_triton.draft.lower.tensor import loaded
from pytorch_to_triton.draft.program import SAVED, Call, ConvolutionCall, Program, Step, buffers_of, is_plain
from pytorch_to_triton.graph.dtype_rules import FLOATS
from pytorch_to_triton.graph.skeleton import TensorDtypes
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.schema.graph import NodeRef

WIDE, SHORT = FLOATS[:2], FLOATS[2:]
"""float64 and float32, and what is shorter."""


def with_storage(program: Program, dtypes: TensorDtypes, output_dtypes: Mapping[str, str]) -> Program:
    """The program with the dtype of all that lies in memory; `output_dtypes` are those of its results."""
    results = tuple(replace(r, dtype=output_dtypes[r.path]) for r in program.results)
    program = replace(program, dtypes=dtypes, results=results)
    program = replace(program, kept=_kept(program))
    rounded = _rounded(program)
    items = tuple(
        replace(_widened(program, i), rounds=i.name in rounded) if isinstance(i, Step) else i
        for i in program.items
    )
    return replace(program, items=items)


def _kept(program: Program) -> dict[str, str]:
    """Results as they are returned; else as all readers take them; else as PyTorch has them.

    What kernels alone read is no shorter than float32, and so is what PyTorch has inside of an operator: its
    own kernels do not store that.
    """
    own = program.dtypes.own
    kept = {name: own[name] for name in program.tensors if name in own}
    for call in program.calls:
        kept |= {n: own[g] for g, n in _results_of(program, call) if g in own}
    taken, in_own = _taken(program), _in_own_dtype(program)
    for step in program.steps.values():
        found = taken.get(step.name, set())
        of_node = {} if is_inner(program, step) else own
        pytorchs_own = of_node.get(step.node.name, full(step.tensor.dtype))
        dtype = next(iter(found)) if len(found) == 1 else pytorchs_own
        kept[step.name] = dtype if step.name in in_own else at_least_float32(program, step, dtype)
    returned: dict[str, list[str]] = {}
    for result in program.results:
        if is_plain(result.tensor) and buffers_of(result.tensor)[0] in program.steps:
            returned.setdefault(buffers_of(result.tensor)[0], []).append(result.dtype)
    return kept | {name: promoted(found) for name, found in returned.items()}


def _rounded(program: Program) -> set[str]:
    """What is saved in 16 bits, and of which something is computed that is saved too.

    A backward pass takes the difference of both, as of a row and its mean: it is zero where the row is
    constant only if the mean is that of the row as it is read again.
    """
    steps = program.steps
    saved = {b for r in program.results if r.path.startswith(SAVED) for b in buffers_of(r.tensor)}
    short = {
        name
        for name in saved & steps.keys()
        if at_least_float32(program, steps[name], program.kept[name]) != program.kept[name]
    }
    made_of: dict[str, set[str]] = {}
    for name, step in steps.items():
        read = set(buffers_of(step.tensor))
        made_of[name] = read.union(*(made_of.get(b, set()) for b in read))
    return {b for name in saved for b in made_of.get(name, set())} & short


def memory_dtypes(program: Program, arguments: Mapping[str, str]) -> dict[str, str]:
    """In which dtype each tensor lies in memory; empty where that is not one in all calls.

    `arguments` are the dtypes of the function's arguments that come in one, by their source: `x.dtype`.
    """
    known = {**{f"torch.{dtype}": dtype for dtype in ITEM_BYTES}, **arguments}
    unknown = dict.fromkeys([*program.tensors, *program.steps], "")
    return unknown | {name: known.get(source, "") for name, source in program.kept.items()}


def with_wide_results(program: Program, read: Collection[str]) -> Program:
    """Results that other kernels `read` are kept as all that passes between kernels, and rounded at the end.

    What is saved for a backward pass lies as PyTorch has it.
    """
    returned, saved = (
        {b for r in program.results if r.path.startswith("out") is own for b in buffers_of(r.tensor)}
        for own in (True, False)
    )
    steps, kept = program.steps, dict(program.kept)
    for name in (returned & steps.keys() & set(read)) - saved - _in_own_dtype(program):
        kept[name] = at_least_float32(program, steps[name], kept[name])
    return replace(program, kept=kept)


def _in_own_dtype(program: Program) -> set[str]:
    """The steps that calls and products take, and those as large as a call's result that go on with it."""
    found = {b for item in program.items for b in _handed_on(program, item)}
    tails = {n for call in program.calls for n in call.names}
    for step in program.steps.values():
        if not step.anchors and tails.intersection(buffers_of(step.tensor)):
            tails.add(step.name)
    return found | tails


def _handed_on(program: Program, item: Step | Call) -> Iterable[str]:
    """What the item takes in PyTorch's dtype: all that a call takes, and factors as tensor cores do."""
    if isinstance(item, Call):
        return item.reads
    return taken_by(program, item) if item.node.op in (*PRODUCTS, CONVOLUTION) else ()


def at_least_float32(program: Program, step: Step, dtype: str) -> str:
    """The step's dtype, as source, where it is no short float, else float32."""
    name = dtype.removeprefix("torch.")
    if step.tensor.dtype not in FLOATS or name in WIDE:
        return dtype
    declared = {d for i in program.graph.inputs for d in (i.dtypes or (i.dtype,))}
    if name not in FLOATS and declared.isdisjoint(SHORT):
        return dtype
    if name not in FLOATS and "float64" in declared:
        return f"torch.promote_types({dtype}, torch.float32)"
    return "torch.float32"


def is_inner(program: Program, step: Step) -> bool:
    """Whether it is inside of an operator, such as the scores of an attention: no tensor of PyTorch's."""
    result = program.tensors.get(step.node.name)
    return result is not None and step.name not in buffers_of(result)


def promoted(dtypes: Sequence[str]) -> str:
    """The dtype, as source, that holds what is returned in each of these."""
    first, *others = dict.fromkeys(dtypes)
    for other in others:
        first = f"torch.promote_types({first}, {other})"
    return first


def full(dtype: str) -> str:
    """A dtype that loses nothing, where it is not known what PyTorch has."""
    return "torch.float32" if dtype in ("float16", "bfloat16") else f"torch.{dtype}"


def _taken(program: Program) -> dict[str, set[str]]:
    """For each step's tensor the dtypes in which it is read."""
    found: dict[str, set[str]] = {}
    for item in program.items:
        for buffer, dtype in taken_by(program, item).items():
            found.setdefault(buffer, set()).add(dtype)
    for result in program.results:
        for buffer in buffers_of(result.tensor):
            found.setdefault(buffer, set()).add(result.dtype)
    return found


def taken_by(program: Program, item: Step | Call) -> dict[str, str]:
    """The tensors in memory that it reads, itself or through views, with the dtypes that PyTorch takes."""
    operands = [(n, d) for n, d in program.dtypes.taken_by(item.node) if d and n in program.tensors]
    found = {buffer: dtype for name, dtype in operands for buffer in buffers_of(program.tensors[name])}
    if operands and isinstance(item, ConvolutionCall) and item.order:
        # What is convolved lies there in the call's order.
        found[item.reads[0]] = operands[0][1]
    return found


def _results_of(program: Program, call: Call) -> list[tuple[str, str]]:
    """The graph's names of a call's results, and the draft's."""
    if call.node.shape is not None:
        return [(call.node.name, call.names[0])]
    named = ((g, buffers_of(t)) for g, t in program.tensors.items() if is_plain(t))
    return [(g, buffers[0]) for g, buffers in named if buffers[0] in call.names]


def _widened(program: Program, step: Step) -> Step:
    """Factors that PyTorch multiplies in another dtype than they lie in: tl.dot takes others as they lie."""
    taken = taken_by(program, step)
    wider = {b for b, dtype in taken.items() if program.kept.get(b, dtype) != dtype}
    read = buffers_of(step.tensor)
    wider |= {b for b in read if b in program.steps and is_inner(program, program.steps[b])}

    def factor(v: Value) -> Value:
        return op("to_float", v) if isinstance(v, Load) and v.buffer.name in wider else v

    def widened(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(Map(fn="mul", args=factors) as product,)) if m == SUM:
                return replace(v, args=(replace(product, args=tuple(map(factor, factors))),))
        return None

    if not wider:
        return step
    return replace(step, tensor=replace(step.tensor, value=rewrite(step.tensor.value, widened)))


def with_results_stored(program: Program) -> Program:
    """Results that look at a step in another order, or are copies, are steps of their own, stored as read."""
    items, tensors, names = list(program.items), dict(program.tensors), dict(program.names)
    needed = {r for c in program.calls for r in c.reads}
    needed |= {b for r in program.results if is_plain(r.tensor) for b in buffers_of(r.tensor)}
    ordered = {n for c in program.calls if isinstance(c, ConvolutionCall) and c.order for n in c.names}
    results = []
    for result in program.results:
        base = buffers_of(result.tensor)[0] if buffers_of(result.tensor) else ""
        moved = base in program.steps and base not in needed and not is_plain(result.tensor)
        moved |= base in ordered
        if moved or _is_copy(program, result.node):
            name = names.get(result.node) or result.node
            node = next(n for n in program.graph.nodes if n.name == result.node)
            step = Step(name, result.tensor, node)
            items.append(step)
            tensors[result.node] = loaded(step.buffer, result.tensor.dims)
            names[result.node] = name
            result = replace(result, tensor=tensors[result.node])
        results.append(result)
    return replace(program, items=tuple(items), results=tuple(results), tensors=tensors, names=names)


VIEWS = frozenset({
    "alias", "detach", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
})  # fmt: skip
"""Operators whose results share memory with their operand."""


def _is_copy(program: Program, name: str) -> bool:
    """Whether a result that only looks at a tensor has memory of its own."""
    nodes = {n.name: n for n in program.graph.nodes}
    computed = {i.node.name for i in program.items}
    while name in nodes and name not in computed:
        node = nodes[name]
        if node.op != "getitem" and node.op.split(".")[1] not in VIEWS:
            return True
        first = node.args[0]
        if not isinstance(first, NodeRef):
            return False
        name = first.name
    return False
