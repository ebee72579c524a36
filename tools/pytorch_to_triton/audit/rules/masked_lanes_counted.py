"""What certainly counts lanes that a mask leaves out, and what may do so."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from pytorch_to_triton.audit.analysis.addresses import MaskBound, addends, bounds, range_length
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.covered import is_guarded
from pytorch_to_triton.audit.analysis.masked_lanes import (
    NEUTRAL,
    NOT_ZERO,
    UNDEFINED,
    Lanes,
    is_masked_along,
    is_masked_later,
    is_never_negative,
    lanes,
    load_of,
)
from pytorch_to_triton.audit.call_arguments import factors
from pytorch_to_triton.audit.examples import ROW, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity

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
    yield from _poisoned_reductions(kernel)
    yield from sorted(_undefined_lanes(kernel), key=lambda fault: SEVERITIES.index(fault.severity or "low"))
    yield from _padded_means(kernel)


_RUNNING = {"maximum": "max", "minimum": "min"}
"""What a loop keeps in an accumulator, by the reduction that it stands for."""
_LEAST = 1000.0
"""What stands for infinity in many kernels is at least this."""


def _poisoned_reductions(kernel: SourceKernel) -> Iterator[Fault]:
    """Reductions of blocks whose masked lanes certainly hold something that is not neutral."""
    for called in kernel.calls(*NEUTRAL, *_RUNNING):
        held = _lanes_taken(called, kernel) if called.operands else None
        if held is None:
            continue
        neutral = NEUTRAL[_RUNNING.get(called.name, called.name)]
        is_open = called.name == "sum" and held.hold == NOT_ZERO
        # The mask ends before the block does.
        is_certain = is_open and _padding_along(held.load, called, kernel) is not None
        is_decisive = neutral != "0.0" and _is_decisive(called.call, held.load, kernel)
        yield Fault(
            called.call,
            f"{_content(held)} tl.{called.name} counts the lanes that the mask of the load in line "
            f"{held.load.call.lineno} leaves out; {neutral} would change nothing.",
            f"Put {neutral} there: by other= of the load, or by tl.where(mask, ..., {neutral}) right "
            f"before tl.{called.name}.",
            severity="high" if is_decisive or is_certain else None,
            certain=is_certain,
        )


def _content(held: Lanes) -> str:
    if isinstance(held.hold, float):
        return f"Masked lanes hold {held.hold:g} here."
    assert isinstance(held.load.other, ast.expr)
    return f"Masked lanes, loaded as {ast.unparse(held.load.other)}, no longer hold 0 here."


def _lanes_taken(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change a reduction."""
    if called.name in _RUNNING:
        return _lanes_kept(called, kernel)
    return _lanes_reduced(called.operands[0], called, kernel) or _lanes_passed(called, kernel)


