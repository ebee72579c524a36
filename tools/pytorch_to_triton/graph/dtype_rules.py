"""What of a program follows the dtypes of its inputs: its traces in several combinations, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from math import prod

from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import Graph

Dtypes = Mapping[str, DType]
"""A dtype for each tensor."""

FLOATS: tuple[DType, ...] = ("float64", "float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn")
"""Widest first."""
SIGNED: tuple[DType, ...] = ("int64", "int32", "int16", "int8")
"""Widest first."""
FINFO: Mapping[str, Mapping[str, float]] = {
    "eps": {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10},
    "max": {
        "float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38,
        "bfloat16": 3.3895313892515355e38, "float16": 65504.0,
    },
    "min": {"float32": -3.4028234663852886e38, "bfloat16": -3.3895313892515355e38, "float16": -65504.0},
    "tiny": {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float16": 2.0**-14},
}  # fmt: skip
"""What torch.finfo says."""
MOST_TRACED = 9
"""So many combinations are all traced; of more, those with one tensor apart from the others."""
NAMED = 6
"""Promotions of any subset are tried for so many inputs; beyond, those of two, three and all."""


def dtype_combinations(declared: Mapping[str, tuple[DType, ...]]) -> tuple[dict[str, DType], ...]:
    """The combinations of declared dtypes to trace, the widest first.

    Where all would be too many: every dtype in all tensors at once, in those declared alike, in one
    tensor among wide ones, and the widest in one among narrow ones, which shows which tensors an output's
    dtype is promoted from.
    """
    ordered = {name: sorted(dtypes, key=_width) for name, dtypes in declared.items()}
    if prod(map(len, ordered.values())) <= MOST_TRACED:
        return tuple(dict(zip(ordered, point, strict=True)) for point in product(*ordered.values()))
    widest = {name: dtypes[0] for name, dtypes in ordered.items()}
    narrowest = {name: dtypes[-1] for name, dtypes in ordered.items()}
    sets = [
        set(ordered),
        *({n for n in declared if declared[n] == c} for c in dict.fromkeys(declared.values())),
    ]
    sets += [{name} for name in declared]
    combinations = [
        {name: dtype if name in changed and dtype in declared[name] else widest[name] for name in declared}
        for changed in sets
        for dtype in dict.fromkeys(d for name in declared if name in changed for d in ordered[name])
    ]
    combinations += [{**narrowest, name: widest[name]} for name in declared]
    return tuple(dict(items) for items in dict.fromkeys(tuple(f.items()) for f in [widest, *combinations]))


def _width(dtype: DType) -> int:
    return FLOATS.index(dtype) if dtype in FLOATS else len(FLOATS)


def promoted_dtype(first: DType, second: DType) -> DType:
    """What torch.promote_types gives; no float8 meets another dtype there."""
    pair = {first, second}
    floats = [d for d in FLOATS if d in pair]
    signed = [d for d in SIGNED if d in pair]
    if pair == {"float16", "bfloat16"}:
        return "float32"
    if pair == {"uint8", "int8"}:
        return "int16"
    return [*floats, *signed, *(d for d in ("uint8", "bool") if d in pair)][0]


@dataclass(frozen=True)
class DtypeRule:
    """A dtype that `run` computes: that of a tensor, or what the dtypes of several promote to."""

    names: tuple[str, ...]

    def of(self, dtypes: Dtypes) -> DType:
        """The dtype in one combination."""
        return reduce(promoted_dtype, (dtypes[name] for name in self.names))

    def __str__(self) -> str:
        return self.written("{}.dtype")

    def written(self, dtype: str) -> str:
        """The rule as source; `dtype` is how a tensor's own is written, e.g. `{}.dtype`."""
        first, *others = (dtype.format(name) for name in self.names)
        return reduce(lambda text, other: f"torch.promote_types({text}, {other})", others, first)


def rules(names: Sequence[str]) -> Iterator[DtypeRule]:
    """The simplest first."""
    counts = range(1, len(names) + 1) if len(names) <= NAMED else (1, 2, 3, len(names))
    for count in counts:
        yield from map(DtypeRule, combinations(names, count))


def dtype_source(results: Sequence[DType], inputs: Sequence[Dtypes], written: str = "{}.dtype") -> str | None:
    """The dtype of each result as source, from the dtypes of its inputs; None where no rule explains it.

    `written` is how the source has a tensor's own dtype.
    """
    explaining = (
        r
        for r in rules(distinguishable_tensors(inputs))
        if all(r.of(g) == f for f, g in zip(results, inputs, strict=True))
    )
    rule = next(explaining, None)
    if len(set(results)) == 1 and not (rule and len(rule.names) == 1):
        return f"torch.{results[0]}"
    return rule.written(written) if rule else None


def distinguishable_tensors(inputs: Sequence[Dtypes]) -> list[str]:
    """The first of the tensors that have the same dtype in every combination: the others say no more."""
    first_names: dict[tuple[DType, ...], str] = {}
    for name in inputs[0]:
        first_names.setdefault(tuple(dtypes[name] for dtypes in inputs), name)
    return list(first_names.values())


def deciding_dtype(parts: Sequence[Sequence[Dtypes]]) -> tuple[DtypeRule, list[tuple[DType, ...]]] | None:
    """The dtype that decides in which part a combination lies, with its values in each; None if none does."""
    for rule in rules(list(parts[0][0])):
        values = [tuple(dict.fromkeys(rule.of(dtypes) for dtypes in part)) for part in parts]
        if len({dtype for part in values for dtype in part}) == sum(map(len, values)):
            return rule, values
    return None


def tensors_of_one_dtype(inputs: Sequence[Dtypes]) -> tuple[tuple[str, ...], ...]:
    """Tensors of several dtypes that have the same one in every combination, together."""
    groups: dict[tuple[DType, ...], list[str]] = {}
    for name in inputs[0]:
        groups.setdefault(tuple(dtypes[name] for dtypes in inputs), []).append(name)
    return tuple(tuple(names) for key, names in groups.items() if len(names) > 1 and len(set(key)) > 1)


def input_dtypes(graph: Graph) -> dict[str, DType]:
    """The dtypes that a graph was traced with, a module's state included; gradients follow from them."""
    cotangents = graph.joint.cotangents if graph.joint else {}
    return {i.name: i.dtype for i in graph.inputs if i.name not in cotangents}


def all_dtypes(graph: Graph) -> dict[str, DType]:
    """The dtype of every tensor of a graph."""
    return {i.name: i.dtype for i in graph.inputs} | {n.name: n.dtype for n in graph.nodes if n.dtype}


def phrase(dtypes: Dtypes, declared: Mapping[str, tuple[DType, ...]]) -> str:
    """`float16`, or `float32 x and float16 w` where tensors of several dtypes differ."""
    open_ones = [name for name, dtypes in declared.items() if len(dtypes) > 1] or list(declared)
    if len({dtypes[name] for name in open_ones}) == 1:
        return dtypes[open_ones[0]]
    return " and ".join(f"{dtypes[name]} {name}" for name in open_ones)
