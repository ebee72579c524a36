"""The address of one tensor is computed with the strides of another.

It is right only as long as both tensors have the same shape and layout.

Instead, multiply each offset with the stride of the tensor that the address is in.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import is_loaded
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Access, Kernel

SEVERITY = "high"
CATEGORY = "correctness"
_POINTER_WORDS = frozenset({"ptr", "pointer", "ptrs", "p"})
_PARAMETERS = "q_ptr, k_ptr, n, stride_qb, stride_qm, stride_kb, stride_kn, B: tl.constexpr"
_KERNEL = f"""
@triton.jit
def kernel({_PARAMETERS}):
    b = tl.program_id(0)
    i = tl.arange(0, B)
    q = tl.load(q_ptr + b * stride_qb + i * stride_qm, mask=i < n)
    k_base = k_ptr + b * {{stride}}
    tl.store(k_base + i * stride_kn, q, mask=i < n)
"""
BAD = (
    _KERNEL.format(stride="stride_qb"),
    """
@triton.jit
def kernel(x_ptr, y_ptr, x_row_stride, y_row_stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * x_row_stride + i, mask=i < n)
    y_ptr += row * x_row_stride
    tl.store(y_ptr + i, x, mask=i < n)
""",
)
GOOD = (
    _KERNEL.format(stride="stride_kb"),
    # The kernel has no stride of its own for the axis.
    _KERNEL.format(stride="stride_qb").replace("stride_kb, ", ""),
    """
@triton.jit
def kernel(a_ptr, b_ptr, stride_am, stride_ak, stride_bk, stride_bm, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(a_ptr + i * stride_am + j * stride_ak)
    tl.store(b_ptr + i * stride_bk + j * stride_bm, a)
""",
    """
@triton.jit
def kernel(x_ptr, y_ptr, x_row_stride, y_row_stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * x_row_stride + i, mask=i < n)
    y_ptr += row * (x_row_stride if n == 1 else y_row_stride)
    tl.store(y_ptr + i, x, mask=i < n)
""",
)


def check(kernel: Kernel) -> Iterator[Fault]:
    """Products with a stride that is named for another pointer, where the like of this one is not used."""
    if not any(_is_stride(name) for name in kernel.parameters):
        return
    stems = {access.pointer: _stem(access.pointer) for access in kernel.accesses if access.pointer}
    found: set[ast.Name] = set()
    for access in kernel.accesses:
        if access.pointer is None:
            continue
        for stride, other, own in _swapped(access, stems, kernel):
            if stride not in found:
                found.add(stride)
                yield Fault(
                    stride,
                    f"{stride.id} is a stride of {other}, and the address is in {access.pointer}, whose own "
                    f"{own} is not used for it: it is wrong where the two tensors differ in layout.",
                    f"Use {own} here.",
                    own,
                )


def _swapped(access: Access, stems: dict[str, str], kernel: Kernel) -> Iterator[tuple[ast.Name, str, str]]:
    """Each stride in an address that is another pointer's, with that pointer and the stride to use."""
    made_from = kernel.flow.origins(access.address, stop=lambda node: is_loaded(node, kernel))
    used = {node.id for node in made_from if isinstance(node, ast.Name)}
    for node in sorted(_strides(made_from, kernel), key=lambda one: (one.lineno, one.col_offset)):
        for other, stem in stems.items():
            if access.pointer is None or other == access.pointer or stem == stems[access.pointer]:
                continue
            own = _renamed(node.id, stem, stems[access.pointer])
            if own in kernel.parameters and own not in used:
                yield node, other, own


def _strides(nodes: frozenset[ast.AST], kernel: Kernel) -> Iterator[ast.Name]:
    """The parameters that are named as strides and multiplied with something."""
    for node in nodes:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for side in (left, right):
                    if isinstance(side, ast.Name) and side.id in kernel.parameters and _is_stride(side.id):
                        yield side


def _is_stride(name: str) -> bool:
    return "stride" in name.lower()


def _stem(pointer: str) -> str:
    """`q` for q_ptr, Q and p_q; the whole name where it says nothing else."""
    words = [word for word in pointer.split("_") if word and word.lower() not in _POINTER_WORDS]
    return "_".join(words).lower() or pointer.lower()


def _renamed(stride: str, stem: str, to: str) -> str | None:
    """`stride_kb` for stride_qb, and `y_row_stride` for x_row_stride; None where the name lacks the stem."""
    before, after = f"_{stride}_", None
    if f"_{stem}_" in before:
        after = before.replace(f"_{stem}_", f"_{to}_", 1)
    else:
        words = stride.split("_")
        for place, word in enumerate(words):
            if len(stem) == 1 and len(word) == 2 and word.startswith(stem):
                after = "_".join(["", *words[:place], to + word[1:], *words[place + 1 :], ""])
                break
    return after[1:-1] if after else None
