"""What a pattern takes and gives: a plan (which steps, over which axes) and a kernel with its launch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pytorch_to_triton.convert.draft.axes import Axis, Nest
from pytorch_to_triton.convert.draft.body import Writer
from pytorch_to_triton.convert.draft.cells import Lowering, Statistics
from pytorch_to_triton.convert.draft.form import Addresses, Form, size_text
from pytorch_to_triton.draft.file.lines import INDENT, WIDTH, listed
from pytorch_to_triton.graph.program import Program, Step
from pytorch_to_triton.graph.symbolic_size import SymbolicSize, product

Stage = Literal[1, 2, 3]
Config = Mapping[str, int]
"""Block sizes and `num_warps` of one launch."""

KERNEL_NAMES = (
    *("row", "col", "row_mask", "col_mask", "mask", "start", "pid", "outer", "i", "n_col_blocks"),
    *("delta", "share", "shift", "new_max", "block_length", "block_mean", "deviation"),
    *("block_m", "block_n", "block_k", "num_warps"),
)
"""Names that the written kernels and launches use themselves."""
RESERVED = frozenset(KERNEL_NAMES) | {"tl", "triton", "torch", "libdevice", "reference", "run"}


@dataclass(frozen=True)
class Plan:
    """One group of steps as one kernel of a pattern."""

    program: Program
    steps: tuple[Step, ...]
    nest: Nest
    name: str
    """The kernel's name."""
    tuned: Mapping[str, Config] = field(default_factory=dict)
    """Launch configurations that were measured to be best, by kernel."""

    @property
    def compute(self) -> str:
        """The dtype that floats are computed in."""
        dtypes = {m.dtype for m in self.nest.loads.values()} | {m.dtype for m in self.nest.stores.values()}
        dtypes |= {step.dtype for step in self.steps}
        return "tl.float64" if "float64" in dtypes else "tl.float32"


@dataclass(frozen=True)
class Launch:
    """How a kernel is started. Block sizes are written into `grid` as `{BLOCK_M}`."""

    grid: str
    """The number of programs, e.g. `triton.cdiv(n_rows, {BLOCK_M})`."""
    fixed: Config
    """Stage 1: one configuration for every size."""
    candidates: tuple[Config, ...]
    """Stage 2 tries these at run time, stage 3 when it is tuned."""
    default: Config
    """Stage 3 where nothing was measured."""
    key: tuple[str, ...]
    """Sizes that the best configuration depends on; a plain number among them never changes."""


@dataclass(frozen=True)
class Variant:
    """A kernel with its configurations worth measuring, and the sizes at which `run` takes it."""

    kernel: str
    candidates: tuple[Config, ...]
    condition: str
    """Over the dims, e.g. `N <= 32768`."""


@dataclass(frozen=True)
class Kernel:
    """A kernel's source and how `run` launches it."""

    name: str
    source: str
    sizes: tuple[tuple[str, str], ...]
    """Names that the launch needs and how `run` computes them from the dims."""
    launch: tuple[str, ...]
    """Lines of `run`."""
    helpers: frozenset[str]
    """Combine functions that the kernel's file must define."""
    passes: int
    """How often the kernel reads its row."""
    variants: tuple[Variant, ...] = ()
    """What can be tuned."""

    def renamed(self, old: str, new: str) -> Kernel:
        """The same kernel launched with another name for one of its sizes."""
        sizes = tuple((new if name == old else name, text) for name, text in self.sizes)
        launch = tuple(re.sub(rf"(?<![\w.]){old}\b(?!=)", new, line) for line in self.launch)
        return replace(self, sizes=sizes, launch=launch)


@dataclass(frozen=True)
class Names:
    """What a kernel calls its sizes."""

    axes: tuple[str, ...]
    """One name an axis."""
    of_size: Mapping[SymbolicSize, str]
    defined: tuple[tuple[str, str], ...]
    """For `run`: names that are no plain dims, and their expressions over dims."""

    def text(self, size: SymbolicSize) -> str:
        """A size in these names, in parentheses where it is a product."""
        text = size_text(size, self.of_size)
        return f"({text})" if " " in text else text


@dataclass(frozen=True)
class Rows:
    """Several axes walked as one: their count, and the index along each of them."""

    count: str
    setup: tuple[tuple[str, str], ...]
    indices: tuple[str, ...]
    defined: tuple[tuple[str, str], ...]


def named(axes: Sequence[Axis], fallbacks: Sequence[str]) -> Names:
    """Names for axis sizes: a dim's own name where an axis is one dim, else the fallback for that axis."""
    of_size: dict[SymbolicSize, str] = {}
    defined = []
    for axis, fallback in zip(axes, fallbacks, strict=True):
        name = of_size.get(axis.size) or axis_name(axis, fallback)
        if axis.size.factors and axis.size not in of_size:
            of_size[axis.size] = name
            if str(axis.size) != name:
                defined.append((name, str(axis.size)))
    return Names(tuple(of_size.get(a.size, str(a.size)) for a in axes), of_size, tuple(defined))


