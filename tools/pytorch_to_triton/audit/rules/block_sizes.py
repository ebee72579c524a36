"""Sizes of blocks and numbers of warps: what Triton refuses, and what is fixed where it should be chosen."""

import ast
from collections.abc import Iterator, Sequence

from pytorch_to_triton.audit.analysis.configurations import all_configurations
from pytorch_to_triton.audit.call_arguments import factors, literal_integer
from pytorch_to_triton.audit.examples import LANES, ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.rule import file_rule, kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel

_FILL = jit("tl.store(x_ptr + tl.arange(0, B), n)")
_RUN = run("kernel[(1,)](x, out, x.shape[0], B=64)")
_DOT = jit(ROW, "x = tl.load(x_ptr + i[:, None] * n + i[None, :])", "tl.dot(x, x)")
_LEAST = 32
"""Smaller blocks are parts of an algorithm rather than a choice."""
_LEAST_TILE = 16
"""Smaller numbers are modes and flags."""
_MOST_WARPS = 32


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        jit("tl.store(x_ptr + tl.arange(0, 100), 0.0)"),
        jit("tl.store(x_ptr + tl.arange(4, 4), 0.0)"),
        jit("low = tl.full((B, 3), -1.0, tl.float32)"),
    ),
    good=(jit("tl.store(x_ptr + tl.arange(1, 1 + 8), tl.full((B, 1), 100, tl.int32))"),),
)
def block_not_power_of_two(kernel: SourceKernel) -> Iterator[Fault]:
    """A block has a size that is not a power of two.

    Triton lays a block out over threads by halving it, and refuses any other size when the kernel is
    compiled.

    Fix: round the size up to a power of two and mask what lies beyond the end.
    """
    for operation in kernel.operations:
        if operation.name == "arange":
            yield from _range(operation)
        for size in operation.shape:
            elements = literal_integer(size)
            if elements is not None and elements > 0 and elements.bit_count() != 1:
                message = f"A block's size must be a power of two; {elements} is not."
                yield Fault(size, message, _next(elements))


def _range(lanes: Operation) -> Iterator[Fault]:
    call = lanes.call
    start, end = literal_integer(lanes.option(0, "start")), literal_integer(lanes.option(1, "end"))
    if start is None or end is None:
        return
    length = end - start
    if length <= 0:
        yield Fault(call, f"The range from {start} to {end} is empty.", "Let it end above its start.")
    elif length.bit_count() != 1:
        yield Fault(call, f"The length of tl.arange must be a power of two; {length} is not.", _next(length))


def _next(size: int) -> str:
    return f"Use {1 << size.bit_length()} and mask what lies beyond the end."


@kernel_rule(
    "critical",
    "correctness",
    bad=(_FILL.replace(": tl.constexpr", "") + _RUN,),
    good=(jit("filled = tl.full((16,), n, tl.int32)") + _RUN,),
)
def block_size_not_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """The size of a block is a value that is known only at run time.

    A block's shape is part of its type, so the compiler needs it: it refuses a parameter that is not marked
    tl.constexpr (unless the value happens to be 1, which it treats as a constant).

    Fix: mark the parameter `BLOCK: tl.constexpr`, pass triton.next_power_of_2 of the size, and mask.
    """
    for operation in kernel.operations if kernel.is_launched else ():
        sizes = [*operation.shape]
        if operation.name == "arange":
            sizes += [size for size in (operation.option(0, "start"), operation.option(1, "end")) if size]
        for size in sizes:
            if unknown := sorted(_operands(size) & kernel.runtime_parameters):
                declared = " and ".join(f"`{name}: tl.constexpr`" for name in unknown)
                yield Fault(
                    size,
                    f"The size of a block must be known to the compiler, and {' and '.join(unknown)} is not: "
                    f"{kernel.name} does not compile.",
                    f"Declare the parameter as {declared} and pass a power of two.",
                )


def _operands(node: ast.expr) -> frozenset[str]:
    """The names in an arithmetic expression; of anything else, none."""
    match node:
        case ast.Name(id=name):
            return frozenset({name})
        case ast.BinOp(left=left, right=right):
            return _operands(left) | _operands(right)
    return frozenset()


