"""What certainly counts lanes that a mask leaves out, and what may do so."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.masked_lanes import NOT_ZERO, Lanes, padded_means, padding_along
from pytorch_to_triton.audit.analysis.reductions import (
    PoisonedReduction,
    poisoned_reductions,
    undefined_lanes,
)
from pytorch_to_triton.audit.examples import ROW, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_LOAD = "x = tl.load(x_ptr + i, mask=i < n, other=0.0)"
_MEAN = "mean = tl.sum(x) / n"
_PRODUCT = jit(
    ROW,
    "a = tl.load(x_ptr + i[:, None] * n + i[None, :], mask=i[None, :] < n)",
    "b = tl.load(x_ptr + i[:, None] * B + i[None, :], mask=i[:, None] < n)",
    "tl.store(out_ptr + i[:, None] * B + i[None, :], tl.dot(a, b))",
)


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        # Masked lanes hold what is not neutral.
        jit(ROW, _LOAD, "tl.store(out_ptr, tl.max(x.to(tl.float32), axis=0))"),
        jit(ROW, "x = tl.load(x_ptr + i, i < n, 0.0)", "tl.store(out_ptr, tl.sum(1.0 - x, 0))"),
        _PRODUCT,
        jit(ROW, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1)"),
        jit(ROW, _LOAD, _MEAN, "tl.store(out_ptr, tl.sum((x - mean) ** 2) / n)"),
        jit(ROW, _LOAD, "e = tl.exp(x - tl.max(x))", "tl.store(out_ptr, tl.sum(e))"),
    ),
    good=(
        jit(ROW, _LOAD, "tl.store(out_ptr, tl.max(tl.abs(x)) + tl.max(x * x))"),
        # What a row of a matrix sums up to is a block, and masked like the other.
        jit(
            ROW,
            _LOAD,
            "mask = (i < n)[:, None] & (i < n)[None, :]",
            "a = tl.load(out_ptr + i[:, None] * n + i[None, :], mask=mask, other=0.0)",
            "rest = x - tl.sum(a * x[None, :], axis=1)",
            "tl.store(out_ptr, tl.sum(rest * rest))",
        ),
        # Each lane is masked in all steps or in none, and stored where it is in none.
        jit(
            ROW,
            'best = tl.full((B,), float("-inf"), tl.float32)',
            "for row in range(n):",
            "    best = tl.maximum(best, tl.load(x_ptr + row * n + i, mask=i < n, other=0.0))",
            "tl.store(out_ptr + i, best, mask=i < n)",
        ),
    ),
    suspected=Unconfirmed("low", ("wrong_results", "unstable_results", "undefined_values")),
)
def masked_lanes_counted(kernel: SourceKernel) -> Iterator[Fault]:
    """Lanes that a mask leaves out take part in a result.

    A masked load fills them with `other`, or leaves them undefined: zero on some GPUs and compilers,
    anything on others. They change a sum unless they are 0, a maximum unless they are -inf, and a minimum
    unless they are inf; and arithmetic turns a neutral 0 into something else: (0 - mean) squared adds to a
    variance, exp(0 - max) to the sum of a softmax. A mean that is divided by the width of the block counts
    them too.

    Fix: pass the neutral value as other=, or put it in with tl.where(mask, x, value) right before the
    reduction; divide by the number of elements.
    """
    for poisoned in poisoned_reductions(kernel):
        call, name, neutral = poisoned.operation.call, poisoned.operation.name, poisoned.neutral
        is_certain = _is_certain(poisoned, kernel)
        yield Fault(
            call,
            f"{_content(poisoned.held)} tl.{name} counts the lanes that the mask of the load in line "
            f"{poisoned.held.load.call.lineno} leaves out; {neutral} would change nothing.",
            f"Put {neutral} there: by other= of the load, or by tl.where(mask, ..., {neutral}) right "
            f"before tl.{name}.",
            severity="high" if poisoned.is_decisive or is_certain else None,
            certain=is_certain,
        )
    for taken in undefined_lanes(kernel):
        yield Fault(
            taken.load.call,
            "Without other=, the lanes that the mask leaves out are undefined, and "
            f"{taken.where} counts them.",
            f"Add other={taken.neutral}.",
            severity=taken.severity,
        )
    for mean in padded_means(kernel):
        end, width = mean.padding.end, mean.padding.width
        yield Fault(
            mean.quotient,
            f"The sum has at most {end} terms and is divided by {width}, the width of the block: the mean is "
            f"too small wherever {end} is less.",
            f"Divide by {end}, the number of elements that the mask lets through.",
            severity="high",
            certain=True,
        )


def _is_certain(poisoned: PoisonedReduction, kernel: SourceKernel) -> bool:
    """Whether a sum certainly counts padding: the mask ends before the block does."""
    is_sum = poisoned.operation.name == "sum" and poisoned.held.hold == NOT_ZERO
    return is_sum and padding_along(poisoned.held.load, poisoned.operation, kernel) is not None


def _content(held: Lanes) -> str:
    if isinstance(held.hold, float):
        return f"Masked lanes hold {held.hold:g} here."
    assert isinstance(held.load.other, ast.expr)
    return f"Masked lanes, loaded as {ast.unparse(held.load.other)}, no longer hold 0 here."
