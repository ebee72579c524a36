"""Accesses that leave their tensor, or may: no mask or clamp keeps the last block within the size."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytorch_to_triton.audit.analysis.addresses import parameters_for
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.configurations import configurations
from pytorch_to_triton.audit.analysis.covered import Cover, covers, is_guarded, is_padded, values_passed
from pytorch_to_triton.audit.analysis.launch_sizes import (
    DeclaredSize,
    constant,
    declared_size,
    literal_sizes,
)
from pytorch_to_triton.audit.analysis.launched_tensors import size_of
from pytorch_to_triton.audit.call_arguments import hides_arguments, literal_integer
from pytorch_to_triton.audit.flow import Stop, nowhere
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity


@dataclass(frozen=True)
class Tail:
    """What lies beyond the last whole block of a size."""

    size: str
    """As the launching function spells it."""
    block: str
    """The length of the blocks, as the kernel spells it."""
    severity: Severity | None
    """None: it is excluded by what the file declares or checks."""
    proof: str = ""
    """The size in the file that has one."""


def tail_of(access: KernelAccess, kernel: SourceKernel) -> Tail | None:
    """The worst tail that an access certainly reaches without a mask; None where none is known of."""
    if is_trial(kernel.file) or is_elsewhere_masked(access, kernel) or _is_peeled(access, kernel):
        return None
    tails = [
        _judge(cover, length, access, kernel)
        for length in _open_lengths(access, kernel)
        for cover in covers(length, access.call, access.address, kernel)
    ]
    known = [tail for tail in tails if tail is not None]
    real = [tail for tail in known if tail.severity is not None]
    return min(
        real, key=lambda tail: SEVERITIES.index(tail.severity or "info"), default=next(iter(known), None)
    )


def _is_peeled(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it is in a loop over whole blocks, and the last block follows with a mask."""
    around = kernel.loops(access.call)
    return bool(around) and any(
        other.mask is not None
        and (other.name, other.pointer) == (access.name, access.pointer)
        and other.call.lineno > access.call.lineno
        and around[0] not in kernel.loops(other.call)
        for other in kernel.accesses
    )


def _open_lengths(access: KernelAccess, kernel: SourceKernel) -> Iterator[ast.expr]:
    """The lengths of the ranges in an address that neither a mask nor a clamp bounds."""
    if hides_arguments(access.call):
        return
    block_shape = _block_shape(access.address, kernel)
    if block_shape is not None:
        yield from block_shape
        return
    held = clamps(kernel)
    # A mask that was loaded, from beyond the end as zeros, bounds what its own address runs over.
    bounded = {ast.unparse(length) for length in _ranges(access.mask, kernel)} if access.mask else set()
    sizes = kernel.names(access.mask) if access.mask else frozenset()
    seen: set[str] = set()
    for length in _ranges(access.address, kernel, lambda node: node in held or kernel.is_loaded(node)):
        text = ast.unparse(length)
        # A mask may name the length itself, as `offsets < end` with `end = start + BLOCK` does.
        is_tied = isinstance(length, ast.Name) and length.id in sizes - kernel.constexprs
        if text not in bounded | seen and not is_tied:
            seen.add(text)
            yield length


def _ranges(value: ast.expr, kernel: SourceKernel, stop: Stop = nowhere) -> list[ast.expr]:
    """The ends of the tl.arange that a value is made from, in source order."""
    return sorted(kernel.range_ends(value, stop=stop), key=lambda end: (end.lineno, end.col_offset))


def _block_shape(address: ast.expr, kernel: SourceKernel) -> Sequence[ast.expr] | None:
    """The lengths of a block pointer; None where the address is something else."""
    for made in kernel.calls_in(address):
        if made.name == "make_block_ptr":
            shape = made.option(4, "block_shape")
            return shape.elts if isinstance(shape, ast.Tuple | ast.List) else ()
    return None


@dataclass(frozen=True)
class _Blocks:
    """Blocks of some length that cover a size."""

    lengths: Sequence[int]
    """What the length may be; empty where it is unknown."""
    is_whole: bool
    """One block holds all: it is as long as the next power of two."""

    def fit(self, size: int) -> bool:
        """Whether blocks of any of the lengths fill a size."""
        if self.is_whole:
            return size & (size - 1) == 0
        return not any(size % length for length in self.lengths)

    @property
    def are_known(self) -> bool:
        return self.is_whole or bool(self.lengths)


