"""Declared inputs of which some are packed in dicts, lists, tuples and objects, and back.

Packed is {"x": "float32[M]", ...}, ["float32[M]", ...], and with one key that says what JSON has no word for:
{"()": [...]}, a tuple; {"Batch()": {...}}, an object with these fields; {"*()": [...]} and {"**()": {...}},
what `*args` and `**kwargs` collect, which may have names of its own in both.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytorch_to_triton.inputs.input_spec import (
    ConstantSpec,
    InputSpec,
    PackedSpec,
    is_size,
    is_tensor,
    parse_input,
)
from pytorch_to_triton.worker.wire.packing import ContainerKind, Packing, key_of, key_source, name_inside

KINDS: dict[str, ContainerKind] = {"": "tuple", "*": "args", "**": "kwargs"}
_SCALARS = (bool, int, float, str, type(None))
MOST_NESTED = 16
"""Containers within each other."""
CALL = "()"
"""Ends the key that says what a container is."""


def marked(value: object) -> tuple[str, Any] | None:
    """What the one key of a dict says that its value is, `Batch`, and that; None for any other value."""
    if isinstance(value, dict) and len(value) == 1 and str(next(iter(value))).endswith(CALL):
        ((mark, held),) = value.items()
        return str(mark).removesuffix(CALL), held
    return None


def parse_inputs(inputs: Mapping[str, object], known: Collection[str]) -> dict[str, InputSpec]:
    """Each tensor and constant by a name of its own, and what is packed right after what it holds.

    `known` are the dimensions. Raises BadDeclaration, pointing at the character that cannot be read.
    """
    specs: dict[str, InputSpec] = {}
    for name, value in inputs.items():
        parser = _Parser(known, {*inputs, *specs}, {})
        packing = parser.parse(name, name, value)
        specs |= parser.specs
        if isinstance(packing, Packing):
            specs[name] = PackedSpec(packing=packing)
    return specs


def written(specs: Mapping[str, InputSpec]) -> dict[str, object]:
    """The inputs as they are declared: tensors as text, constants as they are, packed ones as above."""
    return nested({n: s.packing if isinstance(s, PackedSpec) else _plain(s) for n, s in specs.items()})


def nested(inputs: Mapping[str, object]) -> dict[str, object]:
    """The declarations of inputs, each Packing among them in place of what it holds."""
    packings = [packing for packing in inputs.values() if isinstance(packing, Packing)]
    inside = {name for packing in packings for name in packing.names()}
    return {
        name: written_packing(value, inputs) if isinstance(value, Packing) else value
        for name, value in inputs.items()
        if name not in inside
    }


def written_packing(packing: Packing, values: Mapping[str, object]) -> object:
    """One container as it is declared; `values` are declarations of what it holds."""
    items = [values[i] if isinstance(i, str) else written_packing(i, values) for i in packing.items]
    keys = map(key_of, packing.keys) if packing.kind == "dict" else packing.keys
    match packing.kind:
        case "dict" | "kwargs":
            return dict(zip(keys, items, strict=True))
        case "fields":
            return {f"{packing.type}{CALL}": dict(zip(keys, items, strict=True))}
        case "tuple":
            return {CALL: items}
    return items


def _plain(spec: InputSpec) -> object:
    if isinstance(spec, ConstantSpec):
        value = list(spec.value) if isinstance(spec.value, tuple) else spec.value
        return str(spec) if spec.others else value
    return str(spec)


@dataclass(frozen=True)
class _Parser:
    known: Collection[str]
    taken: set[str]
    specs: dict[str, InputSpec]
    """What one parameter holds, by name."""

    def parse(self, name: str, place: str, value: object) -> Packing | str:
        """The value at this place; its name where it is a tensor or a constant."""
        if mark := marked(value):
            return self.packed(KINDS.get(mark[0], "fields"), name, place, mark[1], of=mark[0])
        match value:
            case {}:
                return self.packed("dict", name, place, value)
            case tuple() if not self.is_constant(value):
                return self.packed("tuple", name, place, value)
            case list() if not self.is_constant(value):
                return self.packed("list", name, place, value)
        self.taken.add(name)
        self.specs[name] = parse_input(place, value, self.known)
        return name

    def is_constant(self, values: list[object] | tuple[object, ...]) -> bool:
        """Whether they are one constant, a list of numbers or text."""
        text = [value for value in values if isinstance(value, str)]
        named = any(is_tensor(value) or is_size(value, self.known) for value in text)
        return not named and all(isinstance(value, _SCALARS) for value in values)

    def packed(self, kind: ContainerKind, name: str, place: str, held: object, *, of: str = "") -> Packing:
        """A container; what `*args` collects may have names, as what `**kwargs` does."""
        is_named = isinstance(held, Mapping)
        entries = dict(held) if isinstance(held, Mapping) else dict(enumerate(_listed(held)))
        keys = tuple(key_source(k) if kind == "dict" else str(k) for k in entries)
        empty = Packing(kind=kind, items=("",) * len(keys), keys=keys if is_named and kind != "args" else ())
        inside = "" if is_named and kind in ("args", "kwargs") else name
        items = tuple(
            self.parse(name_inside(inside, key, self.taken), at, item)
            for (key, item), at in zip(entries.items(), empty.places(place), strict=True)
        )
        return replace(empty, items=items, type=of if kind == "fields" else "")


def _listed(held: object) -> Sequence[object]:
    assert isinstance(held, list | tuple)
    return held
