"""Python syntax that means something else to Triton's compiler than to Python.

A kernel's source is rewritten before it is interpreted; the rewritten code calls the functions of this module
under the name `interpreter_syntax`. As in the compiler, `and`, `or` and `not` on blocks work lane by lane, a
block as the condition of an `if` is refused, the index of a `range` loop is a tensor, and what a loop carries
keeps its type. The turns of each loop are counted: what it carries shows from its second turn on.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.runtime.errors import InterpreterError

from ..wire.observation import ObservedLoop
from .formats import encode
from .launching import give_way

Place = tuple[str, str, int]
"""A loop's file, function and line."""
MOST_TURNS: dict[Place, int] = {}
"""Of each loop that was reached in this process, the turns of its longest run."""


def count_turns(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop, which is counted at the place that calls this."""
    frame = sys._getframe(1)
    return turns_of(values, (frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))


def turns_of(values: Iterable[Any], place: Place) -> Iterator[Any]:
    turns = 0
    for value in values:
        turns += 1
        yield value
    MOST_TURNS[place] = max(MOST_TURNS.get(place, 0), turns)


def observed_loops() -> list[ObservedLoop]:
    """Every loop that was reached in this process."""
    return [
        ObservedLoop(file=file, function=function, line=line, turns=turns)
        for (file, function, line), turns in MOST_TURNS.items()
    ]


NAMESPACE = "interpreter_syntax"
NAMES_IN_REWRITTEN_CODE = (NAMESPACE, "interpreter_semantic", "_InterpreterComparison")
TYPES_BEFORE = "types_before_this_iteration"
"""A variable of the rewritten code."""
Branch = TypeVar("Branch", ast.If, ast.While, ast.IfExp)
Loop = TypeVar("Loop", ast.For, ast.While)


class BlockCondition(InterpreterError):  # type: ignore[misc]
    """A block was used where a program needs one truth value, which no compiler accepts."""

    def __init__(self) -> None:
        super().__init__("a block of values cannot decide an if or a while: use tl.where")


class Rewriter(upstream.ASTTransformer):  # type: ignore[misc]
    """Turns a kernel's syntax tree into one that Python runs with the compiler's meaning."""

    carried: dict[ast.AST, list[str]]
    """Of the function that is visited, by loop, the variables that it carries from step to step."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = {argument.arg for argument in node.args.args}
        self.carried = dict(carried_by_loops(node.body, arguments))
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if len(node.targets) > 1:
            raise ValueError("Multiple assignments are not supported")
        self.generic_visit(node)
        node.value = call("interpreter_semantic", "to_tensor", node.value, ast.Constant(value=False))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        result = node.values[0]
        for value in node.values[1:]:
            result = call(NAMESPACE, name, result, lazily(value))
        return ast.copy_location(result, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(call(NAMESPACE, "negation", node.operand), node)

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self.generic_visit(node)
        node.test = call(NAMESPACE, "holds", node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        return self.with_condition(node)

    def visit_While(self, node: ast.While) -> ast.While:
        node = with_types_kept(self.with_condition(node), self.carried.get(node, ()))
        node.body.append(placed(f"{NAMESPACE}.{give_way.__name__}()", node))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        return self.with_condition(node)

    def with_condition(self, node: Branch) -> Branch:
        self.generic_visit(node)
        node.test = call(NAMESPACE, "condition", node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if hasattr(super(), "visit_Compare"):
            rewritten: ast.expr = super().visit_Compare(node)
            return rewritten
        if len(node.ops) > 1:
            raise InterpreterError(f"{ast.unparse(node)}: this Triton compares only two values at a time")
        self.generic_visit(node)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="range")):
                node.iter.func = name_in(NAMESPACE, "tensor_range")
        if node not in self.carried:
            return node
        node.iter = ast.copy_location(call(NAMESPACE, count_turns.__name__, node.iter), node.iter)
        return with_types_kept(node, self.carried[node])


def carried_by_loops(
    statements: Sequence[ast.stmt], defined: set[str]
) -> Iterator[tuple[ast.AST, list[str]]]:
    """Each loop that is not unrolled, with the variables that have a value before it and get another in it.

    `defined` are those with a value before the statements; after them, also those that these give one. What
    only a loop or one branch defines is gone after it.
    """
    for statement in statements:
        if isinstance(statement, ast.If):
            branches = [set(defined), set(defined)]
            for branch, body in zip(branches, (statement.body, statement.orelse), strict=True):
                yield from carried_by_loops(body, branch)
            defined |= branches[0] & branches[1]
        elif isinstance(statement, ast.For | ast.While) and not is_unrolled(statement):
            yield statement, sorted(variables_set_in(statement.body) & defined)
            yield from carried_by_loops(
                statement.body, defined | variables_set_in([statement]) - variables_set_in(statement.body)
            )
        elif isinstance(statement, ast.For | ast.With):
            yield from carried_by_loops(statement.body, defined)
        else:
            defined |= variables_set_in([statement])


def is_unrolled(loop: ast.For | ast.While) -> bool:
    return isinstance(loop, ast.For) and not re.match(r"(\w+\.)*range\(", ast.unparse(loop.iter))


def with_types_kept(loop: Loop, carried: Sequence[str]) -> Loop:
    """The loop with a last statement that refuses another type of what it carries, as the compiler does."""
    names = " ".join(carried)
    first = placed(f"{TYPES_BEFORE} = {NAMESPACE}.types_of({names!r}, locals())", loop)
    last = placed(f"{NAMESPACE}.keep_types({TYPES_BEFORE}, {names!r}, locals())", loop)
    loop.body = [first, *loop.body, last]
    return loop


def placed(text: str, place: ast.stmt) -> ast.stmt:
    """A statement in the line of another one."""
    (statement,) = ast.parse(text).body
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


def variables_set_in(trees: Iterable[ast.AST]) -> set[str]:
    """The variables that code gives a value."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def types_of(names: str, variables: dict[str, Any]) -> dict[str, str]:
    """The types of those of the variables, named with spaces between, that are tensors."""
    tensors = ((name, variables.get(name)) for name in names.split())
    return {name: type_name(value) for name, value in tensors if isinstance(value, tl.tensor)}


def type_name(tensor: Any) -> str:
    """`fp32` of a scalar, `fp32[64, 32]` of a block."""
    sizes = ", ".join(map(str, np.shape(tensor.handle.data))) if tensor.type.is_block() else ""
    return f"{tensor.dtype}[{sizes}]" if sizes else str(tensor.dtype)


def keep_types(before: dict[str, str], names: str, variables: dict[str, Any]) -> None:
    """Raises InterpreterError where a loop has changed the type of a variable that it carries on."""
    after = types_of(names, variables)
    for name, kind in before.items():
        if after.get(name, kind) != kind:
            raise InterpreterError(
                f"a loop makes {after[name]} of {name}, which is {kind} before it: the compiler refuses that"
            )


def name_in(module: str, name: str) -> ast.Attribute:
    return ast.Attribute(value=ast.Name(id=module, ctx=ast.Load()), attr=name, ctx=ast.Load())


def call(module: str, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(func=name_in(module, name), args=list(arguments), keywords=[])


def lazily(value: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=value)


def both(first: Any, second: Callable[[], Any]) -> Any:
    """`first and second()`, lane by lane where `first` is a tensor."""
    return first.logical_and(second()) if isinstance(first, tl.tensor) else first and second()


def either(first: Any, second: Callable[[], Any]) -> Any:
    """`first or second()`, lane by lane where `first` is a tensor."""
    return first.logical_or(second()) if isinstance(first, tl.tensor) else first or second()


def negation(value: Any) -> Any:
    """`not value`, lane by lane where it is a tensor."""
    return value.__not__() if isinstance(value, tl.tensor) else not value


def condition(value: Any) -> Any:
    """What an `if` or `while` tests: one truth value. Raises BlockCondition for a block."""
    if isinstance(value, tl.tensor) and value.type.is_block():
        raise BlockCondition
    return value


def holds(value: Any) -> bool:
    """Whether an assertion holds in every lane."""
    return bool(value.handle.data.all()) if isinstance(value, tl.tensor) else bool(value)


def tensor_range(start: Any, stop: Any = None, step: Any = None, **hints: Any) -> Iterator[Any]:
    """`range` or `tl.range`, counting in scalar tensors of the bounds' common integer dtype."""
    semantic = upstream.interpreter_semantic
    first, end = (0, start) if stop is None else (start, stop)
    bounds = [semantic.to_tensor(bound) for bound in (first, end, 1 if step is None else step)]
    dtype = bounds[0].dtype
    for bound in bounds[1:]:
        dtype = semantic.integer_promote_impl(dtype, bound.dtype)
    for value in range(*(index(bound) for bound in bounds)):
        yield tl.tensor(upstream.TensorHandle(encode(np.array([value]), dtype), dtype), dtype)


def index(tensor: Any) -> int:
    return int(tensor.handle.data.item())


def compile_and_exec(self: Any, tree: ast.Module) -> Any:
    """The rewritten function, seeing what the kernel's author sees: its module's names and its closure's.

    Upstream also gives it `np`, `math` and all other names of its own, so that it runs what does not compile.
    """
    names = self.fn.__globals__
    if self.fn.__closure__:
        names = {**names, **inspect.getclosurevars(self.fn).nonlocals}
    for name in NAMES_IN_REWRITTEN_CODE:
        if hasattr(upstream, name):
            names[name] = getattr(upstream, name)
    defined: dict[str, Any] = dict(self.kwargs)
    exec(compile(tree, filename=self.filename, mode="exec"), names, defined)
    return defined[self.fn.__name__]


def install() -> None:
    upstream.FunctionRewriter.ast_transformer = Rewriter()
    upstream.FunctionRewriter._compile_and_exec = compile_and_exec
    setattr(upstream, NAMESPACE, sys.modules[__name__])
    tl.tensor.__index__ = index
    for module in (tl, tl.core):
        module.range = tensor_range
