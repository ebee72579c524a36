"""Which sizes of a file's example inputs are free: those become dims, the others stay numbers.

torch.export says which sizes it can keep apart, and running the target on fake tensors which it takes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.fx import Node
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import wire
from ..loading.target import Loaded
from ..wire import tracing
from .dim_names import dim_names
from .exported_call import ExportedCall
from .fake import example_inputs, fake_mode, fake_of, load_fake, tensors_of
from .graph_writer import Sizes
from .least_sizes import LeastSizes, Probe
from .symbolic import pools_stay_symbolic, sizes_stay_symbolic

PLAIN = re.compile(r"(?!.*\w\()[\w\s+*/%()<>!=-]+")
"""Conditions that REQUIRES can say."""
DIVIDES = re.compile(r"\w+ % \d+ == 0")


def free_sizes_of(target: wire.Target) -> tracing.FreeSizes | None:
    """Those of its get_inputs(): run on fake tensors alone, as long as its constructor needs no values."""
    mode = fake_mode()
    loaded = load_fake(target, mode)
    return free_sizes(loaded, example_inputs(loaded, mode), mode)


def free_sizes(loaded: Loaded, given: Mapping[str, Any], mode: FakeTensorMode) -> tracing.FreeSizes | None:
    """The sizes of `given` as dims; None where none is free, or where the target cannot be followed."""
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
