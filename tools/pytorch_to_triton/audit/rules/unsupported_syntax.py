"""A kernel uses Python that Triton does not compile.

The compiler stops at it, at the first launch and not before; the interpreter runs some of it, so that a
kernel can pass every test on a CPU and still never run on a GPU. A condition in a comprehension is worse: it
is silently ignored.

Fix: keep to straight code, `for` over range, tl.range or tl.static_range, `while`, `if` on scalars and
calls of other @triton.jit functions; let masks and tl.where decide for single elements.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
""")
_variant = example("""
@triton.jit
def kernel(x_ptr, n):
""")
BAD = (
    _variant("for i in range(n):", "    if i == 3:", "        break"),
    _variant("for i in range(n):", "    if i == 3:", "        continue"),
    _variant("while n > 0:", "    return"),
    """
@triton.jit
def first(x_ptr, n):
    for i in range(n):
        if i == 3:
            return i
""",
    _kernel("try:", "    tl.store(x_ptr, 1.0)", "except Exception:", "    pass"),
    _kernel("total = tl.reduce(tl.load(x_ptr), 0, lambda a, b: a + b)"),
    _kernel("xs = [tl.load(x_ptr + i) for i in range(4)]"),
    _kernel("odd = [i for i in (1, 2, 3) if i % 2]"),
    _kernel("for i in (1, 2):", "    tl.store(x_ptr + i, 0.0)"),
    """
@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK in (64, 128))
""",
    _kernel("block = tl.zeros((16,), tl.float32)", "block[0] = 1.0"),
    """
@triton.jit
def kernel(x_ptr, a, b):
    tl.store(x_ptr, a @ b)
""",
    _kernel("low = high = 0"),
    _kernel("def square(x):", "    return x * x", "tl.store(x_ptr, square(2.0))"),
    _kernel("sizes = {'m': 1}"),
)
GOOD = (
    _variant("if n == 0:", "    return", "for i in tl.range(0, n):", "    tl.store(x_ptr + i, 0.0)"),
    """
@triton.jit
def first(BLOCK: tl.constexpr):
    for i in tl.static_range(4):
        if BLOCK == 2**i:
            return i
    return 4
""",
    """
@triton.jit
def kernel(x_ptr, sizes):
    doubled = [2 * size for size in sizes]
    tl.store(x_ptr, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr, i):
    while i > 0:
        i -= 1
    tl.store(x_ptr, i if i else 1)
""",
    """
def run(xs):
    for x in xs:
        if x is None:
            continue
    return [f for f in xs if f]
""",
)

_MASK = "Let the loop run on and mask what it does: tl.where for values, mask= for loads and stores."
_SEPARATE = "Use separate variables, or a tuple."
_OUTSIDE = "Do it outside of the kernel, in the function that launches it."
_TABLE: dict[type[ast.AST], tuple[str, str]] = {
    ast.Break: ("`break`", f"{_MASK} Or write a `while` loop whose condition ends it."),
    ast.Continue: ("`continue`", _MASK),
    ast.Try: ("`try`", _OUTSIDE),
    ast.TryStar: ("`try`", _OUTSIDE),
    ast.Lambda: ("`lambda`", "Write a function with @triton.jit at the top of the file and name it."),
    ast.FunctionDef: ("a function within a kernel", "Write it with @triton.jit at the top of the file."),
    ast.ClassDef: ("a class within a kernel", _OUTSIDE),
    ast.SetComp: ("a set comprehension", _SEPARATE),
    ast.DictComp: ("a dict comprehension", _SEPARATE),
    ast.GeneratorExp: ("a generator expression", "Use a tl.static_range loop."),
    ast.Dict: ("a dict", _SEPARATE),
    ast.Set: ("a set", _SEPARATE),
    ast.Delete: ("`del`", "Leave it out."),
    ast.Global: ("`global`", "Pass the value as an argument, and results through pointers."),
    ast.Import: ("`import`", "Import at the top of the file."),
    ast.ImportFrom: ("`import`", "Import at the top of the file."),
    ast.Yield: ("`yield`", "Store results through pointers."),
    ast.Match: ("`match`", "Use `if` and `elif`."),
    ast.MatMult: ("the operator `@`", "Use tl.dot."),
    ast.In: ("`in`", "Compare with each value: `a == 1 or a == 2`."),
    ast.NotIn: ("`not in`", "Compare with each value: `a != 1 and a != 2`."),
}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Every statement or expression that no Triton since 3.6 compiles."""
    looped = _returns_in_loops(kernel)
    for node in kernel.nodes if not kernel.file.is_for_a_fork else ():
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        refused = _TABLE.get(_kind(node)) or _refused_form(node)
        if node in looped:
            refused = "`return` in a loop", "Keep the result in a variable, and return it after the loop."
        if refused:
            what, suggestion = refused
            yield Fault(node, f"Triton does not compile {what} in a @triton.jit function.", suggestion)
        if isinstance(node, ast.ListComp) and node.generators[0].ifs:
            message = "Triton ignores the `if` of a comprehension: all elements are kept."
            yield Fault(node, message, "List the elements that are meant.")


def _kind(node: ast.AST) -> type[ast.AST]:
    """What decides whether it compiles: the operator of a product or of a simple comparison, else itself."""
    match node:
        case ast.BinOp(op=op) | ast.Compare(ops=[op]):
            return type(op)
    return type(node)


def _refused_form(node: ast.AST) -> tuple[str, str] | None:
    """What is refused in nodes that are else fine, and what to write instead."""
    match node:
        case ast.For(iter=ast.Tuple() | ast.List()):
            return "a loop over a tuple", "Loop over tl.static_range(len(t)) and index the tuple."
        case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
            return "`else` after a loop", "Put it after the loop."
        case ast.Assign(targets=[_, _, *_]):
            return "`a = b = ...`", "Assign to one name at a time."
        case ast.Assign(targets=[ast.Subscript()]) | ast.AugAssign(target=ast.Subscript()):
            return "assignment to an element", "Choose with tl.where, or store through a pointer."
        case ast.Assign(targets=[ast.Attribute()]) | ast.AugAssign(target=ast.Attribute()):
            return "assignment to an attribute", "Use a variable."
        case ast.ListComp(generators=[_, _, *_]):
            return "a comprehension with two loops", "Nest tl.static_range loops."
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Call(func=ast.Name(id="range")))]):
            return "a comprehension over range", "Use a tl.static_range loop."
    return None


def _returns_in_loops(kernel: SourceKernel) -> set[ast.AST]:
    """The returns in loops that are not unrolled."""
    return {
        node
        for loop in kernel.nodes
        if isinstance(loop, ast.While) or (isinstance(loop, ast.For) and not _is_unrolled(loop, kernel))
        for node in own_nodes(loop.body)
        if isinstance(node, ast.Return)
    }


def _is_unrolled(loop: ast.For, kernel: SourceKernel) -> bool:
    path = kernel.scope.path(loop.iter.func) if isinstance(loop.iter, ast.Call) else None
    return path == "triton.language.static_range"
