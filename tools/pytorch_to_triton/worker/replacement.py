"""Attributes of modules and classes, replaced for a while."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Inside, the attribute is `value`; afterwards it is as it was, inherited ones too."""
    with all_replaced([(owner, name, value)]):
        yield


@contextmanager
def all_replaced(replacements: Iterable[tuple[Any, str, object]]) -> Iterator[None]:
    """The same of each owner, name and value, one after the other."""
    before: list[tuple[Any, str, object]] = []
    try:
        for owner, name, value in replacements:
            before.append((owner, name, vars(owner).get(name, ABSENT)))
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            if value is ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