def row_names(count: int) -> tuple[str, ...]:
    """Fallback names for `count` axes that are walked as rows."""
    return ("n_rows",) if count == 1 else tuple(f"size_{i}" for i in range(count))


def axis_name(axis: Axis, fallback: str) -> str:
    """The dim's own name where the axis is one dim."""
    plain = axis.size.coefficient == 1 and len(axis.size.factors) == 1 and axis.size.factors[0].isidentifier()
    return axis.size.factors[0] if plain else fallback


def rows(
    axes: Sequence[Axis],
    names: Names,
    *,
    index: str = "row",
    count: str = "n_rows",
    taken: Sequence[str] = (),
) -> Rows:
    """`axes` flattened into one index; where there are several, each gets an index of its own back.

    No index gets a name that is `taken`.
    """
    if not axes:
        return Rows("1", (), (), ())
    if len(axes) == 1:
        return Rows(names.text(axes[0].size), (), (index,), ())
    setup: list[tuple[str, str]] = []
    for i, axis in enumerate(axes):
        # One division after the other: the product of the sizes might not fit 32 bits.
        text = " // ".join([index, *(names.text(a.size) for a in reversed(axes[i + 1 :]))])
        text = text if i == 0 else f"{text} % {names.text(axis.size)}"
        name = f"{axis_name(axis, f'axis_{i}').lower()}_index"
        # Two axes of one size would otherwise share a name.
        setup.append((f"{index}_{i}_index" if name in (*taken, *(n for n, _ in setup)) else name, text))
    total = product(a.size for a in axes)
    return Rows(count, tuple(setup), tuple(n for n, _ in setup), ((count, str(total)),))


@dataclass(frozen=True)
class Draft:
    """A kernel's body with everything its signature must declare."""

    lines: tuple[str, ...]
    pointers: tuple[str, ...]
    sizes: tuple[str, ...]
    scalars: tuple[str, ...]
    helpers: frozenset[str]
    passes: int
    options: Mapping[str, object]
    """Compiler options that the launch must give."""
    numbers: tuple[tuple[str, str], ...] = ()
    """For `run`: names of numbers computed from sizes, and their expressions over dims."""
    exact: bool = False
    """Numbers are constexpr: an argument would come as float32, and the kernel computes in float64."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The launch's arguments but for block sizes: tensors, sizes, scalars."""
        pointers = (p.removesuffix("_ptr") for p in self.pointers)
        return (*pointers, *self.sizes, *(name for name, _ in self.numbers), *self.scalars)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The kernel's parameters but for block sizes."""
        suffix = ": tl.constexpr" if self.exact else ""
        numbers = (*(name for name, _ in self.numbers), *self.scalars)
        return (*self.pointers, *self.sizes, *(f"{name}{suffix}" for name in numbers))


def drafted(
    plan: Plan, form: Form, names: Names, *, statistics: Statistics = "in_passes", row_length: str = ""
) -> Draft:
    """Lower the plan's steps and write them in the given form."""
    graph = plan.program.graph
    taken = RESERVED | set(graph.dims) | set(graph.constants) | {n for n, _ in (*names.defined, *form.setup)}
    lowering = Lowering(
        plan.program, plan.nest, statistics, plan.compute, row_length, set(taken), names.of_size
    )
    cells = lowering.lower(plan.steps)
    stores = {lowering.names[step]: memory for step, memory in plan.nest.stores.items()}
    addresses = Addresses(form, plan.nest.axes, names.of_size)
    writer = Writer(cells, stores, addresses, plan.compute)
    lines = writer.write()
    text = "\n".join(lines)
    buffers = [m.buffer for m in (*plan.nest.loads.values(), *plan.nest.stores.values())]
    known = [*(n for n, _ in names.defined), *graph.dims]
    return Draft(
        tuple(lines),
        tuple(f"{b}_ptr" for b in dict.fromkeys(buffers)),
        tuple(n for n in dict.fromkeys(known) if mentions(text, n)),
        tuple(n for n in graph.constants if mentions(text, n)),
        frozenset(writer.used_helpers),
        writer.passes,
        {"enable_fp_fusion": False} if writer.compares_computed else {},
        tuple((name, text_) for text_, name in lowering.numbers.items() if mentions(text, name)),
        exact=plan.compute == "tl.float64",
    )


