"""Which accesses reach beyond the end of a size, because the last block is not full and no mask says so."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import is_loaded
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.configurations import configurations
from pytorch_to_triton.audit.analysis.covered import Cover, covers, passed
from pytorch_to_triton.audit.analysis.launch_sizes import (
    DeclaredSize,
    constant,
    declared_size,
    literal_sizes,
)
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.analysis.programs import parameters_for
from pytorch_to_triton.audit.analysis.size_guards import is_guarded, is_padded
from pytorch_to_triton.audit.analysis.unmasked import clamps, is_elsewhere_masked
from pytorch_to_triton.audit.call_arguments import argument, whole_number
from pytorch_to_triton.audit.flow import Stop, nowhere
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity

_TL = "triton.language."


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
    found = [
        _judged(cover, length, access, kernel)
        for length in _open_lengths(access, kernel)
        for cover in covers(length, access.call, access.address, kernel)
    ]
    known = [tail for tail in found if tail is not None]
    real = [tail for tail in known if tail.severity is not None]
    return min(
        real, key=lambda tail: SEVERITIES.index(tail.severity or "info"), default=next(iter(known), None)
    )


def _is_peeled(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it is in a loop over whole blocks, and the last block follows with a mask."""
    around = kernel.flow.loops(access.call)
    return bool(around) and any(
        other.mask is not None
        and (other.name, other.pointer) == (access.name, access.pointer)
        and other.call.lineno > access.call.lineno
        and around[0] not in kernel.flow.loops(other.call)
        for other in kernel.accesses
    )


def _open_lengths(access: KernelAccess, kernel: SourceKernel) -> Iterator[ast.expr]:
    """The lengths of the ranges in an address that neither a mask nor a clamp bounds."""
    if any(isinstance(one, ast.Starred) for one in access.call.args):
        return
    if any(keyword.arg in (None, "boundary_check") for keyword in access.call.keywords):
        return
    block_shape = _block_shape(access.address, kernel)
    if block_shape is not None:
        yield from block_shape
        return
    held = clamps(kernel)
    # A mask that was loaded, from beyond the end as zeros, bounds what its own address runs over.
    bounded = {ast.unparse(length) for length in _ranges(access.mask, kernel)} if access.mask else set()
    sizes = _names(access.mask, kernel) if access.mask else frozenset()
    seen: set[str] = set()
    for length in _ranges(access.address, kernel, lambda node: node in held or is_loaded(node, kernel)):
        text = ast.unparse(length)
        if text not in bounded | seen and not _is_tied(length, sizes, kernel):
            seen.add(text)
            yield length


