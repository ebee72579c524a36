"""The code blocks of a guide, told apart by the tag on their fence.

    ```python            executed under the interpreter, its launches compiled; builds on the blocks before
    ```python compiled   executed only where launches are compiled: asserts what the compiler makes for sm_90
    ```python no-run     never executed, because it needs a GPU: its Triton and PyTorch names must exist
    ```python wrong      a mistake, with one comment on its line that says how it shows

Any other language is shown and never executed. The comments of a mistake:

    # fails: NAME      raises NAME there, under the interpreter and when compiled
    # refused: NAME    raises NAME there when compiled; not run under the interpreter, which may let it pass
    # wrong: WORDS     works, with another result than wanted: the block ends with an assertion that says so
    # unsafe: WORDS    works, and there touches memory that it must not, or races: the memory watch says so
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

Kind = Literal["run", "compiled", "no-run", "wrong", "shown"]

MARK = re.compile(r"# (fails|refused|wrong|unsafe): *(\w*)")


@dataclass(frozen=True)
class Mark:
    """How a mistake shows: its comment's verb, an exception's name or another word, the guide's line."""

    verb: str
    name: str
    line: int


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the guide's line of its first line of text, counted from 1."""

    kind: Kind
    line: int
    text: str

    @property
    def marks(self) -> list[Mark]:
        """The comments that say how a mistake shows; a block tagged `wrong` has exactly one."""
        return [
            Mark(found[1], found[2], line)
            for line, text in enumerate(self.text.splitlines(), self.line)
            if (found := MARK.search(text))
        ]


def blocks_of(guide: Path) -> list[Block]:
    """The guide's blocks, in order. Raises ValueError for an unknown tag."""
    blocks = []
    for token in MarkdownIt().parse(guide.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map:
            line = token.map[0] + 2
            blocks.append(Block(kind_of(token.info, f"{guide.name}:{line}"), line, token.content))
    return blocks


def kind_of(info: str, place: str) -> Kind:
    """What the words on an opening fence ask for. Raises ValueError for an unknown tag."""
    language, _, tag = info.strip().partition(" ")
    if language != "python":
        return "shown"
    kinds: dict[str, Kind] = {"": "run", "compiled": "compiled", "no-run": "no-run", "wrong": "wrong"}
    if tag not in kinds:
        raise ValueError(f"{place}: python blocks are tagged {', '.join(kinds)}, not {tag!r}")
    return kinds[tag]


def source_of(blocks: list[Block]) -> str:
    """All Python of a guide as one file, each line where the guide has it, so that a failure names it."""
    lines: list[str] = []
    for block in blocks:
        if block.kind != "shown":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"
