"""A range of statements as a function of its own, with what it takes: from what the variables of the whole
function held in several runs.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytorch_to_triton.convert.cuts.function_text import FunctionText, loaded, statements, stored
from pytorch_to_triton.convert.cuts.ranges import Ranges, StatementRange
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.shown_inputs import size_text
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import ConstantSpec, InputSpec, TensorSpec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.worker.wire.tracing import Held, PartSource

FREE_SIZES = (1, 5, 40)
"""At which a size that depends on values is tried."""

Seen = Mapping[int, Sequence[Held]]
"""What a variable held whenever a run came to a statement, by the run's number."""


@dataclass
class SizesSeen:
    """The sizes of tensors over dims; those that follow from no declared dim are dims of their own."""

    points: Sequence[Point]
    """The declared dims in each run."""
    of_values: frozenset[tuple[int, int]]
    """A run and a size in it that depends on values."""
    taken: set[str] = field(default_factory=set)
    free: dict[tuple[int | None, ...], str] = field(default_factory=dict)
    """Dims that several tensors may share, by the sizes that they stand for."""
    names: list[str] = field(default_factory=list)
    """All dims that were added."""

    def text(self, seen: Sequence[int | None]) -> str:
        """A size by run; None where it changed within one."""
        if None not in seen and not all((run, size) in self.of_values for run, size in enumerate(seen)):
            if text := size_text(seen, self.points):
                return text
        elif None in seen or size_text(seen, self.points):
            return self.added()  # No two tensors can be known to share it.
        if tuple(seen) not in self.free:
            self.free[tuple(seen)] = self.added()
        return self.free[tuple(seen)]

    def added(self) -> str:
        """A dim of its own."""
        name = fresh("K", self.taken)
        self.taken.add(name)
        self.names.append(name)
        return name


def tensor_spec(seen: Seen, sizes: SizesSeen) -> TensorSpec | None:
    """A tensor as it is declared; None where its rank or its dtype changes within a run."""
    runs = [seen[run] for run in sorted(seen)]
    ranks = {len(held.shape) for run in runs for held in run}
    if len(ranks) != 1 or any(len({held.dtype for held in run}) != 1 for run in runs):
        return None
    shape = (
        sizes.text([only(held.shape[axis] for held in run) for run in runs]) for axis in range(ranks.pop())
    )
    dtypes = dict.fromkeys(run[0].dtype for run in runs)
    return TensorSpec.model_validate({"dtypes": tuple(dtypes), "shape": tuple(shape)})


