"""Values in dicts, lists, tuples and objects, taken out of them under names of their own, and put back."""

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..wire.packing import ContainerKind, Packing, key_of, key_source, name_inside

SCALARS = (bool, int, float, str, type(None))
Taken = tuple[Packing, tuple[Any, ...]]
"""A container taken apart: how it holds its items, without names yet, and the items."""


class Args(tuple[Any, ...]):
    """What `*args` collects."""

    __slots__ = ()


class Kwargs(dict[str, Any]):
    """What `**kwargs` collects."""


def by_parameter(arguments: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what a Packing among them says made of the others; `types` make objects."""
    packings = {name: value for name, value in arguments.items() if isinstance(value, Packing)}
    inside = {name for packing in packings.values() for name in packing.names()}
    return {
        name: packed(packings[name], arguments, types) if name in packings else value
        for name, value in arguments.items()
        if name not in inside
    }


def packed(packing: Packing, values: Mapping[str, Any], types: Mapping[str, Any]) -> Any:
    """The container; an object whose class is not there is a NamedTuple of the same fields."""
    items = [values[i] if isinstance(i, str) else packed(i, values, types) for i in packing.items]
    match packing.kind:
        case "list":
            return items
        case "args":
            return Args(items)
        case "kwargs":
            return Kwargs(zip(packing.keys, items, strict=True))
        case "dict":
            return dict(zip(map(key_of, packing.keys), items, strict=True))
        case "fields":
            make = types.get(packing.type) or namedtuple(packing.type, packing.keys)
            return make(**dict(zip(packing.keys, items, strict=True)))
    return tuple(items)


def unpacked(
    given: Mapping[str, Any], types: Mapping[str, Any], variadic: Mapping[str, ContainerKind]
) -> dict[str, Any]:
    """Each argument by a name of its own, and a Packing right after what it holds.

    `types` are the classes whose objects are taken apart, `variadic` the parameters that collect.
    """
    flat: dict[str, Any] = {}

    def named(packing: Packing, name: str, index: int) -> str:
        within = "" if packing.kind == "kwargs" else name
        return name_inside(within, packing.words()[index], {*given, *flat})

    for name, value in given.items():
        packing = _taken_out(value, name, types, named, flat, variadic.get(name))
        if isinstance(packing, Packing):
            flat[name] = packing
    return flat


def unpacked_result(result: Any, types: Mapping[str, Any]) -> tuple[dict[str, Any], Packing | str]:
    """What a result holds by its path, `out[0]`, and how; `out` where it is one value."""
    flat: dict[str, Any] = {}
    packing = _taken_out(result, "out", types, lambda packing, path, i: packing.places(path)[i], flat)
    return flat, packing


def _taken_out(
    value: Any,
    name: str,
    types: Mapping[str, Any],
    named: Callable[[Packing, str, int], str],
    flat: dict[str, Any],
    kind: ContainerKind | None = None,
) -> Packing | str:
    """How the value holds others, now in `flat`; its name where it is one by itself, in there too.

    `named` gives the name of an item of a container that has a name.
    """
    taken = container(value, types, kind)
    if taken is None:
        flat[name] = value
        return name
    packing, held = taken
    items = (_taken_out(item, named(packing, name, i), types, named, flat) for i, item in enumerate(held))
    return dataclasses.replace(packing, items=tuple(items))


def container(value: Any, types: Mapping[str, Any], kind: ContainerKind | None = None) -> Taken | None:
    """The value as a container, of a `kind` where one is given; None for what stays whole.

    That is what is no container, and a list of constants, which is one itself.
    """
    fields = _fields(value)
    if fields is not None and types.get(type(value).__name__) is type(value):
        return _contained("fields", fields.values(), tuple(fields), type(value).__name__)
    if isinstance(value, Mapping):
        keys = tuple(value) if kind == "kwargs" else tuple(map(key_source, value))
        return _contained(kind or "dict", value.values(), keys)
    if not isinstance(value, list | tuple):
        return None
    if kind is None and all(isinstance(item, SCALARS) for item in value):
        return None
    return _contained(kind or ("list" if isinstance(value, list) else "tuple"), value, made_by=type_of(value))


def _contained(
    kind: ContainerKind, held: Iterable[Any], keys: tuple[str, ...] = (), made_by: str = ""
) -> Taken:
    items = tuple(held)
    return Packing(kind=kind, items=("",) * len(items), keys=keys, type=made_by), items


def type_of(value: list[Any] | tuple[Any, ...]) -> str:
    """The source of torch's own kind of tuple, such as what x.max(-1) returns; empty for Python's."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ == "torch.return_types" else ""


def _fields(value: Any) -> dict[str, Any] | None:
    """Of a NamedTuple or a dataclass; None of anything else."""
    if hasattr(type(value), "_fields") and isinstance(value, tuple):
        return dict(zip(type(value)._fields, value, strict=True))  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return None
