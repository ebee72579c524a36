"""A kernel file in its parts, as it is drafted and as a finished file takes it over."""

from collections.abc import Iterable
from dataclasses import dataclass

from pytorch_to_triton.draft.file.imports import import_block

DEFINING = ("def ", "class ", "@")


@dataclass(frozen=True)
class KernelText:
    """What stands in a kernel file, from top to bottom."""

    first: str
    """The docstring's first line."""
    shapes: str
    """The docstring without its first line."""
    imports: Iterable[str]
    body: str
    """All behind the imports."""
    limits: tuple[str, ...] = ()
    """Conditions on sizes without which `run` refuses a call: of a file that somebody wrote, its REQUIRES."""

    @property
    def text(self) -> str:
        """The whole file."""
        head = f'"""{self.first}\n\n{self.shapes}\n"""\n\n{import_block(self.imports)}'
        between = "\n\n\n" if self.body.startswith(DEFINING) else "\n\n"
        return f"{head}{between}{self.body}\n"
