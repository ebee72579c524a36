"""Draws that do not depend on a program id by which their results are stored."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.programs import is_opaque, is_wide, program_axes
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_DRAWING = frozenset(
    f"triton.language.{module}{name}"
    for module in ("", "random.")
    for name in ("rand", "randn", "randint", "rand4x", "randn4x", "randint4x")
)
_DEEPEST = 3
"""Functions that call each other."""
_LAUNCH = """
def run(x, out, seed):
    M, N = x.shape
    kernel[(M, triton.cdiv(N, 64))](x, out, N, seed, B=64)
"""
_ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, N, seed, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    i = row * N + cols
    x = tl.load(x_ptr + i, mask=cols < N)
    keep = {keep}
    tl.store(out_ptr + i, tl.where(keep, 2 * x, 0.0), mask=cols < N)
"""
_HELPER = """
@triton.jit
def noise(seed, at):
    return tl.rand(seed, at) > 0.5
"""
BAD = (_ROWS.format(keep="tl.rand(seed, cols) > 0.5") + _LAUNCH,)
GOOD = (_HELPER + _ROWS.format(keep="noise(seed, i)") + _LAUNCH,)


@dataclass(frozen=True, eq=False)
class Draw:
    """A call that draws random numbers, itself or in a function that it calls."""

    call: ast.Call
    decided_by: tuple[ast.expr, ...]
    """The arguments that seeds and offsets are made from."""


@kernel_rule("high", "correctness", BAD, GOOD)
def shared_random_numbers(kernel: SourceKernel) -> Iterator[Fault]:
    """Several programs generate the same random numbers.

    tl.rand and its kind give the same number for the same seed and offset, whichever program asks. With
    offsets that are the same in many programs, every row gets the same dropout mask.

    Fix: use as offset the place of the element in the whole tensor: tl.rand(seed, row * n_cols + cols).
    """
    if not kernel.launches:
        return
    wide = {axis for axis in range(3) if all(is_wide(axis, launch) for launch in kernel.launches)}
    for draw in _draws(kernel, depth=_DEEPEST):
        if is_opaque(kernel, *draw.decided_by):
            continue
        shared = sorted(wide & _stored_by(draw.call, kernel) - program_axes(kernel, *draw.decided_by))
        if shared:
            yield Fault(
                draw.call,
                f"The seed and the offset of {ast.unparse(draw.call)} do not depend on tl.program_id"
                f"({shared[0]}): all programs along this axis generate the same numbers.",
                f"Make the offset from tl.program_id({shared[0]}), too: the place of each element in the "
                "whole tensor.",
            )


def _draws(kernel: SourceKernel, *, depth: int) -> Iterator[Draw]:
    functions: dict[ast.AST, SourceKernel] = {one.node: one for one in kernel.file.kernels}
    for node in kernel.nodes:
        if not isinstance(node, ast.Call):
            continue
        if kernel.scope.path(node.func) in _DRAWING:
            decided_by = (argument(node, 0, "seed"), argument(node, 1, "offset"))
            if all(decided_by):
                yield Draw(node, tuple(one for one in decided_by if one))
        elif isinstance(node.func, ast.Name) and depth > 0:
            binding = kernel.scope.find(node.func.id)
            called = functions.get(binding.node) if binding else None
            if called is not None and called is not kernel:
                yield from _draws_of_call(node, called, depth=depth - 1)


def _draws_of_call(call: ast.Call, called: SourceKernel, *, depth: int) -> Iterator[Draw]:
    """What a function of the file draws by its arguments alone."""
    for inner in _draws(called, depth=depth):
        if is_opaque(called, *inner.decided_by) or any(program_axes(called, one) for one in inner.decided_by):
            continue
        names = called.flow.parameters(*inner.decided_by)
        given = [argument(call, place, name) for place, name in enumerate(called.parameters) if name in names]
        if all(given):
            yield Draw(call, tuple(one for one in given if one))


def _stored_by(call: ast.Call, kernel: SourceKernel) -> frozenset[int]:
    """The grid's axes whose program ids tell apart the places where what was drawn is stored."""
    axes = [
        program_axes(kernel, access.address)
        for access in kernel.accesses
        if access.value is not None and call in kernel.flow.origins(access.value)
    ]
    return frozenset[int]().union(*axes)