def _lanes_passed(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes of a block that another kernel passes to this function, which reduces it as it is."""
    block = kernel.bare(called.operands[0])
    held = kernel.definitions(block) if isinstance(block, ast.Name) else ()
    if kernel.is_launched or len(held) != 1 or not isinstance(held[0], ast.arg):
        return None
    name = held[0].arg
    passed = (one for one in kernel.passed(name) if one[1] not in one[0].selected)
    return next(filter(None, (_lanes_reduced(given, called, caller) for caller, _, given in passed)), None)


def _lanes_reduced(block: ast.expr, called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change what tl.sum and the like make of a block."""
    held = lanes(block, kernel)
    if held is None or not _poisons(held, called.name, block, kernel):
        return None
    return held if is_masked_along(held.load, called.option(1, "axis"), kernel) else None


def _lanes_kept(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change a maximum which a loop keeps, where each step masks other lanes."""
    for kept, block in (called.operands[:2], called.operands[1::-1]):
        start = _start(kept, called, kernel)
        held = lanes(block, kernel) if start is not None else None
        if held is None or not _poisons(held, _RUNNING[called.name], block, kernel):
            continue
        if abs(start or 0.0) >= _LEAST and _differs_by_step(held, called, kernel):
            return held
    return None


def _start(kept: ast.expr, called: Operation, kernel: SourceKernel) -> float | None:
    """The number that a name holds before a loop updates it by the call; None where it is something else."""
    held = kernel.definitions(kept) if isinstance(kept, ast.Name) else ()
    starts = [definition for definition in held if definition is not called.call]
    if len(starts) != 1 or len(held) != 2 or not isinstance(starts[0], ast.expr):
        return None
    made = kernel.operation(kernel.bare(starts[0]))
    value = made.option(1, "value") if made and made.name == "full" else starts[0]
    return kernel.number(value) if value is not None else None


def _differs_by_step(held: Lanes, called: Operation, kernel: SourceKernel) -> bool:
    """Whether the load's mask is made from what the loop around the call runs over."""
    loops = [loop for loop in kernel.loops(called.call) if isinstance(loop, ast.For)][:1]
    origins = kernel.origins(held.load.mask) if held.load.mask else frozenset()
    names = {node.id for node in origins if isinstance(node, ast.Name)}
    return any(isinstance(loop.target, ast.Name) and loop.target.id in names for loop in loops)


def _poisons(held: Lanes, reduction: str, block: ast.expr, kernel: SourceKernel) -> bool:
    match reduction, held.hold:
        case "sum", float(hold):
            return hold != 0
        case "sum", content:
            return content == NOT_ZERO
        case "max" | "argmax", float(hold):
            return hold > -_LEAST and not (hold == 0 and is_never_negative(block, kernel))
        case "min" | "argmin", float(hold):
            return hold < _LEAST
    return False


def _undefined_lanes(kernel: SourceKernel) -> Iterator[Fault]:
    """Loads whose undefined lanes certainly reach a result."""
    for called in kernel.operations:
        where = f"tl.{called.name} in line {called.call.lineno}"
        if called.name in NEUTRAL and called.operands:
            axis = called.option(1, "axis")
            for load in _undefined(called.operands[0], axis, kernel):
                yield _counted(load, where, NEUTRAL[called.name], _severity(called, load, kernel))
        elif called.name == "dot" and len(called.operands) >= 2:
            for side, summed in ((0, 1), (1, 0)):
                for load in _undefined(called.operands[side], ast.Constant(summed), kernel):
                    yield _counted(load, where, "0.0", _of_sum(load, kernel))
    for access in kernel.accesses:
        is_plain = access.name == "store" and access.mask is None and not access.call.keywords
        for load in _undefined(access.value, None, kernel) if is_plain and access.value else ():
            yield _counted(load, f"the store without a mask in line {access.call.lineno}", "0.0", None)


def _counted(load: KernelAccess, where: str, neutral: str, severity: Severity | None) -> Fault:
    return Fault(
        load.call,
        f"Without other=, the lanes that the mask leaves out are undefined, and {where} counts them.",
        f"Add other={neutral}.",
        severity=severity,
    )


def _severity(called: Operation, load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Of a maximum or minimum: what usually stands in undefined lanes, zeros, decides it too."""
    if NEUTRAL[called.name] == "0.0":
        return _of_sum(load, kernel)
    if is_never_negative(called.operands[0], kernel):
        return None
    return "high" if _is_decisive(called.call, load, kernel) else None


def _of_sum(load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Medium where a launch of the file may leave lanes out: zeros, which would do, are not promised."""
    sizes = {bound.size.id for bound in bounds(load.mask, kernel) if isinstance(bound.size, ast.Name)}
    given = [(launch, launch.given.get(name)) for launch in kernel.launches for name in sizes]
    is_open = any(value is not None and not is_guarded(value, launch, kernel) for launch, value in given)
    return "medium" if is_open and not is_trial(kernel.file) else None


def _undefined(value: ast.expr, axis: ast.expr | None, kernel: SourceKernel) -> Iterator[KernelAccess]:
    held = lanes(value, kernel)
    if held and held.hold == UNDEFINED and is_masked_along(held.load, axis, kernel):
        yield held.load


_NEVER_NEGATIVE = re.compile(
    r"len|count|num|size|idx|index|indices|pos|offs|cu_|mask|flag|seg|abs|scale|prob|hist|token|expert|id(?:s|x)?(?:_|$)",
    re.IGNORECASE,
)
"""Names of pointers to what is no less than zero: lengths, places, counts."""


def _is_decisive(extreme: ast.expr, load: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether lanes that a load left out may well decide a maximum or minimum, and so a result.

    Not where it loads lengths, places and the like, nor where the maximum only keeps exponentials small and
    those of the masked lanes are not summed up.
    """
    if load.pointer is None or _NEVER_NEGATIVE.search(load.pointer):
        return False
    exponentials = [
        node
        for node in kernel.nodes
        if isinstance(node, ast.Call) and _is_exponential(node) and extreme in kernel.origins(*node.args)
    ]
    if any(access.value is not None and kernel.bare(access.value) is extreme for access in kernel.accesses):
        return True
    counted = [
        exponential
        for exponential in exponentials
        if not is_masked_later(exponential, kernel) and _is_summed(exponential, kernel)
    ]
    return not exponentials or bool(counted)


def _is_exponential(call: ast.Call) -> bool:
    """Whether it is tl.exp or the like, a function of the project's own among them."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "exp" in name and not name.startswith(("expand", "expm1"))
    return False


def _is_summed(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether tl.sum adds a value up; a function that kernels call leaves that to them."""
    sums = [call for call in kernel.operations if call.name == "sum"]
    if not sums and not kernel.is_launched:
        return True
    return any(value in kernel.origins(*call.operands) for call in sums)


def _padding_along(load: KernelAccess, reduction: Operation, kernel: SourceKernel) -> tuple[str, str] | None:
    """What the mask of a load certainly leaves out of what a reduction takes in."""
    for bound in bounds(load.mask, kernel):
        padding = _padding(bound, kernel)
        along = replace(load, mask=bound.comparison)
        if padding and is_masked_along(along, reduction.option(1, "axis"), kernel):
            return padding
    return None


def _padded_means(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a masked load, or of its products, that is divided by the width of the block."""
    for node in kernel.expressions:
        total, divisor = _mean(node, kernel) or (node, None)
        reduction = kernel.operation(kernel.bare(total))
        if divisor is None or reduction is None or reduction.name != "sum" or not reduction.operands:
            continue
        loads = [load_of(factor, kernel) for factor in _factors(reduction.operands[0], kernel)]
        paddings = (_padding_along(load, reduction, kernel) for load in loads if load)
        width, end = next(filter(None, paddings), ("", ""))
        if width and width == ast.unparse(kernel.bare(divisor)):
            yield Fault(
                node,
                f"The sum has at most {end} terms and is divided by {width}, the width of the block: the "
                f"mean is too small wherever {end} is less.",
                f"Divide by {end}, the number of elements that the mask lets through.",
                severity="high",
                certain=True,
            )


def _padding(bound: MaskBound, kernel: SourceKernel) -> tuple[str, str] | None:
    """The width and the end of `lanes < end`, where the lanes come from tl.arange(0, width) and go beyond."""
    lengths = {length for part in addends(bound.offsets, kernel) if (length := range_length(part, kernel))}
    width, end = next(iter(lengths), ""), ast.unparse(kernel.bare(bound.size))
    if bound.inclusive or len(lengths) != 1 or width not in kernel.constexprs or width == end:
        return None
    given = [launch.given for launch in kernel.launches]
    pairs = [(passed.get(width), passed.get(end)) for passed in given]
    alike = any(one and other and ast.dump(one) == ast.dump(other) for one, other in pairs)
    return None if alike else (width, ast.unparse(bound.size))


def _mean(node: ast.expr, kernel: SourceKernel) -> tuple[ast.expr, ast.expr] | None:
    """The sum and the divisor of sum / n and sum * (1 / n)."""
    if quotient := kernel.quotient(node):
        return quotient
    for total, factor in factors(node):
        inverse = kernel.quotient(kernel.bare(factor))
        if inverse and kernel.number(inverse[0]) == 1:
            return total, inverse[1]
    return None


def _factors(value: ast.expr, kernel: SourceKernel) -> list[ast.expr]:
    """x and y of x * y; of a masked load they are zero where it is."""
    value = kernel.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(left, kernel), *_factors(right, kernel)]
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(left, kernel)
    return [value]