def _judge(cover: Cover, length: ast.expr, access: KernelAccess, kernel: SourceKernel) -> Tail | None:
    """The tail of a size; None where it cannot be known."""
    launch = cover.launch
    size, block = ast.unparse(cover.size), ast.unparse(length)
    blocks = _Blocks(() if cover.is_whole else _lengths(length, cover, kernel), cover.is_whole)
    number = constant(cover.size, launch)
    if number is not None:
        is_open = blocks.are_known and not blocks.fit(number)
        return Tail(size, block, "critical" if is_open else None, _proof(size, number, blocks))
    if _is_chunk(cover, kernel):
        return None
    given = values_passed(access.pointer, kernel) if access.pointer else ()
    tensors = (value for passing, value in given if passing is launch)
    if any(is_padded(value, launch) for value in (cover.size, *tensors)):
        return None
    extent = size_of(cover.size, launch)
    declared = declared_size(extent, launch) if extent else None
    if is_guarded(cover.size, launch, kernel) or (declared and _is_excluded(declared, blocks)):
        return Tail(size, block, None)
    literal = literal_sizes(extent, launch) if extent else ()
    known = [*(declared.values() if declared else ()), *literal]
    unfit = next((one for one in known if blocks.are_known and not blocks.fit(one)), None)
    if unfit is not None:
        return Tail(size, block, "critical", _proof(declared.text if declared else size, unfit, blocks))
    if not extent and not _varies(cover.size, launch):
        return None
    # Callers out of sight often allow powers of two alone; sums of masked operands add zeros beyond a row.
    is_lighter = blocks.is_whole and (not extent or access.name == "atomic_add")
    return Tail(size, block, "medium" if is_lighter else "high")


def _varies(size: ast.expr, launch: LaunchSite) -> bool:
    """Whether a size is passed by the caller, an element of something, or a size with something added."""
    match launch.flow.resolved(size):
        case ast.Name() | ast.Subscript():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub()):
            return size_of(left, launch) is not None or _varies(left, launch)
    return False


def _is_chunk(cover: Cover, kernel: SourceKernel) -> bool:
    """Whether the size is itself the length of a block, which smaller ones divide."""
    names = parameters_for(cover.size, cover.launch)
    ranges = (lanes for one in kernel.file.kernels for lanes in one.calls("arange"))
    return any((end := lanes.option(1, "end")) is not None and ast.unparse(end) in names for lanes in ranges)


def _is_excluded(declared: DeclaredSize, blocks: _Blocks) -> bool:
    """Whether REQUIRES allows only sizes that whole blocks fill."""
    upto = 2 * max(blocks.lengths, default=64)
    return blocks.are_known and declared.is_always(blocks.fit, upto)


def _lengths(length: ast.expr, cover: Cover, kernel: SourceKernel) -> Sequence[int]:
    """What a length may be, by literals, by the launch and by the autotuner's configurations."""
    literal = literal_integer(length)
    if literal is not None or not isinstance(length, ast.Name):
        return [literal] if literal else ()
    given = [
        constant(value, launch)
        for launch, value in values_passed(length.id, kernel)
        if launch is cover.launch
    ]
    if not given:
        chosen = [one.values.get(length.id) for one in configurations(cover.launch.kernel)]
        given = [None if value is None else constant(value, cover.launch) for value in chosen]
    return [passed for passed in given if passed] if all(given) else ()


def _proof(size: str, number: int, blocks: _Blocks) -> str:
    lengths = sorted({*blocks.lengths})
    fills = "no power of two" if blocks.is_whole else f"no multiple of {' and '.join(map(str, lengths))}"
    return f"{size} = {number} in this file, which is {fills}."


def may_overrun(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether nothing in the source keeps a block's offsets within the tensor.

    What keeps them is a mask, a remainder, a clamp, a range of literal length, or one whose length every
    launch takes from a shape. A branch whose other branch has a mask counts as masked.
    """
    if access.mask is not None or hides_arguments(access.call) or is_elsewhere_masked(access, kernel):
        return False
    made_from = kernel.direct_origins(access.address)
    if made_from & clamps(kernel):
        return False
    lengths = [kernel.range_end(node) for node in made_from]
    return any(length is not None and not _is_exact(length, kernel) for length in lengths)


def is_elsewhere_masked(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it is in a branch, and the kernel has masked accesses through the same pointer.

    Not where every launch in the file takes the branch by a literal.
    """
    around = kernel.around(access.call)
    conditions = [outer.test for outer in around if isinstance(outer, ast.If | ast.IfExp)]
    if not conditions or any(_is_always_taken(test, access, kernel) for test in conditions):
        return False
    return any(
        other.mask is not None and other.pointer == access.pointer and other.name == access.name
        for other in kernel.accesses
    )


@lru_cache(maxsize=64)
def clamps(kernel: SourceKernel) -> frozenset[ast.AST]:
    """The values of a kernel that a remainder or a clamp keeps within something."""
    remainders = [
        node for node in kernel.nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
    ]
    return frozenset((*remainders, *(made.call for made in kernel.calls("where", "minimum", "clamp"))))


def _is_always_taken(test: ast.expr, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether a flag that decides for the access is a literal in every launch, and no heuristic sets it."""
    if not isinstance(test, ast.Name) or not kernel.launches or "triton.heuristics" in kernel.decorators:
        return False
    given = [launch.given.get(test.id) for launch in kernel.launches]
    return all(isinstance(passed, ast.Constant) and passed.value is True for passed in given)


def _is_exact(length: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a literal, or a size that all launches pass as it is."""
    if literal_integer(length) is not None:
        return True
    if not isinstance(length, ast.Name) or not kernel.launches:
        return False
    given = [(launch, launch.given.get(length.id)) for launch in kernel.launches]
    return all(value is not None and size_of(value, launch) is not None for launch, value in given)
