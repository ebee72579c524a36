"""Softmaxes: no maximum subtracted, fills that scores fall below, rows without a score, sums not rescaled."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.masked_lanes import is_masked_later
from pytorch_to_triton.audit.analysis.ranges import is_unbounded
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.examples import ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_LOAD = 'x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))'
_RUN = run("kernel[(1,)](x, out, x.numel(), B=128)")


@kernel_rule(
    "medium",
    "numerical stability",
    bad=(jit(ROW, _LOAD, "y = tl.exp(x) / tl.sum(tl.exp(x), axis=0)") + _RUN,),
    good=(jit(ROW, _LOAD, "e = tl.exp(-(x * x) / 2)", "y = e / tl.sum(e)") + _RUN,),
    suspected=Unconfirmed("medium", ("unstable_results",)),
)
def exponent_without_maximum(kernel: SourceKernel) -> Iterator[Fault]:
    """Exponentials are divided by their sum, or its logarithm is taken, with no maximum subtracted.

    In float32 exp(x) is infinite from x = 88.8 on. One such value in a row makes inf / inf = NaN of a
    softmax and infinity of a logsumexp, where PyTorch is right: it subtracts the row's maximum first.

    Fix: subtract the maximum before the exponential, exp(x - max(x)); it cancels in the quotient. Add it
    again after the logarithm.
    """
    for node in kernel.expressions:
        if what := _what(kernel, node):
            yield Fault(
                node,
                f"{kernel.name} takes {what} of loaded data without subtracting the maximum: exp "
                "overflows from 88.8 on, and the result is NaN or infinite.",
                "Subtract the maximum before the exponential: tl.exp(x - tl.max(x, axis)).",
            )


def _what(kernel: SourceKernel, node: ast.expr) -> str | None:
    """`the softmax` or `the logsumexp` where the value is one that overflows."""
    quotient = kernel.quotient(node)
    if quotient and _is_weighted(kernel, quotient[0]) and _sums_exponentials(kernel, quotient[1]):
        return "the softmax"
    logarithm = kernel.operation(node)
    if logarithm and logarithm.name in ("log", "log2") and len(logarithm.operands) == 1:
        return "the logsumexp" if _sums_exponentials(kernel, logarithm.operands[0]) else None
    return None


def _is_weighted(kernel: SourceKernel, dividend: ast.expr) -> bool:
    """Whether the dividend is an exponential, or adds up products of tl.dot with exponentials."""
    weights = (kernel.operand(term, "dot") or term for term in kernel.terms(dividend))
    return any(_overflows(kernel, weight) for weight in weights)


def _overflows(kernel: SourceKernel, value: ast.AST) -> bool:
    exponent = kernel.operand(value, "exp", "exp2")
    return exponent is not None and is_unbounded(kernel, exponent)


def _sums_exponentials(kernel: SourceKernel, value: ast.expr) -> bool:
    """Whether the value adds up such exponentials with tl.sum, and nothing but them and constants."""
    terms = [term for term in kernel.terms(value) if not isinstance(term, ast.Constant)]
    terms = [term for term in terms if not kernel.is_a(term, "zeros")]
    return bool(terms) and "sum" in kernel.made_by(value) and all(_overflows(kernel, term) for term in terms)


_WITHIN_SCORES = -10.0
"""Scores of many rows are below it."""
_LOW_ENOUGH = -5e4
"""float16 reaches down to -65504, and masks in it are filled with that."""


@kernel_rule(
    "low",
    "numerical stability",
    bad=(jit(ROW, _LOAD.replace('-float("inf")', "-1e4"), "e = tl.exp(x - tl.max(x, axis=0))"),),
    good=(jit(ROW, _LOAD, "e = tl.exp(x - tl.max(x))"),),
)
def mask_value_not_low_enough(kernel: SourceKernel) -> Iterator[Fault]:
    """Masked scores are filled with a value that real scores may be smaller than.

    The fill takes part in the maximum and in the sum of a softmax. Where all scores of a row are below it,
    the masked lanes get all of the weight, and the others none.

    Fix: fill with -float("inf"), or with -1e30 where a whole row may be masked.
    """
    for call, scores, maximum in _shifted_exponentials(kernel):
        fill = _fill(kernel.operation(kernel.bare(scores)))
        value = None if fill is None else kernel.number(fill)
        if (
            fill is None
            or value is None
            or not _LOW_ENOUGH < value <= 0
            or is_masked_later(call.call, kernel)
        ):
            continue
        # It is tl.where that fills the lanes, and the maximum is taken over them.
        filled = kernel.bare(scores)
        decides = kernel.is_a(filled, "where") and filled in kernel.origins(maximum)
        yield Fault(
            fill,
            f"Masked lanes are filled with {ast.unparse(fill)}: where the scores of a row are "
            "below it, those lanes get the weight.",
            'Fill with -float("inf").',
            fix='-float("inf")',
            severity="high" if value > _WITHIN_SCORES and decides else None,
        )


def _shifted_exponentials(kernel: SourceKernel) -> Iterator[tuple[Operation, ast.expr, ast.expr]]:
    """Each exponential of values less a maximum, with the two."""
    for call in kernel.calls("exp", "exp2"):
        match kernel.bare(call.operands[0]) if call.operands else None:
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if "max" in kernel.made_by(right):
                yield call, left, right


def _fill(call: Operation | None) -> ast.expr | None:
    """What a masked load or tl.where gives the masked lanes."""
    if call and call.name == "load":
        return call.option(2, "other")
    return call.operands[2] if call and call.name == "where" and len(call.operands) == 3 else None


_KEPT = 'x = tl.where(tl.load(out_ptr + i) != 0, tl.load(x_ptr + i), -float("inf"))'


@kernel_rule(
    "info",
    "numerical stability",
    bad=(jit(ROW, _KEPT, "e = tl.exp(x - tl.max(x, axis=0))"),),
    good=(jit(ROW, _KEPT, "m = tl.max(x)", 'e = tl.exp(x - tl.where(m == -float("inf"), 0.0, m))'),),
)
def fully_masked_row(kernel: SourceKernel) -> Iterator[Fault]:
    """A row of scores may be masked as a whole, and its softmax is then NaN.

    Where the mask is loaded, all of a row may be -inf: its maximum is -inf as well, and -inf - -inf is NaN,
    which every result of the row becomes.

    Fix: use zero in place of a maximum of -inf, tl.where(m == -float("inf"), 0.0, m), or mask with a finite
    value such as -1e30.
    """
    for call, scores, maximum in _shifted_exponentials(kernel):
        mask = _loaded_mask(kernel, scores) if call.call not in kernel.selected else None
        if mask and not _is_looked_after(kernel, maximum):
            yield Fault(
                call.call,
                f"Where {ast.unparse(mask)} holds nowhere in a row, {ast.unparse(call.operands[0])} is "
                "-inf - -inf = NaN.",
                'Use tl.where(m == -float("inf"), 0.0, m) in place of the maximum m.',
            )


def _loaded_mask(kernel: SourceKernel, scores: ast.expr) -> ast.expr | None:
    """The condition of tl.where(condition, x, -inf), where it depends on loaded data."""
    call = kernel.operation(kernel.bare(scores))
    if call is None or call.name != "where" or len(call.operands) != 3:
        return None
    mask, _, otherwise = call.operands
    is_infinite = kernel.number(otherwise) == -float("inf")
    return mask if is_infinite and _is_data(kernel, mask) else None


def _is_data(kernel: SourceKernel, mask: ast.expr) -> bool:
    """Whether the condition tests a loaded block, and not a length."""
    loads = [
        node for node in kernel.origins(mask) if isinstance(node, ast.Call) and kernel.is_a(node, "load")
    ]
    return any(
        "arange" in kernel.made_by(address) for load in loads if (address := argument(load, 0, "pointer"))
    )


def _is_looked_after(kernel: SourceKernel, maximum: ast.expr) -> bool:
    """Whether the maximum is selected with tl.where, or starts from a finite number."""
    made = kernel.bare(maximum)
    if not isinstance(made, ast.Name):
        return kernel.is_a(made, "where")
    return any(kernel.is_a(definition, "where") for definition in kernel.definitions(made))


def _online(step: str) -> str:
    return jit(
        'm, total, acc = -float("inf"), 0.0, 0.0',
        "for start in range(0, n, B):",
        "    s = tl.load(x_ptr + start + tl.arange(0, B))",
        "    m_new = tl.maximum(m, tl.max(s, 0))",
        "    p = tl.exp(s - m_new)",
        "    alpha = tl.exp(m - m_new)",
        "    total = total * alpha + tl.sum(p, 0)",
        f"    acc += {step}",
        "    m = m_new",
    )


@kernel_rule(
    "critical",
    "correctness",
    bad=(_online("tl.sum(p * tl.load(out_ptr + start), 0)"),),
    # What is accumulated is not relative to the maximum.
    good=(_online("tl.sum(tl.load(out_ptr + start), 0)"),),
)
def accumulator_not_rescaled(kernel: SourceKernel) -> Iterator[Fault]:
    """An online softmax rescales its sum when the maximum changes, and not what it accumulates beside it.

    What was added before is still relative to the old maximum: the result is wrong wherever a later block
    holds a greater value.

    Fix: multiply every accumulator of the loop by exp(old maximum - new maximum).
    """
    for loop in (node for node in kernel.nodes if isinstance(node, ast.For | ast.While)):
        steps = dict(_steps(loop))
        scales = {scale for scale in _scales(loop, kernel) if _is_used(scale, steps, kernel)}
        for scale in scales:
            around = kernel.parents.get(scale)
            named = ast.unparse(around.targets[0] if isinstance(around, ast.Assign) else scale)
            for name, updates in steps.items():
                if all(_only_adds(name, value) for value in updates) and _takes_in(updates, scale, kernel):
                    yield Fault(
                        updates[-1],
                        f"{name} adds up exponentials relative to the running maximum, and no step of the "
                        "loop rescales what it holds when that maximum changes.",
                        f"Multiply {name} by {named} before this is added.",
                    )
            return


def _steps(loop: ast.For | ast.While) -> Iterator[tuple[str, list[ast.expr]]]:
    """What a loop assigns to each name; `x + y` of `x += y`."""
    steps: dict[str, list[ast.expr]] = {}
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                steps.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                added = ast.BinOp(ast.Name(target.id, ast.Load()), op, value)
                steps.setdefault(name, []).append(ast.copy_location(added, value))
    yield from steps.items()


def _scales(loop: ast.For | ast.While, kernel: SourceKernel) -> Iterator[ast.Call]:
    """Each exp(m - m_new) in a loop, where m_new is a maximum that m has a part in, and m becomes m_new."""
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call):
            continue
        match _exponent(node, kernel):
            case ast.BinOp(left=ast.Name(id=old) as before, right=ast.Name() as new):
                greater = kernel.operation(kernel.bare(new))
                operands = greater.operands if greater and greater.name == "maximum" else ()
                is_running = any(isinstance(operand, ast.Name) and operand.id == old for operand in operands)
                if is_running and len(kernel.definitions(before)) > 1:
                    yield node


def _exponent(call: ast.Call, kernel: SourceKernel) -> ast.BinOp | None:
    """x - m of exp(x - m), new axes and a factor such as log2(e) aside."""
    argument = kernel.operand(call, "exp", "exp2")
    if argument is None:
        return None
    match kernel.bare(argument):
        case ast.BinOp(op=ast.Sub()) as difference:
            return difference
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sides = (kernel.bare(side) for side in (left, right))
            differences = (one for one in sides if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub))
            return next(differences, None)
    return None


def _is_used(scale: ast.Call, steps: dict[str, list[ast.expr]], kernel: SourceKernel) -> bool:
    """Whether something that the loop carries is multiplied by it."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(kernel.bare(side) is scale for side in (node.left, node.right))
        for updates in steps.values()
        for value in updates
        for node in ast.walk(value)
    )


