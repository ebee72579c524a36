"""What a rule's check yields."""

import ast
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.schema.finding import Severity

Node = ast.stmt | ast.expr | ast.alias | ast.keyword | ast.arg


@dataclass(frozen=True)
class SourceLine:
    """A place that is known by its line, as compilers and interpreters report it."""

    lineno: int
    """From 1."""
    file: Path | None = None
    """None: the file of the evidence."""
    col_offset: int = 0
    own: bool = True
    """The line itself is at fault; else it only begins the function that is."""


@dataclass(frozen=True)
class Fault:
    """One fault: where, what is wrong, what follows from it, and how to fix it."""

    at: Node | SourceLine
    message: str
    """What is wrong here and why it matters, in a sentence or two, with names and figures of this kernel."""
    suggestion: str
    """What to do about it, in a sentence."""
    fix: str = ""
    """Code that can stand in place of the faulty expression or line, where it can be written."""
    pointer: str = ""
    """The pointer that it is about, as the kernel names it."""
    proof: str = ""
    """What was seen, with its figures: the access width, the offset, the shape that failed. Compiled and
    measured evidence always has one."""
    severity: Severity | None = None
    """Where this one weighs more or less than the rule says; None: as the rule says."""
    certain: bool = False
    """No run is needed to confirm it, though its rule suspects others."""
