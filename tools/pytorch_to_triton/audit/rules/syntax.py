"""Python that Triton does not compile or warns about, and names and arguments that it lacks."""

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise

from pytorch_to_triton.audit.examples import ROW, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import FLOATS
from pytorch_to_triton.audit.rule import Rule, RuleCheck, about, kernel_rule
from pytorch_to_triton.audit.source import SourceFile, SourceKernel
from pytorch_to_triton.audit.value_types import Kind
from pytorch_to_triton.triton_api.name_scope import own_nodes

_MASK = "Let the loop run on and mask what it does: tl.where for values, mask= for loads and stores."
_SEPARATE = "Use separate variables, or a tuple."
_OUTSIDE = "Do it outside of the kernel, in the function that launches it."
_UNROLL = "Use a tl.static_range loop."
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Break: ("`break`", f"{_MASK} Or write a `while` loop whose condition ends it."),
    ast.Continue: ("`continue`", _MASK),
    ast.Try: ("`try`", _OUTSIDE),
    ast.TryStar: ("`try`", _OUTSIDE),
    ast.Lambda: ("`lambda`", "Write a function with @triton.jit at the top of the file and name it."),
    ast.FunctionDef: ("a function within a kernel", "Write it with @triton.jit at the top of the file."),
    ast.ClassDef: ("a class within a kernel", _OUTSIDE),
    ast.SetComp: ("a set comprehension", _SEPARATE),
    ast.DictComp: ("a dict comprehension", _SEPARATE),
    ast.GeneratorExp: ("a generator expression", _UNROLL),
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
_REPLACED = {
    "abs": "tl.abs",
    "sum": "tl.sum",
    "pow": "libdevice.pow from triton.language.extra",
    "round": "libdevice.rint from triton.language.extra, or tl.floor(x + 0.5)",
    "bool": "a comparison, `x != 0`",
    "any": "tl.max of the condition as integers",
    "all": "tl.min of the condition as integers",
    "sorted": "tl.sort",
    "enumerate": "tl.static_range and an index",
    "zip": "tl.static_range and an index",
    "map": "a loop over tl.static_range",
    "filter": "tl.where",
}
_CASTS = {"float": "tl.float32", "int": "tl.int32"}


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        jit("for j in range(n):", "    if j == 3:", "        break"),
        jit("while n > 0:", "    return"),
        jit("for j in (1, 2):", "    tl.store(x_ptr + j, 0.0)"),
        jit("xs = [tl.load(x_ptr + j) for j in range(4)]", "odd = [j for j in (1, 2, 3) if j % 2]"),
        jit("block = tl.zeros((16,), tl.float32)", "block[0] = 1.0", "low = high = 0"),
        jit(ROW, "x = tl.load(x_ptr + i)", "tl.store(x_ptr, tl.sum(x**2))"),
        jit(ROW, "x = tl.exp(tl.load(x_ptr + i)) // 2"),
        jit(ROW, "tl.store(x_ptr + i, abs(tl.load(x_ptr + i)))"),
        jit("tl.store(x_ptr, int(tl.load(x_ptr) * 2))"),
    ),
    good=(
        jit("if n == 0:", "    return", "for j in tl.range(0, n):", "    tl.store(x_ptr + j, 0.0)"),
        jit("for j in tl.static_range(4):", "    if B == 2**j:", "        return"),
    ),
)
def unsupported_syntax(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel uses Python that Triton does not compile.

    The compiler stops at it, at the first launch and not before; the interpreter runs some of it, so that a
    kernel can pass every test on a CPU and still never run on a GPU. A condition in a comprehension is worse:
    it is silently ignored.

    Fix: keep to straight code, `for` over range, tl.range or tl.static_range, `while`, `if` on scalars and
    calls of other @triton.jit functions; let masks and tl.where decide for single elements.
    """
    if kernel.file.is_for_a_fork:
        return
    looped = _returns_in_loops(kernel)
    for node in kernel.nodes:
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        refused = _REFUSED.get(_operator(node)) or _refused_form(node)
        if node in looped:
            refused = "`return` in a loop", "Keep the result in a variable, and return it after the loop."
        if refused:
            what, suggestion = refused
            yield Fault(node, f"Triton does not compile {what} in a @triton.jit function.", suggestion)
        elif fault := _refused_values(node, kernel):
            yield fault
        elif isinstance(node, ast.ListComp) and node.generators[0].ifs:
            message = "Triton ignores the `if` of a comprehension: all elements are kept."
            yield Fault(node, message, "List the elements that are meant.")


def _operator(node: ast.AST) -> type[ast.AST]:
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
            return "a comprehension over range", _UNROLL
    return None


def _refused_values(node: ast.stmt | ast.expr, kernel: SourceKernel) -> Fault | None:
    """What is refused of blocks and of values that only a run knows."""
    match node:
        case ast.Compare(left=left, ops=[_, _, *_], comparators=others):
            pairs = zip(pairwise([left, *others]), node.ops, strict=True)
            parts = [ast.unparse(ast.Compare(one, [op], [other])) for (one, other), op in pairs]
            message = f"Triton before 3.9 does not compile the chained comparison `{ast.unparse(node)}`."
            fix = " & ".join(f"({part})" for part in parts)
            return Fault(node, message, "Join two comparisons with &.", fix=fix)
        case (
            ast.BinOp(left=base, op=ast.Pow(), right=exponent)
            | ast.AugAssign(target=ast.Name() as base, op=ast.Pow(), value=exponent)
        ) if max(kernel.kind(base), kernel.kind(exponent)) > Kind.UNKNOWN and kernel.runs_for_sure(node):
            message = f"Triton has no power of tensors: `{ast.unparse(node)}` does not compile."
            return Fault(node, message, "Multiply, or use libdevice.pow from triton.language.extra.")
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            floats = [side for side in (left, right) if kernel.dtype(side) in FLOATS]
            if floats:
                message = f"{ast.unparse(floats[0])} is a float, and Triton divides only integers with //."
                fix = f"tl.floor(({ast.unparse(left)}) / ({ast.unparse(right)}))"
                return Fault(node, message, "Write tl.floor of the quotient.", fix=fix)
        case ast.Call(func=ast.Name(id=name), args=given) if not kernel.scope.holder(name):
            return _of_python(node, name, given, kernel)
    return None


def _of_python(node: ast.Call, name: str, given: list[ast.expr], kernel: SourceKernel) -> Fault | None:
    """A call of a function of Python's that Triton lacks, or that takes no tensor."""
    if not kernel.runs_for_sure(node):
        return None
    if name in _REPLACED:
        return Fault(node, f"Triton does not know {name}() in a kernel.", f"Use {_REPLACED[name]}.")
    if name in _CASTS and len(given) == 1 and kernel.kind(given[0]) > Kind.UNKNOWN:
        message = f"{name}() takes no tensor: `{ast.unparse(node)}` does not compile."
        fix = f"({ast.unparse(given[0])}).to({_CASTS[name]})"
        return Fault(node, message, f"Use .to({_CASTS[name]}).", fix=fix)
    return None


def _returns_in_loops(kernel: SourceKernel) -> set[ast.AST]:
    """The returns in loops that are not unrolled."""
    return {
        node
        for loop in kernel.nodes
        if isinstance(loop, ast.While)
        or (isinstance(loop, ast.For) and not kernel.is_a(loop.iter, "static_range"))
        for node in own_nodes(loop.body)
        if isinstance(node, ast.Return)
    }


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        jit(ROW, "if i < n:", "    tl.store(x_ptr + i, 0.0)"),
        jit(ROW, "x = tl.load(x_ptr + i)", "tl.store(x_ptr + i, x if x > 0 else 0.0)"),
    ),
    good=(jit(ROW, "if tl.max(tl.load(x_ptr + i)) > 0 and n > 0:", "    tl.store(x_ptr + i, 0.0)"),),
)
def block_as_condition(kernel: SourceKernel) -> Iterator[Fault]:
    """A block of values decides an `if`, a `while` or `a if c else b`.

    A program has one flow of control for its whole block; Triton refuses a condition with more than one
    element.

    Fix: let tl.where choose single elements and mask= decide what is loaded and stored, or reduce the block
    to one value first: `if tl.max(x) > 0`.
    """
    for node in kernel.nodes:
        if not isinstance(node, ast.If | ast.While | ast.IfExp) or kernel.kind(node.test) != Kind.BLOCK:
            continue
        if not kernel.runs_for_sure(node):
            continue
        condition = ast.unparse(node.test)
        fix = ""
        if isinstance(node, ast.IfExp):
            fix = f"tl.where({condition}, {ast.unparse(node.body)}, {ast.unparse(node.orelse)})"
        yield Fault(
            node if isinstance(node, ast.IfExp) else node.test,
            f"`{condition}` is a block, and Triton does not branch on a block: this does not compile.",
            "Choose elements with tl.where, and pass the condition as mask= to loads and stores.",
            fix=fix,
        )


