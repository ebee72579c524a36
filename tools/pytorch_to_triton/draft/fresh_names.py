"""Names that nothing else has, and that compilers take."""

import itertools
from collections.abc import Container


def fresh(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, ... that is not taken."""
    options = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2)))
    return next(n for n in options if n not in taken)


def underscored(name: str, taken: Container[str]) -> str:
    """The name, with underscores behind it while it is taken."""
    while name in taken:
        name = f"{name}_"
    return name


def in_ascii(name: str) -> str:
    """The name as compiled kernels and operators of PyTorch take it: other letters by their code points."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)
