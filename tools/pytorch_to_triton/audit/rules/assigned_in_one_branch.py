"""A variable is assigned only in an `if` or a loop, and used after it.

Where the condition or the number of iterations is known only at run time, Triton forgets what a branch or a
loop defines: the use raises NameError when the kernel is compiled.

Fix: give the variable a value of the same type before the branch or the loop, or assign it in both
branches.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from pytorch_to_triton.audit.analysis.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        y = 1.0
""")
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
    _kernel("elif pid == 1:", "    y = 2.0", "tl.store(x_ptr + pid, y)"),
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
    _kernel("elif pid == 1:", "    y = 2.0", "else:", "    y = 3.0", "tl.store(x_ptr + pid, y)"),
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


Home = ast.If | ast.For | ast.While


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """The first use of each name that lies outside all branches and loops that assign it."""
    reads = _reads(kernel)
    for name in reads.keys() & kernel.scope.bindings.keys():
        nodes = [binding.node for binding in kernel.scope.bindings[name]]
        if any(isinstance(node, ast.arg) for node in nodes) or _is_known_outside(name, kernel):
            continue
        homes = {_home(node, kernel) for node in nodes}
        if None in homes or any(_assigns(home, name, kernel) for home in homes if home):
            continue
        first = next((one for one in reads[name] if not homes & {*kernel.flow.around(one)}), None)
        if first and runs_for_sure(first, kernel):
            line = min(node.lineno for node in nodes if isinstance(node, ast.Name))
            yield Fault(
                first,
                f"{name} is assigned only in a branch or a loop, at line {line}, and used outside it: "
                "Triton raises NameError.",
                f"Give {name} a value of the same type before that branch or loop.",
            )


def _reads(kernel: SourceKernel) -> Mapping[str, list[ast.Name]]:
    """Where each name is read, in source order."""
    found: defaultdict[str, list[ast.Name]] = defaultdict(list)
    for node in kernel.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id].append(node)
    return found


def _is_known_outside(name: str, kernel: SourceKernel) -> bool:
    return kernel.scope.parent is not None and kernel.scope.parent.holder(name) is not None


def _home(node: ast.AST, kernel: SourceKernel) -> Home | None:
    """The outermost branch or loop around an assignment; None where that does not drop what is assigned."""
    outer = [one for one in kernel.flow.around(node) if isinstance(one, Home)]
    return outer[-1] if outer and _drops(outer[-1], kernel) else None


def _drops(node: Home, kernel: SourceKernel) -> bool:
    """Whether a run decides if its body is run at all."""
    match node:
        case ast.If(test=test):
            return kind(test, kernel) > Kind.UNKNOWN
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return True
        case ast.For(iter=ast.Call(func=called)):
            return kernel.scope.path(called) == "triton.language.range"
    return isinstance(node, ast.While)


def _assigns(statement: ast.stmt, name: str, kernel: SourceKernel) -> bool:
    """Whether a name may be known after a statement that assigns it, in both branches where a run chooses."""
    match statement:
        case ast.If(body=body, orelse=orelse) if _drops(statement, kernel):
            return all(any(_assigns(one, name, kernel) for one in branch) for branch in (body, orelse))
        case ast.For(target=target) if _drops(statement, kernel):
            return _stores(target, name)
        case ast.While():
            return False
        case ast.If(body=body, orelse=orelse) | ast.For(body=body, orelse=orelse):
            return any(_assigns(one, name, kernel) for one in (*body, *orelse))
    return _stores(statement, name)


def _stores(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
        for one in ast.walk(node)
    )
