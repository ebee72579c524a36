"""The first division of each loop that changes with it and reaches an address."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.movement import bound_in, names_in
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_HEAD = """
@triton.jit
def kernel(x_ptr, out_ptr, n, width, B: tl.constexpr, W: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
"""
BAD = (
    _HEAD
    + """
    for start in range(0, n, B):
        at = start + i
        total += tl.load(x_ptr + (at // width) * n + at % width)
    tl.store(out_ptr + i, total)
""",
)
GOOD = (
    # Of one scalar.
    _HEAD
    + """
    for start in range(0, n, B):
        total += tl.load(x_ptr + (start // width) * n + i)
    tl.store(out_ptr + i, total)
""",
)


@kernel_rule("info", "performance", BAD, GOOD)
def division_in_loop(kernel: SourceKernel) -> Iterator[Fault]:
    """A loop divides block offsets by a size that is known only at run time.

    GPUs have no integer divider: each // or % of a block by a runtime value takes tens of instructions a
    lane, in every iteration.

    Fix: divide once before the loop and step the result, make the divisor a tl.constexpr, or give each part
    of the index its own loop or grid axis.
    """
    reported: set[ast.AST] = set()
    for node in kernel.nodes:
        if not isinstance(node, ast.BinOp) or not _is_costly(kernel, node):
            continue
        loops = kernel.flow.loops(node)
        if not loops or loops[0] in reported or not names_in(node.left) & bound_in(loops[0]):
            continue
        if node in kernel.flow.origins(*(access.address for access in kernel.accesses)):
            reported.add(loops[0])
            yield Fault(
                node,
                f"Every iteration divides a block of offsets by {ast.unparse(node.right)}, a runtime value: "
                "tens of instructions a lane.",
                f"Make {ast.unparse(node.right)} a tl.constexpr, or divide before the loop.",
            )


def _is_costly(kernel: SourceKernel, division: ast.BinOp) -> bool:
    """A block divided by a runtime parameter."""
    by = division.right
    if not isinstance(division.op, ast.FloorDiv | ast.Mod) or not isinstance(by, ast.Name):
        return False
    block = (path == "triton.language.arange" for path, _ in kernel.flow.calls(division.left))
    return by.id in kernel.runtime_parameters and any(block)
