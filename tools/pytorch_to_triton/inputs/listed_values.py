"""Values that a constant is declared with, `30.0|0.0` or `silu|gelu|None`: read, written, and tested for."""

import re
from collections.abc import Sequence
from itertools import pairwise

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.schema.dtype import TORCH_DTYPES, Scalar, source_of

_WORDS = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}
_BARS = re.compile(r"""'[^']*'|"[^"]*"|(\|)""")
_FORM = "Values read 30.0|0.0 or silu|gelu|None; put quotes inside the string to pass it as one text."
_KINDS = (
    "The values of a parameter are all numbers, all text, or True and False, each with None or without it. "
    "Declare those of one kind, and convert once more for the others."
)
_LARGEST_SIZE = 10**18


def plain_value(text: str) -> Scalar:
    """None, a bool or a number where the text spells one, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def is_quoted(text: str) -> bool:
    """Whether quotes stand around it."""
    return len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""


def parts_listed(span: TextSpan) -> list[TextSpan]:
    """What stands between bars outside of quotes; nothing where there is no bar."""
    bars = [found.start() for found in _BARS.finditer(span.text) if found[1]]
    ends = [-1, *bars, len(span.text)]
    return [span.cut(start + 1, end).stripped() for start, end in pairwise(ends)] if bars else []


def values_listed(span: TextSpan) -> tuple[Scalar, ...]:
    """The values that a text lists; none where it lists nothing.

    Raises BadDeclaration where one is missing or is there twice, and for values of several kinds.
    """
    parts = parts_listed(span)
    values: list[Scalar] = []
    for part in parts:
        value = part.text[1:-1] if is_quoted(part.text) else plain_value(part.text)
        if not part.text:
            raise part.refusal("a value is missing here.", _FORM)
        if kind_of(value) not in {None, *map(kind_of, values)} and any(map(kind_of, values)):
            raise part.refusal(f"{value!r} is of another kind than the values before it.", _KINDS)
        if value in values:
            raise part.refusal(f"{value!r} is listed twice.", "List each value once.")
        values.append(value)
    return tuple(values)


def kind_of(value: Scalar) -> str | None:
    """What it must have in common with the other values; None of None, which stands beside any."""
    match value:
        case None:
            return None
        case bool():
            return "bool"
        case str():
            return "text"
    return "number"


def are_sizes(values: Sequence[Scalar]) -> bool:
    """Whether all of them can be sizes: whole numbers from 1 on. With 0, which switches things off, they are
    values."""
    return all(type(value) is int and 0 < value < _LARGEST_SIZE for value in values)


def as_text(label: str, values: Sequence[Scalar]) -> str:
    """The text that lists the values. Raises BadDeclaration for text that has quotes of both kinds."""
    return "|".join(_quoted(label, value) for value in values)


def _quoted(label: str, text: Scalar) -> str:
    if not isinstance(text, str) or text in TORCH_DTYPES:
        return source_of(text)
    quote = '"' if "'" in text else "'"
    if quote in text:
        problem = f"{label}: a text with both kinds of quotes cannot be listed."
        raise BadDeclaration(problem, text, 0, "Declare it as the one value.")
    return f"{quote}{text}{quote}"


def is_one_of(name: str, values: Sequence[Scalar]) -> str:
    """The condition that a variable has one of these values, as source."""
    return _joined(name, values, "is", "==", "in", " or ")


def is_none_of(name: str, values: Sequence[Scalar]) -> str:
    """The condition that it has none of them."""
    return _joined(name, values, "is not", "!=", "not in", " and ")


def _joined(name: str, values: Sequence[Scalar], same: str, equal: str, among: str, joint: str) -> str:
    """None, True and False by identity: 1 and 0.0 are equal to two of them."""
    unique = [f"{name} {same} {value}" for value in values if value is None or isinstance(value, bool)]
    others = [value for value in values if value is not None and not isinstance(value, bool)]
    if len(others) > 1:
        unique.append(f"{name} {among} ({', '.join(map(_source, others))})")
    elif others:
        unique.append(f"{name} {equal} {_source(others[0])}")
    return joint.join(unique)


def _source(value: Scalar) -> str:
    """As a formatter writes it."""
    if not isinstance(value, str) or value in TORCH_DTYPES:
        return source_of(value)
    plain = value.isprintable() and not set(value) & {'"', "\\"}
    return f'"{value}"' if plain else repr(value)


def phrase(values: Sequence[object]) -> str:
    """`30.0`, `30.0 or 0.0`, `'silu', 'gelu' or None`."""
    *before, last = map(source_of, values)
    return f"{', '.join(before)} or {last}" if before else last
