"""What a finished conversion left in the user's folder."""

from pathlib import Path
from typing import Literal

from pytorch_to_triton.schema.value import Value


class FinishedFile(Value):
    """One file of the result."""

    path: Path
    lines: int
    there: Literal["new", "replaced", "would be new", "would be replaced"]


class TestRun(Value):
    """What the finished tests said when they were run."""

    __test__ = False
    passed: bool
    summary: str
    """pytest's own last line, or why it could not be run."""
    output: str = ""
    """The end of what was printed, where a test failed."""


class FinishedConversion(Value):
    """The kernels as a function that takes the place of PyTorch's."""

    summary: str
    next_step: str
    verdict: Literal["finished", "failed", "planned"]
    """failed: a finished test does not pass; planned: nothing was written."""
    session: Path
    files: tuple[FinishedFile, ...]
    tests: TestRun | None = None
    """None where nothing was written."""
    notes: tuple[str, ...] = ()