def mentions(text: str, name: str) -> bool:
    """Whether the name occurs as a word of its own."""
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def kernel(plan: Plan, draft: Draft, names: Names, launch: Launch, stage: Stage) -> Kernel:
    """The kernel with the launch of its stage: fixed blocks, tuned at run time, or tuned beforehand."""
    grid = launch.grid
    if stage == 2:
        decorators = autotune(launch.candidates, tuple(k for k in launch.key if not k.isdigit()))
        meta = {b: f'meta["{b}"]' for b in blocks_of(launch.default)}
        text = f"({grid.format(**meta)},)"
        text = f"lambda meta: {text}" if "meta[" in text else text
        lines = call(plan.name, text, draft.arguments, draft.options)
    else:
        decorators = ()
        config = launch.fixed if stage == 1 else plan.tuned.get(plan.name, launch.default)
        lines = call(plan.name, f"({grid.format(**config)},)", draft.arguments, {**config, **draft.options})
    blocks = blocks_of(launch.default)
    text = source(plan, draft, blocks, decorators)
    variant = Variant(plan.name, launch.candidates, "1 == 1")
    sizes = (*names.defined, *draft.numbers)
    return Kernel(plan.name, text, sizes, lines, draft.helpers, draft.passes, (variant,))


def blocks_of(config: Config) -> tuple[str, ...]:
    """The block sizes of a configuration."""
    return tuple(k for k in config if k != "num_warps")


def source(plan: Plan, draft: Draft, blocks: tuple[str, ...], decorators: tuple[str, ...] = ()) -> str:
    """The kernel's function."""
    parameters = [*draft.parameters, *(f"{b}: tl.constexpr" for b in blocks)]
    line = f"def {plan.name}({', '.join(parameters)}):"
    if len(line) > WIDTH:
        line = "\n".join([f"def {plan.name}(", *(f"{INDENT}{p}," for p in parameters), "):"])
    doc = f'    """{documented(plan, draft)}"""'
    return "\n".join([*decorators, "@triton.jit", line, doc, *draft.lines])


def documented(plan: Plan, draft: Draft) -> str:
    """What the kernel computes, in one line."""
    written = ", ".join(plan.nest.stores)
    if plan.nest.reduced is None:
        return f"Compute {written} element by element."
    passes = "one pass" if draft.passes == 1 else f"{draft.passes} passes"
    walked = "row" if plan.nest.axes[-1].reduced else "column"
    walked = "the whole tensor" if all(a.reduced for a in plan.nest.axes) else f"each {walked}"
    return f"Compute {written} in {passes} over {walked}."


def autotune(configs: tuple[Config, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    """The decorator that tries `configs` once for each value of `key`."""
    lines = ["@triton.autotune(", "    configs=["]
    for config in configs:
        blocks = {k: v for k, v in config.items() if k != "num_warps"}
        text = ", ".join(f'"{k}": {v}' for k, v in blocks.items())
        lines.append(f"        triton.Config({{{text}}}, num_warps={config['num_warps']}),")
    keys = ", ".join(f'"{k}"' for k in key)
    return (*lines, "    ],", f"    key=[{keys}],", ")")


def call(name: str, grid: str, arguments: tuple[str, ...], keywords: Mapping[str, object]) -> tuple[str, ...]:
    """The launch, on one line where it fits."""
    given = [*arguments, *(f"{k}={v}" for k, v in keywords.items())]
    line = f"{name}[{grid}]({', '.join(given)})"
    if "enable_fp_fusion" in keywords:
        comment = "# Fused multiply-adds would round one side of a difference and not the other."
        return (comment, *call_lines(name, grid, given, line))
    return call_lines(name, grid, given, line)


def call_lines(name: str, grid: str, given: Sequence[str], line: str) -> tuple[str, ...]:
    """A call on one line, else with its arguments on lines of their own."""
    return (line,) if len(line) <= WIDTH else (f"{name}[{grid}](", *listed(given), ")")


def power_of_2(size: int) -> int:
    """The smallest power of 2 that is at least `size`."""
    return 1 << max(size - 1, 0).bit_length()


def why_larger(size: int) -> tuple[str, ...]:
    """A comment above a launch whose block is larger than the size; none where it is not."""
    block = power_of_2(size)
    return (f"# {size} elements in a block of {block}: a block's size is a power of 2.",) * (block != size)


def indented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines one level deeper."""
    return tuple(f"    {line}" for line in lines)


def either(small: Kernel, large: Kernel, condition: str) -> Kernel:
    """Two kernels for one group: `run` takes the first where the condition on its sizes holds."""
    launch = (f"if {condition}:", *indented(small.launch), "else:", *indented(large.launch))
    return replace(
        small,
        source=f"{small.source}\n\n\n{large.source}",
        sizes=tuple(dict.fromkeys((*small.sizes, *large.sizes))),
        launch=launch,
        helpers=small.helpers | large.helpers,
        variants=(*small.variants, *large.variants),
    )
