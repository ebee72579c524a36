"""An attribute of a module or a class, replaced for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Inside, the attribute is `value`; afterwards it is as it was, inherited ones too."""
    before = vars(owner).get(name, ABSENT)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
