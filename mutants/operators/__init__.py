"""The mistakes that are made on purpose: a function each, in files by what they touch."""

from mutants.operators import arithmetic, host, loops, masks, memory
from mutants.operators.operator import OPERATORS, Operator

__all__ = ["OPERATORS", "Operator", "arithmetic", "host", "loops", "masks", "memory"]
