"""Sizes, and numbers computed from sizes, as Python text over the declared dims."""

import ast
import re
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

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
