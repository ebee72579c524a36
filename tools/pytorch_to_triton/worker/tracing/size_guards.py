"""Sizes, numbers computed from sizes, and the conditions on them under which a trace holds, out of all that
torch.export noted on its way: as Python text over the declared dims.
"""

import ast
import itertools
import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sympy
import torch
from sympy.printing.str import StrPrinter
from torch.utils._sympy.functions import Max

CALLS = {
    "CeilToInt": "math.ceil",
    "FloorToInt": "math.floor",
    "RoundToInt": "round",
    "ToFloat": "float",
    "TruncToInt": "int",
    "Max": "max",
    "Min": "min",
    "Abs": "abs",
}
OPERATORS = {
    "CleanDiv": "//",
    "FloorDiv": "//",
    "IntTrueDiv": "/",
    "FloatTrueDiv": "/",
    "FloatPow": "**",
    "PowByNatural": "**",
    "Mod": "%",
    "PythonMod": "%",
}
"""torch's functions of sizes, and how Python writes them."""
AS_FLOATS = ("IntTrueDiv", "FloatTrueDiv", "FloatPow")
"""These convert integers to floats themselves."""
OPAQUE = "OpaqueUnaryFn_"


class UnknownFunction(Exception):
    """A size is computed in a way that has no text."""


class SizePrinter(StrPrinter):  # type: ignore[misc]
    """torch's expressions of sizes as Python source; each operation in parentheses."""

    def _print_Float(self, number: Any) -> str:
        return repr(float(number))

    def _print_Function(self, call: Any) -> str:
        name = type(call).__name__
        if name in OPERATORS:
            sides = [a.args[0] if name in AS_FLOATS and is_float_of(a) else a for a in call.args]
            return f"({f' {OPERATORS[name]} '.join(f'({self._print(side)})' for side in sides)})"
        function = f"math.{name.removeprefix(OPAQUE)}" if name.startswith(OPAQUE) else CALLS.get(name)
        if function is None:
            raise UnknownFunction(f"{call} has no counterpart in Python")
        arguments = [a.args[0] if function.startswith("math.") and is_float_of(a) else a for a in call.args]
        return f"{function}({', '.join(self._print(a) for a in arguments)})"

    emptyPrinter = _print_Function
    _print_Max = _print_Min = _print_Abs = _print_Function


def is_float_of(expression: Any) -> bool:
    return type(expression).__name__ == "ToFloat"


def text_of(expression: sympy.Expr) -> str:
    """The expression as sympy writes it, e.g. `2*H`, with torch's functions as Python has them."""
    return str(SizePrinter().doprint(expression))


def relation_of(condition: Any) -> str:
    """A comparison of sizes, or several at once, as Python, e.g. `N % 2 == 0`."""
    if isinstance(condition, sympy.And):
        return " and ".join(map(relation_of, condition.args))
    if not isinstance(condition, sympy.core.relational.Relational):
        raise UnknownFunction(f"{condition} compares nothing")
    if all(side.could_extract_minus_sign() for side in condition.args):
        condition = condition.reversedsign
    left, right = (text_of(side) for side in condition.args)
    return tidy(f"({left}) {condition.rel_op} ({right})")


def tidy(text: str) -> str:
    """Python text without needless parentheses."""
    plain = ast.unparse(ast.parse(text, mode="eval"))
    return re.sub(r"\*\* \((-[\d.]+)\)", r"** \1", plain)


PLACED = ("_compute_slice_index", "slice_forward", "meta_select")
"""torch's functions that ask whether a slice begins or ends outside of its tensor: results differ then."""
TORCH = str(Path(torch.__file__).parent)
STRIDES = f"{TORCH}/_prims_common/"
BOUNDS = (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)
SIZES = (2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 64, 99, 100, 101, 128, 1000, 1023, 1024, 4096, 10**5, 2**20, 2**31)
POINTS = 4000
"""Sizes at which conditions are compared; sizes 0 and 1 are never traced."""


def conditions(
    size: torch.SymInt, symbols: Mapping[sympy.Symbol, sympy.Expr], bounds: Sequence[str]
) -> list[str]:
    """What the caller's own branches ask of the sizes, and what fixes a number, as Python over the dims.

    `size` is any size of the trace, `symbols` the dims behind its symbols, `bounds` conditions known already.
    Conditions that always hold, or that follow from others, are left out.
    """
    guards = size.node.shape_env.guards
    asked, placed = (
        sorted((t for g in guards if chosen(g) and (t := text(g.expr, symbols))), key=len)
        for chosen in (matters, places_a_slice)
    )
    names = sorted({s.name for e in symbols.values() for s in e.free_symbols})
    return independent([*divisibility(asked), *asked, *bounds, *placed], names)