@kernel_rule(
    "low",
    "best practices",
    bad=(jit(ROW, "inside = i > 0 and i < n", "outside = i < 0 or i >= n"),),
    good=(jit(ROW, "if n > 0 and n < 3:", "    tl.store(x_ptr + i, 0.0, mask=(i > 0) & (i < n))"),),
)
def and_between_blocks(kernel: SourceKernel) -> Iterator[Fault]:
    """`and` or `or` is applied to a block.

    Triton warns about `and` and `or` between blocks and plans to refuse them; they compile to & and | today.
    On blocks of integers they do not compile.

    Fix: write `&` and `|` with parentheses around comparisons: `(i < n) & (j < m)`.
    """
    for node in kernel.nodes:
        if not isinstance(node, ast.BoolOp) or all(kernel.kind(value) < Kind.BLOCK for value in node.values):
            continue
        word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
        yield Fault(
            node,
            f"`{ast.unparse(node)}` joins blocks with `{word}`, which Triton warns about.",
            f"Write {sign}, with parentheses around each part.",
            fix=f" {sign} ".join(f"({ast.unparse(part)})" for part in node.values),
        )


def _misuses(*faults: str) -> Callable[[SourceFile], Iterator[Fault]]:
    """Reports what the installed Triton says of a file's names and arguments."""

    def check(file: SourceFile) -> Iterator[Fault]:
        for misuse in file.misuses:
            if misuse.fault in faults:
                yield Fault(misuse.at, misuse.message, misuse.suggestion)

    return check


