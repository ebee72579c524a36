"""How `run` chooses by dtypes: a number, or what to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytorch_to_triton.graph.dtype_rules import DtypeRule
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import DtypeChoice

Lines = tuple[str, ...]
"""One statement of `run`."""

FINFO: Mapping[str, Mapping[DType, float]] = {
    "eps": {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10},
    "max": {"float32": 3.4028234663852886e38, "bfloat16": 3.3895313892515355e38, "float16": 65504.0},
    "min": {"float32": -3.4028234663852886e38, "bfloat16": -3.3895313892515355e38, "float16": -65504.0},
    "tiny": {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float16": 2.0**-14},
}
"""What torch.finfo says."""


def choice_source(choice: DtypeChoice) -> str:
    """The number as source: by torch.finfo where that is meant, else out of a table."""
    dtype = str(DtypeRule(choice.tensors))
    for name, known in FINFO.items():
        if all(known.get(d) == value for d, value in choice.values.items()):
            return f"torch.finfo({dtype}).{name}"
    entries = ", ".join(f"torch.{d}: {value!r}" for d, value in choice.values.items())
    return f"{{{entries}}}[{dtype}]"


def decided(conditions: Sequence[str], parts: Sequence[Sequence[Lines]]) -> list[str]:
    """The first part whose condition holds, else the last; what all begin or end with stands outside."""
    before = next((i for i, same in enumerate(zip(*parts, strict=False)) if len(set(same)) > 1), None)
    if before is None:
        return [line for lines in parts[-1] for line in lines]
    backwards = zip(*(reversed(part[before:]) for part in parts), strict=False)
    after = next((i for i, same in enumerate(backwards) if len(set(same)) > 1), min(map(len, parts)) - before)
    inside = [[line for lines in part[before : len(part) - after] for line in lines] for part in parts]
    text = [line for lines in parts[-1][:before] for line in lines]
    for number, (condition, lines) in enumerate(zip(conditions, inside, strict=False)):
        text += [f"{'elif' if after and number else 'if'} {condition}:", *(f"    {line}" for line in lines)]
    text += ["else:", *(f"    {line}" for line in inside[-1])] if after else inside[-1]
    return text + [line for lines in parts[-1][len(parts[-1]) - after :] for line in lines]
