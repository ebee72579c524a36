"""What a tool works on: a kernel file, or a name in a Python file."""

from pathlib import Path
from typing import Literal

from pytorch_to_triton.schema.value import Value

Role = Literal["reference", "candidate"]
"""Which side of a target is meant: a kernel file holds both (`reference` and `run`), and so does a
file with `Model` and `ModelNew`."""


class Target(Value):
    """`path.py` (kernel file, or one with Model and get_inputs) or `path.py:name` (function or nn.Module)."""

    path: Path
    """Absolute path of the file."""
    name: str | None = None
    """A function or an nn.Module class in it; None for the whole file."""

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else str(self.path)