def divisibility(asked: Sequence[str]) -> Iterator[str]:
    """`D % G == 0` where `D.view(D // G, G)` leaves two conditions that say the same together."""
    equations = (condition.split(" == ") for condition in asked if condition.count(" == ") == 1)
    for equation in equations:
        for product, groups in itertools.permutations(equation):
            cut = re.fullmatch(r"(\w+) // \(\1 // (\w+|\([\w *]+\))\)", product)
            if cut and cut[2].strip("()") == groups and f"{cut[1]} % ({cut[1]} // {cut[2]}) == 0" in asked:
                yield f"{cut[1]} % {cut[2]} == 0"


def texts_of(size: torch.SymInt, symbols: Mapping[sympy.Symbol, sympy.Expr]) -> list[str]:
    """All conditions of the trace of `size` that have a text, each once."""
    texts = (text(guard.expr, symbols) for guard in size.node.shape_env.guards)
    return list(dict.fromkeys(t for t in texts if t is not None))


def matters(guard: Any) -> bool:
    """Whether it may change a result: an equation, or the caller's own question; torch asks itself others."""
    if isinstance(guard.expr, sympy.Eq):
        return True
    asked = getattr(guard.sloc.framework_loc, "filename", None)
    return asked is not None and not asked.startswith(TORCH)


def places_a_slice(guard: Any) -> bool:
    """Whether torch asks it to see where a slice begins or ends."""
    return getattr(guard.sloc.framework_loc, "name", None) in PLACED


def least_asked_for(size: torch.SymInt, symbol: sympy.Symbol, least: int) -> int:
    """The least size of the symbol, out of a range from `least`, but for what torch asks of memory alone.

    That T - 1 is not 1, so that the strides of `x[:, 1:]` are what they seem, is no condition on results.
    """
    asked = [
        guard.expr
        for guard in size.node.shape_env.guards
        if guard.expr.free_symbols == {symbol}
        and isinstance(guard.expr, BOUNDS)
        and not is_about_memory(guard)
    ]
    while least > 2 and all(condition.subs(symbol, least - 1) for condition in asked):
        least -= 1
    return least


def is_about_memory(guard: Any) -> bool:
    """Whether torch asks it to compare strides: in its own files for that, or whether a size is not 1."""
    asked = getattr(guard.sloc.framework_loc, "filename", "")
    compared = guard.expr.has(sympy.Max, Max) or (isinstance(guard.expr, sympy.Gt) and guard.expr.rhs == 1)
    return asked.startswith(STRIDES) or (compared and not matters(guard))


def text(condition: Any, symbols: Mapping[sympy.Symbol, sympy.Expr]) -> str | None:
    """The condition over the dims; None where it is about something else."""
    if not condition.free_symbols <= symbols.keys():
        return None
    try:
        return relation_of(condition.subs(symbols))
    except UnknownFunction:
        return None


def told_from_one(answers: Sequence[Any], symbols: Mapping[sympy.Symbol, sympy.Expr]) -> list[str]:
    """The answers that hold at all traced sizes, and not where some are 1, as conditions over the dims."""
    names = sorted({s.name for e in symbols.values() for s in e.free_symbols})
    texts = [t for t in (text(answer, symbols) for answer in answers) if t is not None]
    always = [t for t in dict.fromkeys(texts) if not independent([t], names)]
    return independent(always, names, (1, *SIZES))


def independent(texts: Sequence[str], names: Sequence[str], tried: Sequence[int] = SIZES) -> list[str]:
    """The conditions that some sizes break which all conditions before them allow."""
    points = [dict(zip(names, sizes, strict=True)) for sizes in sampled(len(names), tried)]
    kept = []
    for condition in texts:
        code = compile(condition, "<guard>", "eval")
        allowed = [point for point in points if met(code, point)]
        if len(allowed) < len(points):
            kept.append(condition)
            points = allowed
    return kept


def met(condition: types.CodeType, point: dict[str, int]) -> bool:
    try:
        return bool(eval(condition, {"math": math}, point))
    except ArithmeticError:
        return False


def sampled(count: int, tried: Sequence[int] = SIZES) -> Iterator[tuple[int, ...]]:
    """Sizes for `count` dims: all combinations, or a part of them with each size of each dim."""
    step = max(len(tried) ** count // POINTS, 1)
    places = [len(tried) ** place for place in reversed(range(count))]
    for number in range(0, len(tried) ** count, step | 1):  # its digits, without those between
        yield tuple(tried[number // place % len(tried)] for place in places)
