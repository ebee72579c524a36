"""Dimension expressions: sizes (`N // 2`), bounds (`0.5`, `N`) and requirements (`N % 16 == 0`).

Python reads and computes them; only what this page lists is computed, never arbitrary code. An expression is
kept as its text.
"""

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import CodeType

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.text_span import TextSpan

LONGEST = 200
"""Characters in one expression: keeps the parser's recursion and the numbers small."""

Number = int | float

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MEMBERSHIP = (ast.In, ast.NotIn)
_COMPUTED = (
    ast.Name, ast.Load, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp, *_ARITHMETIC, ast.Pow, ast.Div,
    ast.BoolOp, ast.And, ast.Or, ast.Compare, *_COMPARISONS, *_MEMBERSHIP, ast.Tuple,
)  # fmt: skip
"""Powers and quotients are written by torch.export, never by a user: whose expressions are checked first."""
_FUNCTIONS = {function.__name__: function for function in (abs, float, int, max, min, round)}
_OF_MATH = frozenset(f"math.{name}" for name in ("ceil", "exp", "floor", "log", "log2", "pow", "sqrt"))
"""Of sizes, as torch.export writes them; a user's expression calls none."""
_GLOBALS: dict[str, object] = {"__builtins__": {}, "math": math, **_FUNCTIONS}
_LISTED = re.compile(r"(\w+) in \(([\d, ]+)\)")
_SIZE_HINT = "A size is made of integers, dimension names, + - * // % and parentheses."
_CONDITION_HINT = "Compare sizes, for example N % 16 == 0, M < N or G in (1, 4); join with and, or, not."


def parse_size(passage: TextSpan, known: Collection[str]) -> str:
    """The text of one size of a shape, over the dimensions `known`.

    Raises BadDeclaration where it does not parse, names another dimension, or is a negative number.
    """
    node = _read(passage, _SIZE_HINT)
    _Check(passage, known, floats=False).arithmetic(node)
    if not names_in(passage.text) and value_of(passage.text, {}) < 0:
        raise passage.refusal(f"the size {passage.text} is negative.", "Sizes are 0 or more.")
    return passage.text


def parse_bound(passage: TextSpan, known: Collection[str]) -> str:
    """The text of LOW or HIGH of a range: like a size, but floats and negative numbers are welcome.

    Raises BadDeclaration where it does not parse or names an undeclared dimension.
    """
    node = _read(passage, "A bound is a number or a dimension expression, as in 0..N or 0.1..1.0.")
    _Check(passage, known, floats=True).arithmetic(node)
    return passage.text


def parse_requirement(passage: TextSpan, known: Collection[str]) -> str:
    """The text of one requirement: comparisons of sizes, joined with and, or, not.

    Raises BadDeclaration where it does not parse or names an undeclared dimension.
    """
    node = _read(passage, _CONDITION_HINT)
    _Check(passage, known, floats=False).condition(node)
    return passage.text


def names_in(text: str) -> frozenset[str]:
    """The dimensions that an expression names."""
    named = {node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name)}
    return frozenset(named - {"math", *_FUNCTIONS})


