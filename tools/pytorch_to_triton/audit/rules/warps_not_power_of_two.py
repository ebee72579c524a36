"""A kernel is asked to run with a number of warps that is not a power of two.

Triton spreads blocks evenly over warps, and refuses any other number.

Instead, write 1, 2, 4, 8, 16 or 32.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import all_configurations
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), 0.0)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, B=64, num_warps=6)
""",
    'CONFIGS = [triton.Config({"B": 64}, num_warps=3), triton.Config({"B": 64}, 12)]\n',
    'CONFIGS = [triton.Config({"B": 64}, num_warps=w) for w in [4, 8, 12]]\n',
)
GOOD = (
    _KERNEL
    + """
def run(x, warps):
    kernel[(1,)](x, B=64, num_warps=8)
    kernel[(1,)](x, B=64, num_warps=warps)
    launch(x, num_warps=6)
""",
    'CONFIGS = [triton.Config({"B": b}, num_warps=w) for b in (3, 6) for w in (1, 2, 4)]\n',
    'CONFIGS = [triton.Config({"B": 48}, num_stages=3)]\n',
)
_MOST = 32


def check(file: SourceFile) -> Iterator[Fault]:
    """Every literal number of warps, in configurations and in launches."""
    asked = [(one.num_warps, file.tree) for one in all_configurations(file)]
    asked += [(launch.options.get("num_warps"), file.tree) for launch in file.launches]
    for value, tree in asked:
        for number in _numbers(value, tree) if value else ():
            warps = literal_integer(number)
            if warps is not None and (warps < 1 or warps & (warps - 1)):
                yield Fault(
                    number,
                    f"num_warps must be a power of two; {warps} is none, and the launch is refused.",
                    f"Write {_nearest(warps)}.",
                    fix=str(_nearest(warps)),
                )


def _numbers(value: ast.expr, tree: ast.Module) -> list[ast.expr]:
    """The number itself, or those that a comprehension runs through for its name."""
    if not isinstance(value, ast.Name):
        return [value]
    for node in ast.walk(tree):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and any(one is value for one in ast.walk(node)):
            for generator in node.generators:
                match generator:
                    case ast.comprehension(target=ast.Name(id=name), iter=ast.List() | ast.Tuple() as given):
                        if name == value.id:
                            return given.elts
    return []


def _nearest(warps: int) -> int:
    """The power of two below, from 1 to what a GPU can run."""
    return min(1 << max(warps.bit_length() - 1, 0), _MOST) if warps > 0 else 1
