"""No kernels for gradients that nobody asked for, such as those of a rotary embedding's tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pytorch_to_triton.draft.file.lines import INDENT, Lines, without_repeats
from pytorch_to_triton.draft.file.part import Part
from pytorch_to_triton.draft.groups import made_by, read_by

Positions = frozenset[int]
"""Of the arguments of the autograd function whose gradients need something."""


def where_needed(part: Part, asked: Mapping[str, Positions]) -> Part:
    """The backward half with what some gradients alone need under a condition.

    `asked`: a gradient as source -> the arguments that it is for.
    """
    every = frozenset[int]().union(*asked.values())
    needs = [every & n for n in needs_of(part, asked, every)]
    blocks: list[tuple[Lines, ...]] = []
    for need, numbers in groupby(range(len(part.items)), key=needs.__getitem__):
        several = list(numbers)
        lines = [line for n in several for line in part.blocks[n]]
        names = [name for n in several for name in made_by(part.items[n]) if name in asked]
        blocks.append(tuple(lines) if need in (every, frozenset()) else under(need, names, lines))
        blocks += [()] * (len(several) - 1)
    return replace(part, blocks=tuple(blocks))


def needs_of(part: Part, asked: Mapping[str, Positions], every: Positions) -> list[Positions]:
    """For each item the arguments whose gradients need it."""
    wanted: dict[str, Positions] = defaultdict(frozenset)
    for text, positions in asked.items():
        # A gradient that is computed of something takes it, whether it is asked for or not.
        for name in re.findall(r"\w+", text):
            wanted[name] |= positions if name == text else every
    found: list[Positions] = []
    for item in reversed(part.items):
        need = frozenset[int]().union(*(wanted[name] for name in made_by(item)))
        for name in read_by(item):
            wanted[name] |= need
        found.append(need)
    return found[::-1]


def under(need: Positions, names: Sequence[str], lines: Sequence[Lines]) -> tuple[Lines, ...]:
    """The statements where one of these gradients is asked for; else the `names` are None."""
    condition = " or ".join(f"ctx.needs_input_grad[{n}]" for n in sorted(need))
    inside = (f"{INDENT}{line}" for statement in without_repeats(lines) for line in statement)
    absent = [(f"{' = '.join(names)} = None",)] if names else []
    return (*absent, (f"if {condition}:", *inside))
