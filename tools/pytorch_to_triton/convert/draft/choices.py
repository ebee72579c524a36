"""How `run` chooses a number by a dtype."""

from __future__ import annotations

from collections.abc import Mapping

from pytorch_to_triton.graph.dtypes import Rule
from pytorch_to_triton.schema.case import DType
from pytorch_to_triton.schema.graph import Choice

FINFO: Mapping[str, Mapping[DType, float]] = {
    "eps": {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10},
    "max": {"float32": 3.4028234663852886e38, "bfloat16": 3.3895313892515355e38, "float16": 65504.0},
    "min": {"float32": -3.4028234663852886e38, "bfloat16": -3.3895313892515355e38, "float16": -65504.0},
    "tiny": {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float16": 2.0**-14},
}
"""What torch.finfo says."""


def choice_source(choice: Choice) -> str:
    """The number as source: by torch.finfo where that is meant, else out of a table."""
    dtype = str(Rule(choice.tensors))
    for name, known in FINFO.items():
        if all(known.get(d) == value for d, value in choice.values.items()):
            return f"torch.finfo({dtype}).{name}"
    entries = ", ".join(f"torch.{d}: {value!r}" for d, value in choice.values.items())
    return f"{{{entries}}}[{dtype}]"
