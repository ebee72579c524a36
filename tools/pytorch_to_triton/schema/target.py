"""What a tool works on: a kernel file, or a name in a Python file."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker import wire

Role = Literal["reference", "candidate"]
"""Which side of a target is meant: a kernel file holds both (`reference` and `run`), and so does a
file with `Model` and `ModelNew`."""


class Target(Value):
    """`path.py` (kernel file, or one with Model and get_inputs) or `path.py:name` (function or nn.Module)."""

    path: Path
    """Absolute path of the file."""
    name: str | None = None
    """A function or an nn.Module class in it; None for the whole file."""
    init: tuple[str, ...] = ()
    """What a module class is constructed with, as `name=value`; empty: what get_init_inputs() says."""

    def as_json(self) -> wire.Target:
        """As the worker's jobs take it."""
        return {"path": str(self.path), "name": self.name, "init": list(self.init)}

    def constructed_with(self, init: Sequence[str]) -> "Target":
        """The same target with these arguments of its class. Raises BadInput for what is not `name=value`."""
        for text in init:
            name, equals, _ = text.partition("=")
            if not (equals and name.strip().isidentifier()):
                raise BadInput(f"{text!r} is no argument of a class.", "Write --init dim=512.")
        return self.model_copy(update={"init": tuple(init)})

    @property
    def construction(self) -> str:
        """The arguments of `init` as source, e.g. `dim=512, bias=True`."""
        pairs = (text.partition("=") for text in self.init)
        return ", ".join(f"{name.strip()}={_literal(value.strip())!r}" for name, _, value in pairs)

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else str(self.path)


def _literal(text: str) -> object:
    """A Python literal; anything else is text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
