"""From statements with a name for everything to what a person would write.

Single uses are inlined, names are short, long calls get a line an argument. It works on syntax trees: the
statements that it may touch assign a name that starts with TEMPORARY.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

from pytorch_to_triton.draft.fresh_names import fresh

TEMPORARY = "t__"
"""How the name of a value without one starts: `t__3__product`."""
LARGEST = 7
"""Operators and calls that an expression may have after a value is written into it."""
WIDTH = 100


def tidied(source: str) -> str:
    """The function's source, as a person would write it."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    blocks = [n for n in ast.walk(function) if isinstance(n, ast.FunctionDef | ast.For | ast.If)]
    for block in blocks:
        _inline_all(block.body, function)
    _Sums().visit(function)
    _rename(function)
    ast.fix_missing_locations(function)
    text = re.sub(r'^(\s*)"# (.*)"$', r"\1# \2", _text(function), flags=re.M)
    text = re.sub(r"^(\s*)\((\w+(?:, \w+)+)\) = ", r"\1\2 = ", text, flags=re.M)
    return "\n".join(part for line in text.splitlines() for part in wrapped(line))


def _reads(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def _writes(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def weight(node: ast.AST) -> int:
    """How much there is to read."""
    return sum(isinstance(n, ast.BinOp | ast.Call | ast.UnaryOp | ast.Compare) for n in ast.walk(node))


def _inline_all(body: list[ast.stmt], function: ast.FunctionDef) -> None:
    """Write every temporary with one use into that use, unless that makes a line too long to read."""
    uses = Counter(_reads(function))
    reads = [_reads(s) for s in body]
    i = 0
    while i < len(body):
        match body[i]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith(TEMPORARY):
                if uses[name] == 0:
                    uses.subtract(reads[i])
                    del body[i], reads[i]
                    # What only this statement read may go now as well.
                    i = 0
                    continue
                trivial = isinstance(value, ast.Name | ast.Constant)
                if (uses[name] == 1 or trivial) and _moved(body, reads, i, name, value, trivial=trivial):
                    extra = uses.pop(name) - 1
                    uses.update(reads[i] * extra)
                    del body[i], reads[i]
                    i = max(i - 1, 0)
                    continue
        i += 1


def _moved(
    body: list[ast.stmt], reads: list[list[str]], i: int, name: str, value: ast.expr, *, trivial: bool
) -> bool:
    sources = set(reads[i])
    places = [j for j in range(i + 1, len(body)) if name in reads[j]]
    if not places:
        return False
    for j in range(i + 1, places[-1] + 1):
        if j in places and (isinstance(body[j], ast.For) or not _may(body[j], name, value, trivial=trivial)):
            return False
        if j < places[-1] and _writes(body[j]) & sources:
            return False
    for j in places:
        body[j] = _Put(name, value).visit(body[j])
        reads[j] = _reads(body[j])
    return True


def _may(statement: ast.stmt, name: str, value: ast.expr, *, trivial: bool) -> bool:
    based = any(
        isinstance(n, ast.Subscript | ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name
        for n in ast.walk(statement)
    )
    if based and not isinstance(value, ast.Name | ast.Call):
        return False
    store = isinstance(statement, ast.Expr)
    return trivial or weight(statement) + weight(value) <= LARGEST + 3 * store


class _Put(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name and isinstance(node.ctx, ast.Load) else node


class _Sums(ast.NodeTransformer):
    """A difference for the sum with a negative, which rounds alike; offsets behind a pointer term by term."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.BinOp(left, ast.Add(), ast.UnaryOp(ast.USub(), right)):
                return ast.BinOp(left, ast.Sub(), right)
            case ast.BinOp(left, ast.Add(), ast.BinOp(ast.UnaryOp(ast.USub(), x), ast.Mult(), y)):
                return ast.BinOp(left, ast.Sub(), ast.BinOp(x, ast.Mult(), y))
            case ast.BinOp(ast.Name(id=name) as left, ast.Add(), ast.BinOp(x, ast.Add(), y)) if name.endswith(
                "_ptr"
            ):
                return ast.BinOp(self.visit(ast.BinOp(left, ast.Add(), x)), ast.Add(), y)
        return node


def _rename(function: ast.FunctionDef) -> None:
    """Temporaries that stayed get the shortest free name that says what they are."""
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    taken = {n.id for n in names} | {a.arg for a in function.args.args}
    to: dict[str, str] = {}
    for node in names:
        if node.id.startswith(TEMPORARY):
            if node.id not in to:
                to[node.id] = fresh(node.id.split("__")[2], taken)
                taken.add(to[node.id])
            node.id = to[node.id]


def wrapped(line: str) -> list[str]:
    """A statement of a kernel, on several lines where it is long."""
    if len(line) <= WIDTH or line.strip().endswith(":"):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    match ast.parse(line.strip()).body[0]:
        case ast.Assign(targets=[target], value=(ast.Call() | ast.BinOp()) as value):
            return broken(indent, f"{_text(target).strip('()')} = ", value)
        case ast.Expr(value=ast.Call() as value):
            return broken(indent, "", value)
        case ast.AugAssign(target=target, value=ast.Call() as value):
            return broken(indent, f"{_text(target)} += ", value)
    return [line]


def broken(indent: str, head: str, value: ast.expr) -> list[str]:
    """A statement with a call's arguments, or a sum's terms, on lines of their own."""
    match value:
        case ast.Call():
            return _call(indent, head, value)
        case ast.BinOp():
            return _terms(indent, head, value)
    text = _text(value)
    inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return [f"{indent}{head}(", f"{indent}    {inside}", f"{indent})"]


def _call(indent: str, head: str, call: ast.Call) -> list[str]:
    tail = ""
    match call.func:
        case ast.Attribute(value=ast.Call() as inner, attr=attr):
            tail, call = f".{attr}({', '.join(map(_text, call.args))})", inner
    arguments = [*map(_text, call.args), *(f"{k.arg}={_text(k.value)}" for k in call.keywords)]
    inside = [part for a in arguments for part in _argument(f"{indent}    ", a)]
    return [f"{indent}{head}{_text(call.func)}(", *inside, f"{indent}){tail}"]


def _argument(indent: str, text: str) -> list[str]:
    if len(indent) + len(text) < WIDTH:
        return [f"{indent}{text},"]
    name, equals, value = text.partition("=") if re.match(r"\w+=[^=]", text) else ("", "", text)
    match ast.parse(value, mode="eval").body:
        case ast.Call() as call:
            lines = _call(indent, f"{name}{equals}", call)
            return [*lines[:-1], f"{lines[-1]},"]
        case ast.BinOp() as sum_:
            lines = _terms(indent, f"{name}{equals}", sum_)
            return [*lines[:-1], f"{lines[-1]},"]
    return [f"{indent}{text},"]


SIGNS = {ast.Add: "+", ast.Sub: "-", ast.BitAnd: "&", ast.BitOr: "|", ast.Mult: "*", ast.Div: "/"}


def _terms(indent: str, head: str, value: ast.BinOp) -> list[str]:
    first, *rest = _flat(value)
    inside = [f"{indent}    {first}", *(f"{indent}    {part}" for part in rest)]
    return [f"{indent}{head}(", *inside, f"{indent})"]


def _flat(value: ast.expr) -> list[str]:
    match value:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            bound = isinstance(right, ast.BinOp | ast.Compare)
            right_text = f"({_text(right)})" if bound else _text(right)
            same = isinstance(left, ast.BinOp) and _level(left.op) == _level(op)
            left_text = _flat(left) if same else [f"({_text(left)})" if _looser(left, op) else _text(left)]
            return [*left_text, f"{SIGNS[type(op)]} {right_text}"]
    return [_text(value)]


def _level(op: ast.operator) -> int:
    levels = ((ast.BitOr,), (ast.BitAnd,), (ast.Add, ast.Sub), (ast.Mult, ast.Div))
    return next((i for i, level in enumerate(levels) if isinstance(op, level)), 9)


def _looser(left: ast.expr, op: ast.operator) -> bool:
    return isinstance(left, ast.Compare) or (isinstance(left, ast.BinOp) and _level(left.op) < _level(op))


def _text(node: ast.AST) -> str:
    return re.sub(r"'([^'\"\n]*)'", r'"\1"', ast.unparse(node))
