"""What a rule's check yields."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault: where, what is wrong and what comes of it, and what to write instead."""

    at: ast.stmt | ast.expr | ast.alias | ast.keyword
    message: str
    instead: str