@file_rule(
    "critical",
    "correctness",
    bad=(_FILL + _RUN.replace("B=64", "B=64, num_warps=6"),),
    good=('CONFIGS = [triton.Config({"B": b}, num_warps=w) for b in (3, 6) for w in (1, 2, 4)]\n',),
)
def warps_not_power_of_two(file: SourceFile) -> Iterator[Fault]:
    """A kernel is launched with a number of warps that is not a power of two.

    Triton spreads blocks evenly over warps, and refuses any other number.

    Fix: write 1, 2, 4, 8, 16 or 32.
    """
    given = [configuration.num_warps for configuration in all_configurations(file)]
    given += [launch.options.get("num_warps") for launch in file.launches]
    for number in (number for value in given if value for number in _numbers(value, file)):
        warps = literal_integer(number)
        if warps is not None and (warps < 1 or warps & (warps - 1)):
            nearest = min(1 << max(warps.bit_length() - 1, 0), _MOST_WARPS) if warps > 0 else 1
            message = f"num_warps must be a power of two; {warps} is not, and the launch is refused."
            yield Fault(number, message, f"Write {nearest}.", fix=str(nearest))


def _numbers(value: ast.expr, file: SourceFile) -> Sequence[ast.expr]:
    """The number itself, or those that a comprehension runs through for its name."""
    if not isinstance(value, ast.Name):
        return [value]
    for node in file.nodes:
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and any(one is value for one in ast.walk(node)):
            for generator in node.generators:
                match generator:
                    case ast.comprehension(
                        target=ast.Name(id=name), iter=ast.List() | ast.Tuple() as numbers
                    ):
                        if name == value.id:
                            return numbers.elts
    return []


@kernel_rule(
    "info",
    "best practices",
    bad=(jit(LANES.replace("B", "1024"), "tl.store(x_ptr + i, 0.0, mask=i < n)"),),
    # A table of a fixed size.
    good=(jit("i = tl.program_id(0) * n + tl.arange(0, 64)", "tl.store(x_ptr + i, 0.0)"),),
)
def magic_block_size(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel's block size is a number in its body.

    It cannot be tuned or changed from outside, and it has to agree with the grid, which another function
    computes.

    Fix: take it as a tl.constexpr parameter, and let the launch or triton.autotune choose it.
    """
    steps = {
        step
        for node in kernel.nodes
        for program, factor in factors(node)
        if (step := literal_integer(kernel.resolved(factor))) is not None
        and "program_id" in kernel.made_by(program)
    }
    for lanes in kernel.calls("arange"):
        size = lanes.option(1, "end")
        length = None if size is None else literal_integer(kernel.resolved(size))
        if length is not None and length >= _LEAST and length in steps:
            yield Fault(
                lanes.call,
                f"The block size {length} is fixed in the body of {kernel.name}: its launches can "
                "neither tune it nor see it.",
                "Make it a parameter, `BLOCK_SIZE: tl.constexpr`, and pass it with the launch.",
            )
            return


@kernel_rule(
    "info",
    "performance",
    bad=(_DOT + _RUN,),
    good=(_DOT + _RUN.replace("64", "32 if x.shape[0] < 1024 else 128"),),
)
def autotune_missing(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel with tl.dot is launched with fixed block sizes.

    The best tile of a matrix product depends on the shapes and the GPU; a good one is two to five times as
    fast as a bad one.

    Fix: put triton.autotune with a handful of tiles above it, or choose the tile by shape from a table.
    """
    if len(kernel.decorators) > 1 or not any(kernel.calls("dot")):
        return
    fixed = [_fixed_sizes(kernel, launch) for launch in kernel.launches]
    hot = [launch for launch in kernel.launches if launch.function and "test" not in launch.function.name]
    if hot and all(fixed) and all(one == fixed[0] for one in fixed):
        sizes = ", ".join(f"{name} = {size}" for name, size in fixed[0].items())
        yield Fault(
            hot[0].call,
            f"{kernel.name} multiplies matrices with {sizes} for every shape and GPU.",
            "Put triton.autotune with a handful of tiles above the kernel.",
        )


def _fixed_sizes(kernel: SourceKernel, launch: LaunchSite) -> dict[str, int]:
    """The block sizes; empty where one is not a literal."""
    given = launch.given
    names = [name for name in kernel.parameters if name in kernel.constexprs & given.keys()]
    sizes = {name: literal_integer(launch.flow.resolved(given[name])) for name in names}
    blocks = {name: size for name, size in sizes.items() if size is None or size >= _LEAST_TILE}
    return {} if None in blocks.values() else {name: size for name, size in blocks.items() if size}