def only(values: Iterable[int]) -> int | None:
    """The value, where there is one alone."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def number_source(seen: Seen, points: Sequence[Point], tensors: Mapping[str, Sequence[str]]) -> str | None:
    """An integer as source over the sizes of `tensors`; None where it follows from them in no plain way."""
    runs = [only({int(held.value or 0) for held in seen[run]}) for run in sorted(seen)]
    text = None if None in runs else size_text(runs, points)
    if text is None:
        return None
    for dim in names_in(text):
        places = ((name, list(shape).index(dim)) for name, shape in tensors.items() if dim in shape)
        if (found := next(places, None)) is None:
            return None
        text = text.replace(dim, f"{found[0]}.shape[{found[1]}]")
    return text


NAME = "part"
"""What a part is called while it is traced."""
EXAMPLE = 0.3723984
"""A number to trace with."""
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant, ast.expr_context)


@dataclass(frozen=True)
class Outline:
    """A range as a function."""

    source: PartSource
    arguments: Mapping[str, str]
    """Its parameters but for the module, each with what is passed for it."""
    declaration: Declaration
    """Of its parameters."""
    numbers: frozenset[str]
    """Parameters that are numbers, other ones from call to call; kernels take them as floats."""
    whole: frozenset[str]
    """Those of them that are whole numbers."""
    shares_memory: bool
    """Whether two of its tensors share their memory."""


def outline(ranges: Ranges, each: StatementRange, sizes: SizesSeen, whole: Declaration) -> Outline:
    """Raises NotConvertible where the range takes what no kernel can."""
    held = {name: held_before(ranges, name, each.line) for name in each.reads}
    tensors = {name: spec_of(name, seen, sizes) for name, seen in held.items() if kind_of(seen) == "tensor"}
    shapes = {name: spec.shape for name, spec in tensors.items()}
    constants: dict[str, ConstantSpec] = {}
    sources: dict[str, str] = {}
    numbers: set[str] = set()
    others = {name: seen for name, seen in held.items() if name not in tensors}
    for name, seen in others.items():
        if kind_of(seen) == "float" or name in ranges.changing:
            numbers.add(name)
        elif is_constant(seen):
            constants[name] = ConstantSpec(value=one_of(seen).value)
        elif source := number_source(seen, sizes.points, shapes):
            sources[name] = source
        else:
            numbers.add(name)
    chosen, passed = with_numbers(each, numbers, ranges.function)
    examples = dict.fromkeys(passed, ConstantSpec(value=EXAMPLE))
    inputs: dict[str, InputSpec] = {**tensors, **constants, **examples}
    receiver = [name for name in (ranges.function.receiver,) if any(name in loaded(s) for s in chosen)]
    text = function_source(chosen, [*receiver, *inputs], sources, each.gives)
    lines = lines_of_nodes(text, chosen, ranges.function)
    part = PartSource(name=NAME, text=text, lines=lines, of_module=bool(receiver))
    floats = {name for name, seen in held.items() if kind_of(seen) == "float"}
    integers = frozenset(name for name, text in passed.items() if not names_in(text) & floats)
    arguments = {name: name for name in inputs} | passed | {n: f"float({passed[n]})" for n in integers}
    shared = share_memory([held[name] for name in tensors])
    declaration = declared(inputs, sizes, whole)
    return Outline(part, arguments, declaration, frozenset(passed), integers, shared)


def share_memory(tensors: Sequence[Mapping[int, list[Held]]]) -> bool:
    """Whether two tensors do in some run; those without elements have none."""
    memories = [{(run, each.memory) for run in seen for each in seen[run] if each.memory} for seen in tensors]
    return sum(map(len, memories)) > len(set().union(*memories))


def spec_of(name: str, seen: Mapping[int, list[Held]], sizes: SizesSeen) -> TensorSpec:
    """What a tensor is in all runs. Raises NotConvertible where that changes within one."""
    if spec := tensor_spec(seen, sizes):
        return spec
    raise NotConvertible(f"{name} has another rank or dtype from one time to the next", "")


def held_before(ranges: Ranges, name: str, line: int) -> dict[int, list[Held]]:
    """What a variable held whenever a run came to a statement, by run."""
    found: defaultdict[int, list[Held]] = defaultdict(list)
    for visit in ranges.visits[line]:
        if name in visit.before:
            found[visit.case].append(visit.before[name])
    return found


def one_of(seen: Mapping[int, list[Held]]) -> Held:
    return next(iter(seen.values()))[0]


def kind_of(seen: Mapping[int, list[Held]]) -> str:
    return one_of(seen).kind


def is_constant(seen: Mapping[int, list[Held]]) -> bool:
    """Whether it is the same in all runs."""
    return len({each.value for run in seen.values() for each in run}) == 1


def with_numbers(
    each: StatementRange, numbers: set[str], function: FunctionText
) -> tuple[list[ast.stmt], dict[str, str]]:
    """The statements with a parameter for each expression of nothing but numbers, and those expressions."""
    named = NumbersNamed(numbers, each, set(function.names()))
    chosen = [copy.deepcopy(statement) for statement in each.statements]
    for statement in chosen:
        named.visit(statement)
    return chosen, {name: source for source, name in named.found.items()}


@dataclass
class NumbersNamed(ast.NodeTransformer):
    """Puts names in the place of arithmetic on numbers."""

    numbers: set[str]
    range: StatementRange
    taken: set[str]
    found: dict[str, str] = field(default_factory=dict)
    """Parameters by what is passed for them."""

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or not self._is_number(node):
            return self.generic_visit(node)
        source = ast.unparse(node)
        if source not in self.found:
            name = source if isinstance(node, ast.Name) else fresh("number", self.taken)
            self.taken.add(name)
            self.found[source] = name
        return ast.copy_location(ast.Name(self.found[source], ast.Load()), node)

    def _is_number(self, node: ast.expr) -> bool:
        nodes = list(ast.walk(node))
        names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        bound = {name for statement in self.range.statements for name in stored(statement)}
        return (
            all(isinstance(n, ARITHMETIC) for n in nodes)
            and bool(names)
            and names <= self.numbers
            and not names & bound
        )


def function_source(
    chosen: list[ast.stmt], parameters: list[str], sources: Mapping[str, str], gives: tuple[str, ...]
) -> str:
    """The range as a function; sizes of its tensors are its first statements."""
    head = [f"{name} = {source}" for name, source in sources.items()]
    tail = [f"return {', '.join(gives)}"] if gives else []
    frame = ast.parse("\n    ".join([f"def {NAME}({', '.join(parameters)}):", *head, *tail, "..."]))
    (function,) = frame.body
    assert isinstance(function, ast.FunctionDef)
    function.body[len(head) :] = [*chosen, *function.body[len(head) : len(head) + len(tail)]]
    return ast.unparse(frame)


def lines_of_nodes(text: str, chosen: list[ast.stmt], function: FunctionText) -> tuple[int, ...]:
    """The line in the user's file of each node of the text, in the order of ast.walk."""
    tree = ast.parse(text)
    (outlined,) = tree.body
    assert isinstance(outlined, ast.FunctionDef)
    inner = [s for each in chosen for s in (each, *statements(each))]
    own = list(statements(outlined))
    placed = len(own) - len(inner)
    first = function.lines[inner[0].lineno][0]
    returned = 1 if isinstance(own[-1], ast.Return) and not isinstance(inner[-1], ast.Return) else 0
    lines = [first] * (placed - returned) + [function.lines[s.lineno][0] for s in inner]
    lines += [lines[-1]] * returned
    by_node: dict[int, int] = {}
    for statement, line in zip(own, lines, strict=True):  # Inner statements come later, and win.
        by_node |= {id(node): line for node in ast.walk(statement)}
    return tuple(by_node.get(id(node), first) for node in ast.walk(tree) if hasattr(node, "lineno"))


def declared(inputs: Mapping[str, InputSpec], sizes: SizesSeen, whole: Declaration) -> Declaration:
    """The parameters with the dims that they name, and what is required of those."""
    tensors = (spec for spec in inputs.values() if isinstance(spec, TensorSpec))
    named = frozenset(name for spec in tensors for size in spec.shape for name in names_in(size))
    dims = {**whole.dims, **dict.fromkeys(sizes.names, FREE_SIZES)}
    return Declaration(
        inputs=dict(inputs),
        dims={name: tried for name, tried in dims.items() if name in named},
        requires=tuple(text for text in whole.requires if names_in(text) <= named),
    )