def _ranges(value: ast.expr, kernel: SourceKernel, stop: Stop = nowhere) -> Iterator[ast.expr]:
    """The ends of the tl.arange that a value is made from."""
    calls = [node for node in kernel.flow.origins(value, stop=stop) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        end = argument(call, 1, "end") if kernel.scope.path(call.func) == f"{_TL}arange" else None
        if end is not None:
            yield end


def _ends(kernel: SourceKernel) -> Iterator[ast.expr]:
    for path, call in kernel.calls():
        if path == f"{_TL}arange" and (end := argument(call, 1, "end")) is not None:
            yield end


def _is_tied(length: ast.expr, masked: frozenset[str], kernel: SourceKernel) -> bool:
    """Whether a mask names the length itself, as `offsets < end` with `end = start + BLOCK` does."""
    return isinstance(length, ast.Name) and length.id in masked and length.id not in kernel.constexprs


def _names(value: ast.expr, kernel: SourceKernel) -> frozenset[str]:
    return frozenset(node.id for node in kernel.flow.origins(value) if isinstance(node, ast.Name))


def _block_shape(address: ast.expr, kernel: SourceKernel) -> Sequence[ast.expr] | None:
    """The lengths of a block pointer; None where the address is something else."""
    for path, call in kernel.flow.calls(address):
        if path == f"{_TL}make_block_ptr":
            shape = argument(call, 4, "block_shape")
            return shape.elts if isinstance(shape, ast.Tuple | ast.List) else ()
    return None


@dataclass(frozen=True)
class _Blocks:
    """Blocks of some length that cover a size."""

    lengths: Sequence[int]
    """What the length may be; empty where nothing tells."""
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


def _judged(cover: Cover, length: ast.expr, access: KernelAccess, kernel: SourceKernel) -> Tail | None:
    """The tail of a size, None where something keeps it from being one that cannot be told."""
    launch = cover.launch
    size, block = ast.unparse(cover.size), ast.unparse(length)
    blocks = _Blocks(() if cover.is_whole else _lengths(length, cover, kernel), cover.is_whole)
    number = constant(cover.size, launch)
    if number is not None:
        is_open = blocks.are_known and not blocks.fit(number)
        return Tail(size, block, "critical" if is_open else None, _proof(size, number, blocks))
    if _is_chunk(cover, kernel):
        return None
    if any(is_padded(value, launch) for value in (cover.size, *_tensors(cover, access, kernel))):
        return None
    extent = size_of(cover.size, launch)
    declared = declared_size(extent, launch, kernel.file) if extent else None
    if is_guarded(cover.size, launch, kernel) or (declared and _is_excluded(declared, blocks)):
        return Tail(size, block, None)
    literal = literal_sizes(extent, launch, kernel.file) if extent else ()
    known = [*(declared.values() if declared else ()), *literal]
    unfit = next((one for one in known if blocks.are_known and not blocks.fit(one)), None)
    if unfit is not None:
        return Tail(size, block, "critical", _proof(declared.text if declared else size, unfit, blocks))
    return Tail(size, block, "high") if extent or _varies(cover.size, launch) else None


def _varies(size: ast.expr, launch: LaunchSite) -> bool:
    """Whether a size is one that the caller passes, or a size of a tensor with something added."""
    match launch.flow.resolved(size):
        case ast.Name():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub()):
            return size_of(left, launch) is not None or _varies(left, launch)
    return False


def _is_chunk(cover: Cover, kernel: SourceKernel) -> bool:
    """Whether the size is itself the length of a block, which smaller ones divide."""
    launched = kernel.file.kernel_of(cover.launch)
    names = parameters_for(cover.size, launched, cover.launch) if launched else frozenset()
    return any(ast.unparse(end) in names for one in kernel.file.kernels for end in _ends(one))


def _is_excluded(declared: DeclaredSize, blocks: _Blocks) -> bool:
    """Whether REQUIRES allows only sizes that whole blocks fill."""
    upto = 2 * max(blocks.lengths, default=64)
    return blocks.are_known and declared.is_always(blocks.fit, upto)


def _tensors(cover: Cover, access: KernelAccess, kernel: SourceKernel) -> list[ast.expr]:
    """What the launch passes for the pointer."""
    given = passed(access.pointer, kernel) if access.pointer else ()
    return [value for launch, value in given if launch is cover.launch]


def _lengths(length: ast.expr, cover: Cover, kernel: SourceKernel) -> Sequence[int]:
    """What a length may be, by literals, by the launch and by the autotuner's configurations."""
    literal = whole_number(length)
    if literal is not None or not isinstance(length, ast.Name):
        return [literal] if literal else ()
    given = [constant(value, launch) for launch, value in passed(length.id, kernel) if launch is cover.launch]
    launched = kernel.file.kernel_of(cover.launch)
    if not given and launched:
        chosen = [one.values.get(length.id) for one in configurations(launched)]
        given = [None if value is None else constant(value, cover.launch) for value in chosen]
    return [one for one in given if one] if all(given) else ()


def _proof(size: str, number: int, blocks: _Blocks) -> str:
    lengths = sorted({*blocks.lengths})
    fills = "no power of two" if blocks.is_whole else f"no multiple of {' and '.join(map(str, lengths))}"
    return f"{size} = {number} in this file, which is {fills}."
