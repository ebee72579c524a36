"""Values as JSON and back: frozen dataclasses, tuples, sets, dicts, and what JSON has itself."""

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def encoded(value: Any) -> str:
    """A value as JSON. Raises ValueError for NaN and infinities."""
    return json.dumps(value, allow_nan=False, default=_plain)


def decoded(kind: Any, value: Any) -> Any:
    """The value of type `kind` that parsed JSON stands for.

    Of a union of dataclasses, the default of the first field says which. Raises TypeError or KeyError for
    JSON of another shape.
    """
    return _decoder(kind)(value)


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if dataclasses.is_dataclass(value):
        return vars(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _of_dataclass(kind)
    if origin in (Union, UnionType):
        return _of_union([each for each in arguments if each is not NoneType])
    if origin in (tuple, frozenset, list):
        part = _decoder(arguments[0])
        return lambda value: origin(map(part, value))
    if origin is dict:
        part = _decoder(arguments[1])
        return lambda value: {key: part(each) for key, each in value.items()}
    return lambda value: value


def _of_dataclass(kind: Any) -> Callable[[Any], Any]:
    parts = {name: _decoder(hint) for name, hint in get_type_hints(kind).items()}
    return lambda value: kind(**{name: parts[name](each) for name, each in value.items()})


def _of_union(kinds: list[Any]) -> Callable[[Any], Any]:
    if len(kinds) == 1:
        only = _decoder(kinds[0])
        return lambda value: None if value is None else only(value)
    if not all(map(dataclasses.is_dataclass, kinds)):
        return lambda value: value
    tag = dataclasses.fields(kinds[0])[0].name
    parts = {dataclasses.fields(each)[0].default: _decoder(each) for each in kinds}
    return lambda value: parts[value[tag]](value)
