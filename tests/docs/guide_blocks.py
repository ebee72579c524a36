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
from typing import Literal, get_args

Kind = Literal["run", "compiled", "no-run", "wrong", "shown"]

FENCE = re.compile(r"^```(\S*) *(.*?) *$")
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
    """The guide's blocks, in order. Raises ValueError for an unknown tag and for a fence left open."""
    blocks: list[Block] = []
    kind: Kind | None = None
    start = 0
    lines = guide.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if not fence:
            continue
        if kind is None:
            kind, start = kind_of(fence[1], fence[2], f"{guide.name}:{number}"), number + 1
        else:
            blocks.append(Block(kind, start, "\n".join(lines[start - 1 : number - 1]) + "\n"))
            kind = None
    if kind is not None:
        raise ValueError(f"{guide.name}:{start - 1}: this block is never closed")
    return blocks


def kind_of(language: str, tag: str, place: str) -> Kind:
    """What the words on an opening fence ask for. Raises ValueError for an unknown tag."""
    if language != "python":
        return "shown"
    for kind in get_args(Kind):
        if kind == (tag or "run"):
            found: Kind = kind
            return found
    raise ValueError(f"{place}: python blocks are tagged compiled, no-run, wrong or nothing, not {tag!r}")


def source_of(blocks: list[Block]) -> str:
    """All Python of a guide as one file, each line where the guide has it, so that a failure names it."""
    lines: list[str] = []
    for block in blocks:
        if block.kind != "shown":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"