def sizes_listed(requirements: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The dims of which a requirement lists all sizes, `G in (1, 4)`, with these."""
    listed = filter(None, map(_LISTED.fullmatch, requirements))
    return {each[1]: tuple(map(int, re.findall(r"\d+", each[2]))) for each in listed}


def other_factor(size: str, known: Collection[str]) -> tuple[str, str] | None:
    """Of a size such as `2 * H` or `G*D` the dimension that is not known, and the factor that is."""
    factors = re.fullmatch(r"(\w+) ?\* ?(\w+)", size)
    if factors is None:
        return None
    left, right = factors.groups()
    for dim, factor in ((left, right), (right, left)):
        if dim not in known and dim.isidentifier() and (factor.isdecimal() or factor in known):
            return dim, factor
    return None


def quotient(size: str, factor: str) -> str:
    """The other factor as Python: of a size 0 by a factor 0 it is 0."""
    return f"{size} // {factor}" if factor.isdecimal() else f"{size} // max({factor}, 1)"


def at_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """The expression with these dimensions as numbers; one size where it names no other."""
    fixed = re.sub(r"\b[^\W\d]\w*\b", lambda name: str(sizes.get(name[0], name[0])), text)
    is_size = fixed != text and not names_in(fixed) and not isinstance(_tree(fixed), ast.Compare | ast.BoolOp)
    return str(value_of(fixed, {})) if is_size else fixed


def value_of(text: str, dims: Mapping[str, int]) -> Number:
    """A size or a bound at these dimensions. Raises BadDeclaration where it divides by zero there."""
    try:
        return _computed(text, dims)
    except ZeroDivisionError:
        problem = f"{text} divides by zero at {point_name(dims)}."
        raise BadDeclaration(problem, text, 0, "Add a requirement that keeps the divisor above 0.") from None


def holds(text: str, dims: Mapping[str, int]) -> bool:
    """Whether a requirement is met at these dimensions; one that divides by zero is not."""
    try:
        return bool(_computed(text, dims))
    except ZeroDivisionError:
        return False


def point_name(dims: Mapping[str, object]) -> str:
    """`M=7 N=64`; empty without dimensions."""
    return " ".join(f"{name}={size}" for name, size in dims.items())


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _read(passage: TextSpan, hint: str) -> ast.expr:
    text = passage.text
    if not text:
        raise passage.refusal("an expression is missing here.", hint)
    if len(text) > LONGEST:
        raise passage.refusal(f"this expression is longer than {LONGEST} characters.", hint, at=LONGEST)
    try:
        return _tree(text)
    except SyntaxError as error:
        at = min(max((error.offset or 1) - 1, 0), len(text))
        raise passage.refusal(f"{text!r} does not parse: {error.msg}.", hint, at=at) from None


@dataclass(frozen=True)
class _Check:
    """Refuses what lies outside the allow-list, at its character."""

    passage: TextSpan
    known: Collection[str]
    floats: bool

    def arithmetic(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=bool() | str() | bytes() | None):
                raise self.refusal(node, "this is not a number.", _SIZE_HINT)
            case ast.Constant(value=int()):
                pass
            case ast.Constant(value=float() as number):
                if not self.floats:
                    raise self.refusal(node, f"{number} is not an integer.", _SIZE_HINT)
            case ast.Name(id=name):
                if name not in self.known:
                    raise self.refusal(node, f"no dimension {name!r} is declared.", self._declare(name))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self.arithmetic(operand)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
                self.arithmetic(left)
                self.arithmetic(right)
                self._divisor(op, right)
            case ast.BinOp(left=left, op=ast.Div()):
                slash = self.passage.text.index("/", self._column(left.end_col_offset))
                problem, hint = "/ does not give an integer.", "Write // to divide sizes."
                raise self.passage.refusal(problem, hint, at=slash)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise self.refusal(node, "a condition stands where a number belongs.", _SIZE_HINT)
            case _:
                raise self.refusal(node, "this is not allowed in an expression of sizes.", _SIZE_HINT)

    def condition(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    self.condition(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple(elts=sizes)]):
                for side in (left, *sizes):
                    self.arithmetic(side)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                if not all(isinstance(op, _COMPARISONS) for op in ops):
                    problem = "only == != < <= > >= compare sizes, and in (1, 4) several."
                    raise self.refusal(node, problem, _CONDITION_HINT)
                for side in (left, *comparators):
                    self.arithmetic(side)
            case _:
                self.arithmetic(node)
                raise self.refusal(node, "a requirement must be true or false.", _CONDITION_HINT)

    def refusal(self, node: ast.expr, problem: str, hint: str) -> BadDeclaration:
        return self.passage.refusal(problem, hint, at=self._column(node.col_offset))

    def _column(self, offset: int | None) -> int:
        """The character at a byte offset, which is how Python's parser counts."""
        return len(self.passage.text.encode()[:offset].decode())

    def _divisor(self, op: ast.operator, right: ast.expr) -> None:
        if isinstance(op, ast.FloorDiv | ast.Mod) and isinstance(right, ast.Constant) and right.value == 0:
            raise self.refusal(right, "this divides by zero.", "Divide by 1 or more.")

    def _declare(self, name: str) -> str:
        near = get_close_matches(name, self.known, n=1, cutoff=0.5)
        meant = f"Did you mean {near[0]}? " if near else ""
        declared = ", ".join(self.known) or "none"
        add = f"Add --dim {name}=1,7,256 (DIMS in a kernel file; --at declares none)"
        return f"{meant}{add}; declared so far: {declared}."


def _computed(text: str, dims: Mapping[str, int]) -> Number:
    number: Number = eval(_compiled(text), _GLOBALS, dims)  # of what is listed above
    return number


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    """Plans of cases compute the same expression thousands of times."""
    tree = _tree(text)
    if not _is_listed(tree):
        raise TypeError(f"{text} was never checked")
    return compile(ast.Expression(tree), text, "eval")


def _is_listed(node: ast.AST) -> bool:
    """Whether it is made of nothing but what this page lists."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.Call(func=function, args=args, keywords=[]):
            return ast.unparse(function) in {*_FUNCTIONS, *_OF_MATH} and all(map(_is_listed, args))
    return isinstance(node, _COMPUTED) and all(map(_is_listed, ast.iter_child_nodes(node)))
