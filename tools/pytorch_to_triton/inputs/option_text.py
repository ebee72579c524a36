"""What the text of an `--input` spells, in the values of INPUTS."""

import re

from pytorch_to_triton.inputs.listed_values import plain_value
from pytorch_to_triton.inputs.packed_input import CALL, MOST_NESTED, marked
from pytorch_to_triton.inputs.text_span import TextSpan

_CLOSING = {"[": "]", "{": "}", "(": ")"}
_CALL = re.compile(r"[A-Za-z_]\w*\(")
_FORMS = {
    "[": "A list reads [2, 3] or [float32[M], int8[M]].",
    "{": "A dict reads {x: float32[M], mask: bool[M]}.",
    "(": "A tuple reads (float32[M], int8[M]), an object Batch(x=float32[M]).",
}


def value_of_option(span: TextSpan, *, within: int = 0) -> object:
    """None, a bool, a number, a list, dict, tuple or object of values, else the text itself.

    It lies `within` so many containers. Raises BadDeclaration, pointing at the character that cannot be read.
    """
    text = span.text
    call = _CALL.match(text)
    opening = call.end() - 1 if call else 0
    if text[opening : opening + 1] in _CLOSING and (call is None or "=" in text):
        if within == MOST_NESTED:
            raise span.refusal(f"this is nested more than {MOST_NESTED} deep.", _FORMS[text[opening]])
        inner = _inside(span, opening)
        match text[opening]:
            case "[":
                return [_item(part, within) for part in inner]
            case "{":
                return dict(_entry(part, ":", within) for part in inner)
        if call is None:
            return {CALL: [_item(part, within) for part in inner]}
        return {f"{text[:opening]}{CALL}": dict(_entry(part, "=", within) for part in inner)}
    return plain_value(text)


def option_of_value(value: object) -> str:
    """The text that spells a value of INPUTS; in containers text is quoted."""
    if mark := marked(value):
        of, held = mark
        fields = held.items() if isinstance(held, dict) else ()
        items = [f"{key}={_quoted(item)}" for key, item in fields] or [_quoted(item) for item in held]
        return f"{of}({', '.join(items)})"
    match value:
        case dict():
            return f"{{{', '.join(f'{_quoted(key)}: {_quoted(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(map(_quoted, value))}]"
    return str(value)


def _quoted(value: object) -> str:
    return repr(value) if isinstance(value, str) else option_of_value(value)


def _inside(span: TextSpan, opening: int) -> list[TextSpan]:
    """The parts between the bracket at `opening` and the one at the end."""
    bracket, text = span.text[opening], span.text
    if not text.endswith(_CLOSING[bracket]):
        raise span.refusal(f"'{_CLOSING[bracket]}' is missing.", _FORMS[bracket], at=len(text))
    inner = span.cut(opening + 1, len(text) - 1).stripped()
    parts = inner.split(",") if inner.text else []
    return parts[:-1] if len(parts) > 1 and not parts[-1].text else parts


def _entry(part: TextSpan, sign: str, within: int) -> tuple[str, object]:
    name, found, _ = part.text.partition(sign)
    if not found:
        raise part.refusal(f"'{sign}' is missing.", _FORMS["{" if sign == ":" else "("], at=len(part.text))
    return name.strip().strip("'\""), _item(part.cut(len(name) + 1).stripped(), within)


def _item(span: TextSpan, within: int) -> object:
    """What lies in a container, where text may be quoted as in Python."""
    text = span.text
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return value_of_option(span, within=within + 1)
