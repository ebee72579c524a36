"""A function as text in which each statement starts on a line of its own: that line is its name.

What needs the values of tensors is put into statements of its own: `y = x / x.abs().max().item()` becomes
three, the maximum, its value, and the quotient.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytorch_to_triton.draft.file.reference import forward_of
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.worker.wire.tracing import ValueNeed

Lines = tuple[int, int]
"""The first and the last line of a statement in the user's file."""
BLOCKS = (ast.If, ast.While, ast.For, ast.With)
"""Statements whose blocks may be cut."""


@dataclass(frozen=True)
class FunctionText:
    """A function, as written by ast.unparse."""

    text: str
    tree: ast.FunctionDef
    """Of the text."""
    lines: Mapping[int, Lines]
    """Where each statement comes from, by its line in the text."""
    receiver: str = ""
    """The parameter that is the module, of its `forward`."""

    def names(self) -> frozenset[str]:
        """All names that it uses or binds."""
        nodes = list(ast.walk(self.tree))
        return frozenset(n.id for n in nodes if isinstance(n, ast.Name)) | frozenset(
            n.arg for n in nodes if isinstance(n, ast.arg)
        )


def function_text(source: str, name: str) -> FunctionText | None:
    """The function of a file; None where it is no plain one at the top level, or a generator."""
    found = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == name]
    return numbered(found[-1]) if found else None


def forward_text(source: str, name: str) -> FunctionText | None:
    """The `forward` of a class of modules, its own or inherited in the file, as a function that means the
    same in a class that inherits from this one; None where that cannot be."""
    classes = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
    found = forward_of(classes, name) if name in classes else None
    if found is None or not (receivers := [*found.args.posonlyargs, *found.args.args]):
        return None
    if any(isinstance(n, ast.Attribute) and is_private(n.attr) for n in ast.walk(found)):
        return None
    receiver = receivers[0].arg
    for call in (n for n in ast.walk(found) if isinstance(n, ast.Call) and not n.args):
        if isinstance(call.func, ast.Name) and call.func.id == "super":
            owner = next(c.name for c in classes.values() if found in c.body)
            call.args = [ast.Name(owner, ast.Load()), ast.Name(receiver, ast.Load())]
    text = numbered(found)
    return replace(text, receiver=receiver) if text else None


def is_private(name: str) -> bool:
    """Whether Python puts the class into it."""
    return name.startswith("__") and not name.endswith("__")


def numbered(function: ast.FunctionDef) -> FunctionText | None:
    """A function with the lines of its statements; None for a generator."""
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Global) for n in ast.walk(function)):
        return None
    return rewritten(function, {s.lineno: (s.lineno, last_line(s)) for s in statements(function)})


def last_line(statement: ast.stmt) -> int:
    """Of a statement with blocks, that of its head."""
    blocks = blocks_of(statement)
    heads = [e.end_lineno or 0 for e in ast.iter_child_nodes(statement) if isinstance(e, ast.expr)]
    return max(heads, default=statement.lineno) if blocks else statement.end_lineno or statement.lineno


def rewritten(function: ast.FunctionDef, lines: Mapping[int, Lines]) -> FunctionText:
    """A tree as text; its statements, also those that were added, have lines by which `lines` knows them."""
    text = ast.unparse(ast.fix_missing_locations(function))
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    pairs = zip(statements(tree), statements(function), strict=True)
    return FunctionText(text, tree, {new.lineno: lines[old.lineno] for new, old in pairs})


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from statements(child)


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement that may be cut."""
    blocks = [getattr(statement, "body", []), getattr(statement, "orelse", [])]
    return [block for block in blocks if block] if isinstance(statement, BLOCKS) else []


def read_names(node: ast.AST) -> list[ast.Name]:
    """The places below a node where a variable is read; `x += 1` reads x."""
    nodes = list(ast.walk(node))
    names = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    changed = (n.target for n in nodes if isinstance(n, ast.AugAssign))
    return [*names, *(target for target in changed if isinstance(target, ast.Name))]


def loaded(node: ast.AST) -> set[str]:
    """Names that are read below a node."""
    return {name.id for name in read_names(node)}


def is_indexed_by(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether an element or a slice is taken at one of these variables."""
    return isinstance(node, ast.Subscript) and bool(loaded(node.slice) & names)


def stored(node: ast.AST) -> set[str]:
    """Names that are bound below a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


Place = tuple[int, int, int, int]
COMPUTING = (ast.Call, ast.BinOp, ast.Subscript)
READING = (ast.Call, ast.Subscript, ast.UnaryOp, ast.BoolOp, ast.JoinedStr)
LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What is in them may be computed several times, or never."""


def with_values_apart(
    function: FunctionText, needs: Sequence[ValueNeed], changing: frozenset[str]
) -> FunctionText:
    """The same function; statements that are added come from where the one that needs values does.

    What is indexed by `changing` numbers is put into statements of its own, too.
    """
    tree = copy.deepcopy(function.tree)
    in_order = sorted(needs, key=lambda need: need.truth, reverse=True)  # What is in a test weighs more.
    places = {(n.line, n.end_line, n.column, n.end_column): n.truth for n in in_order}
    apart = Apart(places, changing, function.names())
    tree.body = apart.block(tree.body)
    return replace(rewritten(tree, function.lines), receiver=function.receiver)


