"""Which accesses without a mask may leave their tensor."""

import ast
from functools import lru_cache

from pytorch_to_triton.audit.analysis.addresses import is_loaded
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.call_arguments import argument, whole_number
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_TL = "triton.language."
_CLAMPS = frozenset({"where", "minimum", "clamp"})


def may_overrun(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether nothing in the source keeps a block's offsets within the tensor.

    What keeps them is a mask, a remainder, a clamp, a range of literal length, or one whose length every
    launch takes from a shape. A branch whose other branch has a mask counts as masked.
    """
    if access.mask is not None or _hides_arguments(access.call) or is_elsewhere_masked(access, kernel):
        return False
    made_from = kernel.flow.origins(access.address, stop=lambda node: is_loaded(node, kernel))
    if made_from & clamps(kernel):
        return False
    lengths = [_length(node, kernel) for node in made_from if isinstance(node, ast.Call)]
    return any(length is not None and not _is_exact(length, kernel) for length in lengths)


def _hides_arguments(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        keyword.arg in (None, "boundary_check") for keyword in call.keywords
    )


def is_elsewhere_masked(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it is in a branch, and the kernel has masked accesses through the same pointer.

    Not where every launch in the file says with a literal that the branch is the one to take.
    """
    around = kernel.flow.around(access.call)
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
    return frozenset(node for node in kernel.nodes if _is_clamp(node, kernel))


def _is_always_taken(test: ast.expr, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether a flag that decides for the access is a literal in every launch, and no heuristic sets it."""
    if not isinstance(test, ast.Name) or not kernel.launches or "triton.heuristics" in kernel.decorators:
        return False
    given = [launch.given(kernel).get(test.id) for launch in kernel.launches]
    return all(isinstance(one, ast.Constant) and one.value is True for one in given)


def _is_clamp(node: ast.AST, kernel: SourceKernel) -> bool:
    match node:
        case ast.BinOp(op=ast.Mod()):
            return True
        case ast.Call(func=function):
            return (kernel.scope.path(function) or "").removeprefix(_TL) in _CLAMPS
    return False


def _length(call: ast.Call, kernel: SourceKernel) -> ast.expr | None:
    """Where a tl.arange ends."""
    return argument(call, 1, "end") if kernel.scope.path(call.func) == f"{_TL}arange" else None


def _is_exact(length: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a literal, or a size that all launches pass as it is."""
    if whole_number(length) is not None:
        return True
    if not isinstance(length, ast.Name) or not kernel.launches:
        return False
    given = [(launch, launch.given(kernel).get(length.id)) for launch in kernel.launches]
    return all(value is not None and size_of(value, launch) is not None for launch, value in given)
