"""Float arguments told apart from literals, by the nodes of two traces with different values."""

from collections.abc import Mapping
from typing import Any


class DependsOnScalar(Exception):
    """A float argument affects the computation in a way that traces cannot tell from a constant."""


def paired(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The nodes of two traces side by side."""
    if [n["op"] for n in first] != [n["op"] for n in second]:
        raise DependsOnScalar("another value of a float argument gives other operators")
    return list(zip(first, second, strict=True))


def bind_scalars(first: Any, second: Any, constants: Mapping[str, Any], replaced: Mapping[str, float]) -> Any:
    """`first` with every literal that follows a float argument replaced by a reference to it."""
    if isinstance(first, dict) and first.get("form") == "literal":
        if first == second:
            return first
        for name, value in replaced.items():
            if second["value"] == value and first["value"] == constants[name]:
                return {"form": "scalar", "name": name}
        raise DependsOnScalar(
            f"{first['value']!r} is computed from a float argument before it meets a tensor"
        )
    if isinstance(first, dict) and first.get("form") == "size" and first != second:
        raise DependsOnScalar(f"{first['expression']} is computed from a float argument and sizes")
    if isinstance(first, dict):
        return {key: bind_scalars(first[key], second[key], constants, replaced) for key in first}
    if isinstance(first, list):
        return [bind_scalars(a, b, constants, replaced) for a, b in zip(first, second, strict=True)]
    return first
