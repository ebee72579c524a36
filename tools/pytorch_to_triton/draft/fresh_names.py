"""Names that nothing else has, and that compilers take."""

import itertools
import re
from collections.abc import Container

WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "over", "**": "to_the", "1": "one", "2": "two"}
LONGEST = 32


def fresh(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, ... that is not taken."""
    options = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2)))
    return next(n for n in options if n not in taken)


def in_words(source: str) -> str:
    """Arithmetic of numbers as a name: `one_minus_beta` for `1 - beta`."""
    parts = re.findall(r"\*\*|[-+*/]|[\w.]+", source)
    name = "_".join(WORDS.get(part.removesuffix(".0"), part.replace(".", "_")) for part in parts)
    return name if name.isidentifier() and len(name) <= LONGEST else "number"


def underscored(name: str, taken: Container[str]) -> str:
    """The name, with underscores behind it while it is taken."""
    while name in taken:
        name = f"{name}_"
    return name


def in_ascii(name: str) -> str:
    """The name as compiled kernels and operators of PyTorch take it: other letters by their code points."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)
