"""Which sizes of a file's example inputs are free: those become dims, the others stay numbers.

torch.export says which sizes it can keep apart, and running the target on fake tensors which it takes, down
to the least size of each dim.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.fx import Node
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import wire
from ..dispatch import AroundOperators
from ..loading.target import Loaded
from ..wire import tracing
from .exported_call import ExportedCall
from .fake import example_inputs, fake_mode, fake_of, load_fake, tensors_of
from .graph_writer import Sizes
from .symbolic import pools_stay_symbolic, sizes_stay_symbolic

BY_RANK = {1: "N", 2: "MN", 3: "BMN", 4: "NCHW", 5: "NCDHW"}
FURTHER = "PQRSTUVWXYZGJLK"
"""Where those are taken."""


def dim_names(
    shapes: Mapping[str, Sequence[Hashable | None]], taken: Collection[str] = ()
) -> dict[Hashable, str]:
    """A name for each size of the tensors' shapes; None stands for a size that is a number.

    Sizes are named in the order in which they appear; none gets a name that is `taken`.
    """
    names: dict[Hashable, str] = {}
    summed = set(contracted(shapes))
    for shape in shapes.values():
        usual = BY_RANK.get(len(shape), "")
        for place, size in enumerate(shape):
            if size is None or size in names:
                continue
            wanted = ("K" if size in summed else "") + usual[place : place + 1] + FURTHER
            free = (name for name in wanted if name not in names.values() and name not in taken)
            names[size] = next(free, f"D{len(names)}")
    return names


def contracted(shapes: Mapping[str, Sequence[Hashable | None]]) -> Iterator[Hashable]:
    """The columns of one matrix that are the rows of the next: what their product sums over."""
    matrices = [shape for shape in shapes.values() if len(shape) in (2, 3)]
    for left, right in pairwise(matrices):
        if left[-1] is not None and left[-1] == right[-2] and left[-2] != right[-2]:
            yield left[-1]


NEXT = 2
"""How many sizes after the least one are tried too."""
STEPS = 64
"""How far away the next size may be that meets all requirements."""
Point = dict[str, int]


class ResultEmpty(Exception):
    """An operator made a tensor without elements from tensors that have some."""


def refuse_empty(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator's result: on fake tensors, operators may miss that their input is too small."""
    result = func(*args, **kwargs)
    given = [tensor.numel() for tensor in tensors_of((args, kwargs))]
    if given and all(given) and not all(tensor.numel() for tensor in tensors_of(result)):
        raise ResultEmpty(str(func))
    return result


