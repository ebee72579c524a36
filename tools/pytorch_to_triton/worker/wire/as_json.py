"""Values as JSON and back, and as messages on a socket: each behind a key that only its two ends know.

Values are frozen dataclasses, tuples, sets, dicts, and what JSON has itself. Imported by both sides of the
border; the standard library only.
"""

import dataclasses
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, dataclass_transform, get_args, get_origin, get_type_hints


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class WireValue:
    """Its subclasses are frozen dataclasses, made with keyword arguments."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}
    """For values of the tools that hold one."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class NamedValue(WireValue):
    """One of several that may come: its JSON names its class."""


CLASS = "is"
"""The key of that name."""
KEY_BYTES = 16
_LENGTH = struct.Struct("!I")


class Garbled(Exception):
    """What came is no message from the other end."""


class Framing:
    """Packs the messages of one end of a socket, and unpacks those of the other.

    A kernel under validation runs in the job's process, where it may write to any descriptor. The key lies in
    no file and in no global: without it nothing that it writes is taken for a message.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._unread = bytearray()

    def pack(self, message: Any) -> bytes:
        """A message as it is sent. Raises ValueError for NaN and infinities."""
        text = encoded(message).encode()
        return self._key + _LENGTH.pack(len(text)) + text

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._unread += data

    def take(self) -> Any:
        """The next message that has come whole, None if there is none. Raises Garbled."""
        if not self._unread.startswith(self._key[: len(self._unread)]):
            raise Garbled
        start = KEY_BYTES + _LENGTH.size
        if len(self._unread) < start:
            return None
        (length,) = _LENGTH.unpack_from(self._unread, KEY_BYTES)
        text = bytes(self._unread[start : start + length])
        if len(text) < length:
            return None
        del self._unread[: start + length]
        return json.loads(text)


def encoded(value: Any) -> str:
    """A value as JSON. Raises ValueError for NaN and infinities."""
    return json.dumps(value, allow_nan=False, default=_plain)


def decoded(kind: Any, value: Any) -> Any:
    """The value of type `kind` that parsed JSON stands for.

    Of a union of dataclasses, the name of the class says which. Raises TypeError or KeyError for JSON of
    another shape.
    """
    return _decoder(kind)(value)


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, NamedValue):
        return {CLASS: type(value).__name__, **vars(value)}
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
    return lambda value: kind(**{name: parts[name](each) for name, each in value.items() if name != CLASS})


def _of_union(kinds: list[Any]) -> Callable[[Any], Any]:
    if len(kinds) == 1:
        only = _decoder(kinds[0])
        return lambda value: None if value is None else only(value)
    if not all(map(dataclasses.is_dataclass, kinds)):
        return lambda value: value
    parts = {each.__name__: _decoder(each) for each in kinds}
    return lambda value: parts[value[CLASS]](value)
