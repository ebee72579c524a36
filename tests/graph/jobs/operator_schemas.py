"""What torch's own schemas say of operators: each argument, and its default."""

from typing import Any

import torch

NONE = "no default"


def work(report: Any, operators: list[str]) -> dict[str, Any]:
    """`aten.add.Tensor` -> [[name, default], ...], the default as text; NONE where there is none."""
    return {name: [described(a) for a in schema_of(name).arguments] for name in operators}


def schema_of(name: str) -> Any:
    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)._schema


def described(argument: Any) -> list[str]:
    if not argument.has_default_value():
        return [argument.name, NONE]
    value = argument.default_value
    if argument.name == "memory_format" and value is not None:
        value = "contiguous_format"
    return [argument.name, repr(float(value)) if isinstance(value, int | float) else str(value)]