_NAME_BAD = (
    jit("tl.store(x_ptr, tl.math.tanh(tl.load(x_ptr)))"),
    "from triton.ops import matmul\n",
)
_NAME_GOOD = ("tanh = tl.tanh if hasattr(tl, 'tanh') else None\n",)
_KEYWORD_BAD = (
    jit("m = tl.max(tl.load(x_ptr + tl.arange(0, B)), dim=0)"),
    jit("tl.store(x_ptr, tl.program_id(0, 1))"),
    "@triton.autotune([triton.Config({}, BLOCK=128)], key=['n'])\n@triton.jit\ndef kernel(n): ...\n",
)
_KEYWORD_GOOD = ("def run(x):\n    return x.sum(dim=0, keepdim=True)\n",)
RULES = (
    Rule(
        "nonexistent_api",
        about(
            "A file uses a name that Triton does not have.",
            "Such names come from PyTorch, CUDA or other releases of Triton; import or compiler fails.",
            "Use the name that each finding gives. Functions of one number that tl lacks are mostly in "
            "libdevice: `from triton.language.extra import libdevice`.",
        ),
        "critical",
        "correctness",
        (RuleCheck(SourceFile, _misuses("unknown", "removed"), _NAME_BAD, _NAME_GOOD),),
    ),
    Rule(
        "unknown_keyword",
        about(
            "A call of Triton's has a keyword that the function does not take, or too many arguments.",
            "The names are PyTorch's, NumPy's or those of other releases. The call is refused; where it was "
            "meant to mask, nothing else does it.",
            "Use Triton's own: axis, keep_dims, other.",
        ),
        "critical",
        "correctness",
        (RuleCheck(SourceFile, _misuses("keyword", "positional"), _KEYWORD_BAD, _KEYWORD_GOOD),),
    ),
    Rule(
        "deprecated_api",
        about(
            "A file uses a name of Triton's that every call warns about.",
            "The next release may lack it, and the kernel will not compile there.",
            "Use what took its place: tl.make_tensor_descriptor for block pointers, tl.reshape for tl.view.",
        ),
        "low",
        "best practices",
        (
            RuleCheck(
                SourceFile,
                _misuses("deprecated"),
                (jit("x = tl.view(tl.arange(0, 16), (4, 4))"),),
                (jit("x = tl.reshape(tl.arange(0, 16), (4, 4))"),),
            ),
        ),
    ),
)
