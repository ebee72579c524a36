"""Accumulators that take in exponentials of an online softmax and are never multiplied in its loop."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(s_ptr, v_ptr, out_ptr, N, D: tl.constexpr, B: tl.constexpr):
    m = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    d = tl.arange(0, D)
    for start in range(0, N, B):
        i = start + tl.arange(0, B)
        s = tl.load(s_ptr + i, mask=i < N, other=-float("inf"))
        v = tl.load(v_ptr + i[:, None] * D + d[None, :], mask=i[:, None] < N, other=0.0)
        m_new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - m_new)
        alpha = tl.exp(m - m_new)
        total = total * alpha + tl.sum(p, 0)
        {}
        m = m_new
    tl.store(out_ptr + d, acc / total)
"""
BAD = (_KERNEL.format("acc += tl.sum(p[:, None] * v, 0)"),)
GOOD = (
    # What is accumulated is not relative to the maximum.
    _KERNEL.format("acc += tl.sum(v, 0)"),
)


@kernel_rule("critical", "correctness", BAD, GOOD)
def accumulator_not_rescaled(kernel: SourceKernel) -> Iterator[Fault]:
    """An online softmax rescales its sum when the maximum changes, and not what it accumulates beside it.

    What was added before is still relative to the old maximum: the result is wrong wherever a later block
    holds a greater value.

    Fix: multiply every accumulator of the loop by exp(old maximum - new maximum).
    """
    known = values(kernel)
    for loop in (node for node in kernel.nodes if isinstance(node, ast.For | ast.While)):
        steps = dict(_steps(loop))
        scales = {scale for scale in _scales(loop, known) if _is_used(scale, steps, known)}
        for scale in scales:
            for name, updates in steps.items():
                if all(_only_adds(name, value) for value in updates) and _takes_in(updates, scale, known):
                    yield Fault(
                        updates[-1],
                        f"{name} adds up exponentials relative to the running maximum, and no step of the "
                        "loop rescales what it holds when that maximum changes.",
                        f"Multiply {name} by {_name_of(scale, kernel)} before this is added.",
                    )
            return


def _steps(loop: ast.For | ast.While) -> Iterator[tuple[str, list[ast.expr]]]:
    """What a loop assigns to each name; `x + y` of `x += y`."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                added = ast.BinOp(ast.Name(target.id, ast.Load()), op, value)
                found.setdefault(name, []).append(ast.copy_location(added, value))
    yield from found.items()


def _scales(loop: ast.For | ast.While, known: KernelValues) -> Iterator[ast.Call]:
    """Each exp(m - m_new) in a loop, where m_new is a maximum that m has a part in, and m becomes m_new."""
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call):
            continue
        match _exponent(node, known):
            case ast.BinOp(left=ast.Name(id=old) as before, right=ast.Name() as new):
                greater = known.operation(known.bare(new))
                operands = greater.operands if greater and greater.name == "maximum" else ()
                is_running = any(isinstance(one, ast.Name) and one.id == old for one in operands)
                if is_running and len(known.definitions(before)) > 1:
                    yield node


def _exponent(call: ast.Call, known: KernelValues) -> ast.BinOp | None:
    """x - m of exp(x - m), new axes and a factor such as log2(e) aside."""
    argument = known.operand(call, "exp", "exp2")
    if argument is None:
        return None
    match known.bare(argument):
        case ast.BinOp(op=ast.Sub()) as difference:
            return difference
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sides = (known.bare(side) for side in (left, right))
            differences = (one for one in sides if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub))
            return next(differences, None)
    return None


def _is_used(scale: ast.Call, steps: dict[str, list[ast.expr]], known: KernelValues) -> bool:
    """Whether something that the loop carries is multiplied by it."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(known.bare(side) is scale for side in (node.left, node.right))
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
            held = [one.value for one in keywords if one.arg == "acc"]
            return [one.id for one in held if isinstance(one, ast.Name)] == [name]
    return False


def _mentions(name: str, value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _takes_in(updates: list[ast.expr], scale: ast.Call, known: KernelValues) -> bool:
    """Whether what is added is made from exponentials of differences from the same new maximum."""
    maximum = _exponent(scale, known)
    made_from = (node for node in known.origins(*updates) if isinstance(node, ast.Call) and node is not scale)
    found = (exponent for node in made_from if (exponent := _exponent(node, known)))
    return maximum is not None and any(
        known.same(known.bare(one.right), known.bare(maximum.right)) for one in found
    )


def _name_of(scale: ast.Call, kernel: SourceKernel) -> str:
    """The name that it is assigned to; else its text."""
    match kernel.flow.parents.get(scale):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ast.unparse(scale)