def _only_adds(name: str, value: ast.expr) -> bool:
    """Whether a step is `name + term` or `tl.dot(a, b, name)`."""
    match value:
        case ast.BinOp(left=ast.Name(id=own), op=ast.Add(), right=term) if own == name:
            return not _mentions(name, term)
        case ast.Call(func=ast.Attribute(attr="dot"), args=[a, b, ast.Name(id=own), *_]) if own == name:
            return not _mentions(name, a) and not _mentions(name, b)
        case ast.Call(func=ast.Attribute(attr="dot"), args=[a, b], keywords=keywords):
            held = [keyword.value for keyword in keywords if keyword.arg == "acc"]
            return [definition.id for definition in held if isinstance(definition, ast.Name)] == [name]
    return False


def _mentions(name: str, value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _takes_in(updates: list[ast.expr], scale: ast.Call, kernel: SourceKernel) -> bool:
    """Whether what is added is made from exponentials of differences from the same new maximum."""
    maximum = _exponent(scale, kernel)
    made_from = (
        node for node in kernel.origins(*updates) if isinstance(node, ast.Call) and node is not scale
    )
    exponents = (exponent for node in made_from if (exponent := _exponent(node, kernel)))
    return maximum is not None and any(
        kernel.same(kernel.bare(difference.right), kernel.bare(maximum.right)) for difference in exponents
    )
