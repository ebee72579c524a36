"""The base of every value that crosses the border, as `schema/value.py` has one of pydantic."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class WireValue:
    """Its subclasses are frozen dataclasses, made with keyword arguments."""

    __pydantic_config__: ClassVar[Any] = {"use_attribute_docstrings": True, "extra": "forbid"}
    """For values of the tools that hold one."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
