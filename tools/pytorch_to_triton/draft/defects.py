"""What goes wrong in drafting itself: the operators that it concerns stay calls of PyTorch, and are named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.schema.graph import Node


class DraftingDefect(Exception):
    """The kernel of some operators cannot be drafted, by a fault of this project's own."""

    def __init__(self, left: Mapping[str, str]) -> None:
        super().__init__("; ".join(dict.fromkeys(left.values())))
        self.left = left
        """The nodes that are left to PyTorch, each with the reason."""


def reason_of(error: Exception) -> str:
    """The end of a sentence: what a report of the defect needs."""
    text = str(error).strip().split("\n")[0][:200]
    kind = type(error).__name__
    return f"a defect of pytorch-to-triton, please report it ({kind}{f': {text}' if text else ''})"


@contextmanager
def concerning(nodes: Iterable[Node]) -> Iterator[None]:
    """Raises DraftingDefect, which names the nodes, for any exception inside that is no refusal."""
    try:
        yield
    except (Refusal, DraftingDefect):
        raise
    except Exception as error:
        raise DraftingDefect(dict.fromkeys([node.name for node in nodes], reason_of(error))) from error
