"""How tensors and constants are packed into a parameter or a result: in a dict, list, tuple or object.

Each has a name of its own, `batch_x` for `batch["x"]`, by which all but the target and its `run` know it.
"""

import ast
import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from .as_json import WireValue

ContainerKind = Literal["list", "tuple", "dict", "fields", "args", "kwargs"]
"""fields: an object that is made of and has the keys, such as a NamedTuple or a dataclass. args, kwargs:
what `*args` and `**kwargs` collect."""


class Packing(WireValue):
    """A container of named values."""

    kind: ContainerKind
    items: tuple["Packing | str", ...]
    """The names of values, or containers in their turn."""
    keys: tuple[str, ...] = ()
    """Of a dict, as source, and of fields, kwargs."""
    type: str = ""
    """What makes fields, or a tuple that is none of Python's own, as source."""

    def names(self) -> tuple[str, ...]:
        """Of all values inside, in their order."""
        return tuple(n for i in self.items for n in ((i,) if isinstance(i, str) else i.names()))

    def sources(self, packed: str) -> dict[str, str]:
        """Where each value lies in the container that is called `packed`: `batch["x"]`, `pair.low`."""
        found: dict[str, str] = {}
        for place, item in zip(self.places(packed), self.items, strict=True):
            found |= {item: place} if isinstance(item, str) else item.sources(place)
        return found

    def containers(self, packed: str) -> Iterator[tuple[str, "Packing"]]:
        """Itself and all containers inside, each with its place."""
        yield packed, self
        for place, item in zip(self.places(packed), self.items, strict=True):
            if not isinstance(item, str):
                yield from item.containers(place)

    def made_of(self, values: Mapping[str, str]) -> str:
        """The source that makes the container out of the sources of its values, by default their names."""
        items = [values.get(i, i) if isinstance(i, str) else i.made_of(values) for i in self.items]
        match self.kind:
            case "fields":
                pairs = zip(self.keys, items, strict=True)
                return f"{self.type}({', '.join(f'{key}={item}' for key, item in pairs)})"
            case "dict" | "kwargs":
                pairs = zip(self.quoted(), items, strict=True)
                return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
            case "list":
                return f"[{', '.join(items)}]"
        text = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        return f"{self.type}({text})" if self.type else text

    def renamed(self, names: Mapping[str, str]) -> "Packing":
        """The same with other names."""
        items = (names.get(i, i) if isinstance(i, str) else i.renamed(names) for i in self.items)
        return dataclasses.replace(self, items=tuple(items))

    def words(self) -> list[str]:
        """What each item is called inside of it: its key, its place."""
        keys = map(str, map(key_of, self.keys)) if self.kind == "dict" else self.keys
        return list(keys) if self.keys else list(map(str, range(len(self.items))))

    def as_json(self) -> dict[str, Any]:
        """Plain data, which `packing_of` reads."""
        plain: dict[str, Any] = dataclasses.asdict(self)
        return plain

    def places(self, packed: str) -> list[str]:
        """Where each item lies in the container that is called `packed`."""
        if self.kind == "fields":
            return [f"{packed}.{key}" for key in self.keys]
        keys = self.quoted() if self.keys else map(str, range(len(self.items)))
        return [f"{packed}[{key}]" for key in keys]

    def quoted(self) -> list[str]:
        """The keys of a dict, as source."""
        return [f'"{key}"' for key in self.keys] if self.kind == "kwargs" else list(self.keys)


def packing_of(value: Any) -> Packing:
    """What `Packing.as_json` gave."""
    items = tuple(item if isinstance(item, str) else packing_of(item) for item in value["items"])
    return Packing(kind=value["kind"], items=items, keys=tuple(value["keys"]), type=value["type"])


def key_source(key: str | int) -> str:
    """A dict's key as source."""
    return (
        f'"{key}"' if isinstance(key, str) and key.isprintable() and not set(key) & {'"', "\\"} else repr(key)
    )


def key_of(source: str) -> Any:
    """The key that is written so."""
    return ast.literal_eval(source)


def name_inside(packed: str, key: str | int, taken: Collection[str]) -> str:
    """A name for what lies at `key`: `batch_x`; what `**kwargs` collects, packed as "", keeps its own."""
    name = re.sub(r"\W", "_", f"{packed}_{key}" if packed else str(key))
    while name in taken:
        name += "_"
    return name
