"""Values that keep their hash, and what they were found equal to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

V = TypeVar("V")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[V]) -> type[V]:
    """A frozen dataclass whose shared operands are not hashed and compared again with each level."""
    cls = dataclass(frozen=True)(cls)
    structural, equal = cls.__hash__, cls.__eq__

    def kept(self: Any) -> int:
        if "_hash" not in self.__dict__:
            object.__setattr__(self, "_hash", structural(self))
        found: int = self.__dict__["_hash"]
        return found

    def same(self: Any, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or kept(self) != kept(other):
            return False
        first, second = first_equal(self), first_equal(other)
        if first is second:
            return True
        if found := bool(equal(self, other)):
            object.__setattr__(second, "_equal", first)
        return found

    cls.__hash__ = kept  # type: ignore[method-assign]
    cls.__eq__ = same  # type: ignore[method-assign]
    return cls


def first_equal(v: Any) -> Any:
    """What stands for all values that this one was found equal to."""
    while "_equal" in v.__dict__:
        v = v.__dict__["_equal"]
    return v
