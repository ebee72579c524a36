"""Products of matrices that tensor cores do not compute, or compute in fewer bits."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launch_sizes import constant
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of, loaded_from
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.examples import ROW, declared, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import INTEGERS
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import SourceKernel

_PRODUCT = "tl.sum(a[:, None, :] * a[None, :, :], axis=2)"


def _summed(product: str = _PRODUCT, size: int = 16) -> str:
    load = "a = tl.load(x_ptr + i[:, None] * n + i[None, :]).to(tl.float32)"
    return jit(ROW, load, f"c = {product}") + run(f"kernel[(1,)](x, out, {size}, B={size})")


_LEAST = 16
"""What tl.dot needs along each axis."""


@kernel_rule(
    "medium",
    "performance",
    bad=(_summed(),),
    # tl.dot needs 16 at least.
    good=(_summed(size=8),),
)
def product_without_dot(kernel: SourceKernel) -> Iterator[Fault]:
    """A matrix product is written as a product of two broadcast blocks that tl.sum adds up.

    The block of all products has three axes and has to lie in registers before it is summed, and the tensor
    cores, which are many times faster, stay unused.

    Fix: give tl.dot the two blocks, with the summed axis last in the first and first in the second.
    """
    for call in kernel.calls("sum"):
        axis = literal_integer(call.option(1, "axis"))
        factors = _factors(kernel, call.operands[0]) if call.operands else None
        if factors is None or axis is None or axis % 3 != _shared_axis(*factors):
            continue
        one, other = factors
        sizes = _sizes(kernel, one, other)
        if sizes and min(sizes) >= _LEAST and not any(kernel.dtype(side) in INTEGERS for side in factors):
            first, second = ast.unparse(one.value), ast.unparse(other.value)
            yield Fault(
                call.call,
                f"This is the matrix product of {first} and {second}: its {' * '.join(map(str, sizes))} "
                "products lie in registers, and no tensor core is used.",
                f"Write tl.dot of {first} and {second}, transposed so that the summed axis meets.",
            )


def _factors(kernel: SourceKernel, value: ast.expr) -> tuple[ast.Subscript, ast.Subscript] | None:
    """The two sides of `a[:, None, :] * b[None, :, :]`, each with one new axis."""
    match kernel.resolved(value):
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = kernel.resolved(left), kernel.resolved(right)
            if isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript):
                return (one, other) if {_new_axis(one), _new_axis(other)} - {None} else None
    return None


def _new_axis(block: ast.Subscript) -> int | None:
    """The one of three axes that `[:, None, :]` adds."""
    match block.slice:
        case ast.Tuple(elts=[_, _, _] as parts):
            added = [axis for axis, part in enumerate(parts) if isinstance(part, ast.Constant)]
            return added[0] if len(added) == 1 else None
    return None


def _shared_axis(one: ast.Subscript, other: ast.Subscript) -> int | None:
    """The axis that both blocks have; None where they are not of two axes each, added at different places."""
    first, second = _new_axis(one), _new_axis(other)
    return None if first is None or second is None or first == second else 3 - first - second


def _sizes(kernel: SourceKernel, *factors: ast.Subscript) -> list[int] | None:
    """The least that each range of the blocks can be; None where the launches do not show."""
    ends = sorted(kernel.range_ends(*factors), key=lambda end: end.lineno)
    sizes = [_least(end, kernel) for end in {ast.unparse(end): end for end in ends}.values()]
    return None if None in sizes else [size for size in sizes if size is not None]


def _least(size: ast.expr, kernel: SourceKernel) -> int | None:
    """The least that a size of a block is in the launches of a kernel."""
    if not isinstance(size, ast.Name):
        return literal_integer(size)
    given = [(launch, launch.given.get(size.id)) for launch in kernel.launches]
    passed = [None if value is None else constant(value, launch) for launch, value in given]
    known = [number for number in passed if number is not None]
    return min(known, default=None) if len(known) == len(passed) else None


_SQUARE = (ROW, "x = tl.load(x_ptr + i[:, None] * B + i[None, :])")
_WIDENED = "c = tl.dot(x.to(tl.float32), x.to(tl.float32))"
_SETTINGS = frozenset({"input_precision", "allow_tf32", None})


def _compiled(dtype: str, precision: str = "") -> str:
    store = f"tl.store(out_ptr + i[:, None] * B + i[None, :], tl.dot(x, x{precision}))"
    return declared(jit(*_SQUARE, store), "kernel[(1,)](x, out, 32, B=32)", x=f"{dtype}[M, M]", M=32)


_COMPILED = remark_check(
    "tf32_product",
    "{kernel} rounds the float32 operands of tl.dot to TF32: errors of about 1e-3.",
    'Pass input_precision="ieee", or "tf32x3" where speed matters.',
    bad=(_compiled("float32"), _compiled("float32", ', input_precision="tf32"')),
    good=(_compiled("float32", ', input_precision="tf32x3"'), _compiled("float16")),
)


@kernel_rule(
    "low",
    "numerical stability",
    bad=(jit(*_SQUARE, _WIDENED),),
    good=(jit(*_SQUARE, _WIDENED.replace("))", '), input_precision="ieee")')),),
    also=_COMPILED,
)
def tf32_product(kernel: SourceKernel) -> Iterator[Fault]:
    """A tl.dot of float32 operands rounds them to TF32.

    That is Triton's default on NVIDIA GPUs from Ampere on: of each operand 11 bits count, as in float16.
    PyTorch multiplies in full float32 unless torch.backends.cuda.matmul.allow_tf32 is set; results differ
    by about 1e-3.

    Fix: pass input_precision="ieee", or "tf32x3" and "bf16x6", which are about as precise and faster; pass
    "tf32" where speed matters more.
    """
    for call in kernel.calls("dot"):
        if len(call.operands) > 3:
            continue
        if any(keyword.arg in _SETTINGS for keyword in call.call.keywords):
            continue
        given = [operand for operand in call.operands[:2] if _is_given_float32(operand, kernel)]
        exact = given or [operand for operand in call.operands[:2] if kernel.dtype(operand) == "float32"]
        if exact:
            yield Fault(
                call.call,
                f"{ast.unparse(exact[0])} is float32, and this tl.dot rounds it to TF32, 11 bits.",
                'Pass input_precision: "ieee" or "tf32x3" for float32 results, "tf32" for speed.',
                severity="medium" if given else None,
            )


def _is_given_float32(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is loaded from a tensor that is float32, or loaded and cast to that."""
    pointer = loaded_from(value, kernel)
    if pointer is not None:
        return dtypes_of(pointer, kernel) == {"float32"}
    return kernel.dtype(value) == "float32" and kernel.is_a(
        kernel.bare(kernel.operand(value, "trans") or value), "load"
    )