@dataclass(frozen=True)
class Probe:
    """A target that can be run on fake tensors of any sizes."""

    loaded: Loaded
    tensors: Mapping[str, torch.Tensor]
    state: Mapping[str, torch.Tensor]
    constants: Mapping[str, Any]
    mode: FakeTensorMode
    known: dict[tuple[tuple[int, ...], ...], bool] = field(default_factory=dict)
    """Of shapes that were tried."""

    def runs(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether the target raises nothing on tensors of these shapes."""
        key = tuple(shapes[name] for name in self.tensors)
        if key not in self.known:
            self.known[key] = self._tried(shapes)
        return self.known[key]

    def _tried(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        try:
            with self.mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
                tensors = {name: tensor.new_empty(shapes[name]) for name, tensor in self.tensors.items()}
                given = {**tensors, **self.constants}
                order = [name for name in self.loaded.parameters if name in given]
                arguments = {name: given[name] for name in (*order, *given)}
                empty = any(tensor.numel() == 0 for tensor in tensors.values())
                with nullcontext() if empty else AroundOperators(refuse_empty):
                    self.loaded(arguments, dict(self.state))
        except Exception:
            return False
        return True


class LeastSizes:
    """The search over the sizes of one problem."""

    def __init__(self, probe: Probe, sizes: tracing.FreeSizes, conditions: Iterable[str]) -> None:
        self.probe = probe
        self.declared = sizes.dims
        self.shapes = sizes.shapes
        self.conditions = [compile(text, "<requirement>", "eval") for text in conditions]

    def found(self) -> Point:
        """By dim, each with the others as declared and all together; left out: dims that cannot be small."""
        if not (self.runs(self.declared) and self.runs(self.apart())):
            return {}
        found = {name: least for name in self.declared if (least := self.least(name)) is not None}
        return self.together(found) if len(found) == len(self.declared) else found

    def apart(self) -> Point:
        """Sizes near the declared ones, no two alike where requirements allow it."""
        point: Point = {}
        for name, size in self.declared.items():
            others = (
                n for n in range(size, size + STEPS) if n not in point.values() and self.allows(name, n)
            )
            point[name] = next(others, size)
        return point if self.meets(point) else self.declared

    def least(self, name: str) -> int | None:
        """The least size of one dim; None where no size up to half of the declared one will do."""

        def works(size: int) -> bool:
            return self.runs({**self.declared, name: size})

        low, high = 0, self.allowed(name, 1)
        while high is not None and not works(high):
            low, high = high, self.allowed(name, 2 * high)
        if high is None:
            return None
        sizes = [size for size in range(low + 1, high + 1) if self.allows(name, size)]
        least = sizes[bisect_left(sizes, True, key=works)]
        if not all(map(works, self.next_sizes(name, least))):
            return None
        return 0 if least == 1 and self.allows(name, 0) and works(0) else least

    def next_sizes(self, name: str, least: int) -> Iterator[int]:
        """The sizes after the least one, and the one after the declared one."""
        size: int | None = least
        for _ in range(NEXT):
            size = size and self.allowed(name, size + 1, 2 * self.declared[name])
            yield from () if size is None else (size,)
        beyond = self.allowed(name, self.declared[name] + 1, 2 * self.declared[name])
        yield from () if beyond is None else (beyond,)

    def together(self, found: Point) -> Point:
        """The least sizes raised until the target runs where all dims have theirs."""
        point = {name: max(size, 1) for name, size in found.items()}
        while self.meets(point) and not self.runs(point):
            raised = [{**point, name: 2 * size} for name, size in point.items()]
            point = next(filter(self.runs, raised), {name: 2 * size for name, size in point.items()})
            if any(size > self.declared[name] for name, size in point.items()):
                return {}
        return {name: point[name] if point[name] > 1 else least for name, least in found.items()}

    def allowed(self, name: str, size: int, most: int | None = None) -> int | None:
        """The next size from this one on that meets all requirements, up to half of the declared one."""
        last = self.declared[name] // 2 if most is None else most
        sizes = range(size, min(size + STEPS, last + 1))
        return next((n for n in sizes if self.allows(name, n)), None)

    def allows(self, name: str, size: int) -> bool:
        return self.meets({**self.declared, name: size})

    def meets(self, point: Point) -> bool:
        try:
            return all(eval(condition, {"math": math}, dict(point)) for condition in self.conditions)
        except ArithmeticError:
            return False

    def runs(self, point: Point) -> bool:
        """Whether the target runs at these sizes."""
        shapes = {
            name: tuple(int(size) if size.isdigit() else point[size] for size in shape)
            for name, shape in self.shapes.items()
        }
        return self.probe.runs(shapes)


PLAIN = re.compile(r"(?!.*\w\()[\w\s+*/%()<>!=-]+")
"""Conditions that REQUIRES can say."""
DIVIDES = re.compile(r"\w+ % \d+ == 0")


def free_sizes_of(target: wire.Target) -> tracing.FreeSizes | None:
    """The sizes of its get_inputs() as dims; None where none is free, or where it cannot be followed.

    It is run on fake tensors alone, as long as its constructor needs no values.
    """
    mode = fake_mode()
    loaded = load_fake(target, mode)
    given = example_inputs(loaded, mode)
    tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    constants = {name: value for name, value in given.items() if name not in tensors}
    if not tensors or tensors_of(constants):
        return None
    try:
        return FixedProblem(loaded, tensors, constants, mode).free_sizes()
    except Exception:
        return None


class FixedProblem:
    """A target, exported with the inputs that its file generates."""

    def __init__(
        self,
        loaded: Loaded,
        tensors: Mapping[str, torch.Tensor],
        constants: Mapping[str, Any],
        mode: FakeTensorMode,
    ) -> None:
        fakes = {name: fake_of(tensor, mode) for name, tensor in tensors.items()}
        state = {name: fake_of(tensor, mode) for name, tensor in loaded.state.items()}
        self.program = exported(loaded, fakes, state, constants)
        self.probe = Probe(loaded, fakes, state, constants, mode)
        self.inputs = dict(zip(fakes, placeholders(self.program, len(fakes)), strict=True))
        self.taken = {*loaded.parameters, *loaded.state}

    def free_sizes(self) -> tracing.FreeSizes | None:
        """The dims, once all sizes are numbers that neither the program nor its operators leave free."""
        free = self.symbols()
        while free:
            named = self.named(free)
            tight = [text for text in named.requires if is_tight(text)]
            least = LeastSizes(self.probe, named, set(named.requires) - {*tight}).found()
            # Sizes that cannot be small are numbers first: conditions on several sizes are then about fewer.
            fixed = named.dims.keys() - least.keys() or names_in(tight)
            if not fixed:
                return replace(named, requires=requirements(least, named.requires))
            names = self.names(free)
            free = {symbol: size for symbol, size in free.items() if names[symbol] not in fixed}
        return None

    def symbols(self) -> dict[sympy.Symbol, int]:
        """The symbols that stand for sizes by themselves, with their declared sizes."""
        sizes = [size for node in self.inputs.values() for size in node.meta["val"].shape]
        symbolic = [size for size in sizes if isinstance(size, torch.SymInt)]
        composed = {s for n in symbolic if not n.node.expr.is_Symbol for s in n.node.expr.free_symbols}
        return {
            size.node.expr: size.node.hint
            for size in symbolic
            if size.node.expr.is_Symbol and size.node.expr not in composed
        }

    def names(self, free: Mapping[sympy.Symbol, int]) -> dict[Any, str]:
        return dim_names({name: self.shape(node, free) for name, node in self.inputs.items()}, self.taken)

    def shape(self, node: Node, free: Mapping[sympy.Symbol, int]) -> list[sympy.Symbol | None]:
        """The free symbols of an input's shape, None in the place of numbers."""
        found = [symbol_of(size) for size in node.meta["val"].shape]
        return [symbol if symbol in free else None for symbol in found]

    def named(self, free: Mapping[sympy.Symbol, int]) -> tracing.FreeSizes:
        """The free sizes under their names, with what torch.export asks of them."""
        names = self.names(free)
        shapes = {
            name: tuple(
                names[symbol] if symbol in free else str(hint_of(size))
                for symbol, size in zip(self.shape(node, free), node.meta["val"].shape, strict=True)
            )
            for name, node in self.inputs.items()
        }
        dims = {names[symbol]: size for symbol, size in free.items()}
        specs = [{"shape": shape} for shape in shapes.values()]
        sizes = Sizes(list(self.inputs.values()), specs, dims, self.program.range_constraints)
        return tracing.FreeSizes(
            shapes=shapes,
            dims=dims,
            requires=tuple(sizes.guards()),
            same_program=tuple(text for text in sizes.every_guard() if PLAIN.fullmatch(text)),
        )


def exported(
    loaded: Loaded,
    tensors: Mapping[str, torch.Tensor],
    state: Mapping[str, torch.Tensor],
    constants: Mapping[str, Any],
) -> ExportedProgram:
    """The target at the sizes of `tensors`, each of them free as far as may be."""
    module = ExportedCall(loaded, [*tensors, *state], constants)
    shapes = (
        *(dict.fromkeys(range(tensor.dim()), Dim.AUTO) for tensor in tensors.values()),
        *(dict.fromkeys(range(tensor.dim()), Dim.STATIC) for tensor in state.values()),
    )
    # Fused attention does not check the sizes of fake operands; the operators that it consists of do.
    symbolic = sizes_stay_symbolic(loaded.contents, loaded.file)
    with symbolic, pools_stay_symbolic(), sdpa_kernel(SDPBackend.MATH):
        return torch.export.export(
            module, (*tensors.values(), *state.values()), dynamic_shapes=(shapes,), strict=False
        )


def placeholders(program: ExportedProgram, count: int) -> list[Node]:
    """The nodes of the first arguments."""
    given = program.graph_signature.user_inputs[:count]
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [nodes[name] for name in given]


def symbol_of(size: int | torch.SymInt) -> sympy.Symbol | None:
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    return expression if isinstance(expression, sympy.Symbol) else None


def hint_of(size: int | torch.SymInt) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


def is_tight(text: str) -> bool:
    """Whether a condition leaves hardly any other sizes, or is none that REQUIRES can say."""
    return not PLAIN.fullmatch(text) or ("==" in text and not DIVIDES.fullmatch(text))


def names_in(texts: Sequence[str]) -> set[str]:
    return {name for text in texts for name in re.findall(r"[A-Za-z]\w*", text)}


def requirements(least: Mapping[str, int], requires: Sequence[str]) -> tuple[str, ...]:
    """Both kinds of conditions, without lower bounds that the least sizes go beyond."""
    bounds = [f"{name} >= {size}" for name, size in least.items() if size > 0]

    def surpassed(text: str) -> bool:
        found = re.fullmatch(r"(\w+) >= (\d+)", text)
        return found is not None and int(found[2]) <= least.get(found[1], 0)

    return (*bounds, *(text for text in requires if not surpassed(text)))
