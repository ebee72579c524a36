"""A variable is assigned only in an `if` or a loop, and used after it.

Where the condition or the number of turns is known only at run time, Triton forgets what a branch or a loop
defines: the use raises NameError when the kernel is compiled.

Instead, give the variable a value of the same type before the branch or the loop, or assign it in both branches.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr):
    if tl.program_id(0) == 0:
        scale = tl.load(x_ptr)
    tl.store(x_ptr + 1, scale)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    for k in range(n):
        x = tl.load(x_ptr + k)
    tl.store(x_ptr, x)
""",
    """
@triton.jit
def kernel(x_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        y = 1.0
    elif pid == 1:
        y = 2.0
    tl.store(x_ptr + pid, y)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, FIRST: tl.constexpr):
    if FIRST:
        y = 1.0
    if n is None:
        z = 1.0
    if FIRST:
        tl.store(x_ptr, y)
    tl.store(x_ptr, z)
""",
    """
@triton.jit
def kernel(x_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        y = 1.0
    elif pid == 1:
        y = 2.0
    else:
        y = 3.0
    tl.store(x_ptr + pid, y)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    x = 0.0
    for k in range(n):
        y = tl.load(x_ptr + k)
        x += y
    for k in tl.static_range(2):
        z = tl.load(x_ptr + k)
    for k in range(n):
        y = 2.0
        tl.store(x_ptr, y)
    tl.store(x_ptr, x + z)
""",
    # The name means something without the branch.
    """
scale = tl.constexpr(2.0)

@triton.jit
def kernel(x_ptr):
    if tl.program_id(0) == 0:
        tl.store(x_ptr, scale)
    tl.store(x_ptr, scale)
""",
)


def check(kernel: Kernel) -> Iterator[Fault]:
    """The first use of each name that no path through the code around it certainly defines."""
    for name, bindings in kernel.scope.bindings.items():
        if any(isinstance(binding.node, ast.arg) for binding in bindings) or _is_known_outside(name, kernel):
            continue
        homes = [_home(binding.node, kernel) for binding in bindings]
        if None in homes or any(_in_both(home, name) for home in homes):
            continue
        for node in kernel.nodes:
            is_read = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            if not is_read or not runs_for_sure(node, kernel) or {*kernel.flow.around(node)} & {*homes}:
                continue
            what = "a branch" if isinstance(homes[0], ast.If) else "a loop"
            yield Fault(
                node,
                f"{name} is assigned only in {what} that may not run, and used outside it: "
                "Triton raises NameError.",
                f"Assign {name} before line {getattr(homes[0], 'lineno', 0)}, with the type that it gets there.",
            )
            break


def _is_known_outside(name: str, kernel: Kernel) -> bool:
    return kernel.scope.parent is not None and kernel.scope.parent.holder(name) is not None


def _home(node: ast.AST, kernel: Kernel) -> ast.If | ast.For | ast.While | None:
    """The outermost branch or loop around an assignment that drops what it defines; None where none does."""
    drops = [outer for outer in kernel.flow.around(node) if isinstance(outer, ast.If | ast.For | ast.While)]
    for outer in reversed(drops):
        match outer:
            case ast.If(test=test) if kind(test, kernel) == Kind.UNKNOWN:
                return None
            case ast.For(target=target) if any(node is one for one in ast.walk(target)):
                return None
            case ast.For(iter=ast.Call(func=called)) if _is_range(called, kernel):
                return outer
            case ast.For():
                return None
            case _:
                return outer
    return None


def _is_range(called: ast.expr, kernel: Kernel) -> bool:
    if isinstance(called, ast.Name) and called.id == "range":
        return True
    return kernel.scope.path(called) == "triton.language.range"


def _in_both(home: ast.AST | None, name: str) -> bool:
    """Whether both branches of an `if` assign the name somewhere."""
    return isinstance(home, ast.If) and all(
        any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for statement in branch
            for node in ast.walk(statement)
        )
        for branch in (home.body, home.orelse)
    )