class Apart(ast.NodeTransformer):
    """Takes expressions that need values, and what they are computed from, out of statements."""

    def __init__(self, needs: Mapping[Place, bool], changing: frozenset[str], taken: frozenset[str]) -> None:
        self.needs = needs
        self.changing = changing
        self.taken = set(taken)
        self.before: list[ast.stmt] = []
        """What has been taken out of the present statement."""

    def block(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, with those that are put before them."""
        return [each for statement in block for each in self.statement(statement)]

    def statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        if chosen := self.as_branches(statement):
            statement = chosen
        for inner in blocks_of(statement):
            inner[:] = self.block(inner)
        if isinstance(statement, ast.While):
            statement = self.loop(statement)
        else:
            self.taken_apart(statement)
        yield from placed(self.before, statement)
        yield statement
        self.before = []

    def as_branches(self, statement: ast.stmt) -> ast.If | None:
        """`y = a if test else b` as two branches, where the test needs values."""
        if not isinstance(statement, ast.Assign | ast.Return) or not isinstance(statement.value, ast.IfExp):
            return None
        value = statement.value
        if not any(isinstance(e, ast.expr) and place(e) in self.needs for e in ast.walk(value.test)):
            return None
        body, other = copy.deepcopy(statement), copy.deepcopy(statement)
        body.value, other.value = value.body, value.orelse
        return ast.copy_location(ast.If(value.test, [body], [other]), statement)

    def taken_apart(self, statement: ast.stmt) -> None:
        """A statement with names in place of what was taken out of its expressions."""
        for field in ("value", "test", "iter"):
            expression = getattr(statement, field, None)
            if not isinstance(expression, ast.expr):
                continue
            if field == "value" and isinstance(statement, ast.Expr):
                self.operands(self.visited(expression))  # Such as what is appended to a list.
            elif self.reads(expression):
                self.operands(self.visited(expression))  # The statement is all that reads it.
            elif not (isinstance(expression, ast.Subscript) and self.is_view(expression)):
                setattr(statement, field, self.visit(expression))

    def loop(self, loop: ast.While) -> ast.While:
        """A loop whose test is computed by statements at the head of its body."""
        if loop.orelse:
            return loop
        self.taken_apart(loop)
        if not self.before:
            return loop
        leaving = ast.If(ast.UnaryOp(ast.Not(), loop.test), [ast.Break()], [])
        head = placed([*self.before, leaving], loop)
        self.before = []
        return ast.copy_location(ast.While(ast.Constant(value=True), [*head, *loop.body], []), loop)

    def visited(self, node: ast.expr) -> ast.expr:
        """The expression with names in place of what was taken out of its operands."""
        if isinstance(node, ast.IfExp):
            node.test = self.visit(node.test)
        elif isinstance(node, ast.BoolOp):
            node.values[0] = self.visit(node.values[0])
        elif not isinstance(node, LATER):
            self.generic_visit(node)
        return node

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        needed, reads = place(node) in self.needs, self.reads(node)
        view = self.is_view(node)
        self.visited(node)
        if isinstance(node, LATER) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        if reads:
            self.operands(node)
            return self.named("value", node)
        if needed and computes(node):
            return self.named("condition", node)
        return self.named("view", node) if view else node

    def reads(self, node: ast.expr) -> bool:
        """Whether what is in an expression reads values, not only a test of its result."""
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1
        reading = chained or isinstance(node, READING)
        return self.needs.get(place(node)) is False and reading

    def is_view(self, node: ast.expr) -> bool:
        """Whether it is indexed by numbers that change."""
        return is_indexed_by(node, self.changing) and isinstance(getattr(node, "ctx", None), ast.Load)

    def operands(self, node: ast.expr) -> None:
        """What an expression that needs values is computed from, taken out of it."""
        names = {
            id(child): self.named("tensor", child)
            for child in operands_of(node)
            if not constant(child) and (computes(child) or isinstance(child, ast.Compare | ast.UnaryOp))
        }
        Replacing(lambda child: names.get(id(child))).generic_visit(node)

    def named(self, kind: str, expression: ast.expr) -> ast.Name:
        """A name for an expression, which is computed before the statement."""
        name = fresh(kind, self.taken)
        self.taken.add(name)
        self.before.append(ast.Assign([ast.Name(name, ast.Store())], expression))
        return ast.copy_location(ast.Name(name, ast.Load()), expression)


def placed(added: Sequence[ast.stmt], at: ast.stmt) -> list[ast.stmt]:
    """Statements that come from where another does."""
    for each in (node for statement in added for node in ast.walk(statement) if isinstance(node, ast.stmt)):
        ast.copy_location(each, at)
    return list(added)


def place(node: ast.expr) -> Place:
    return node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset or 0


def computes(node: ast.expr) -> bool:
    """Whether it does more than to name or to compare values that are there."""
    return any(isinstance(each, COMPUTING) for each in ast.walk(node))


def constant(node: ast.expr) -> bool:
    return not any(isinstance(each, ast.Name) for each in ast.walk(node))


def operands_of(node: ast.expr) -> list[ast.expr]:
    """What an expression that reads values is computed from."""
    match node:
        case ast.Call(func=function, args=args, keywords=keywords):
            method = [function.value] if isinstance(function, ast.Attribute) else []
            operands = [*method, *args, *(keyword.value for keyword in keywords)]
        case ast.Subscript(value=value, slice=ast.Tuple(elts=indices)):
            operands = [value, *indices]
        case ast.Subscript(value=value, slice=index):
            operands = [value, index]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.BoolOp(values=values):
            operands = values[:1]  # The others may never be computed.
        case _:
            operands = []
    return [operand for operand in operands if not isinstance(operand, ast.Slice | ast.Starred)]


@dataclass(frozen=True)
class Replacing(ast.NodeTransformer):
    """Puts nodes in the place of others."""

    instead: Callable[[ast.AST], ast.AST | None]
    """None where a node stays, and what is in it is looked at."""

    def visit(self, node: ast.AST) -> Any:
        return self.instead(node) or self.generic_visit(node)
