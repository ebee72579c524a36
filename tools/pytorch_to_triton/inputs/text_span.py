"""A part of a declaration's text with its position, so that a refusal points at the character."""

from dataclasses import dataclass

from pytorch_to_triton.errors import BadDeclaration

_SHOWN = 400
"""Characters of a text that a refusal shows."""
_BRACKETS = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True)
class TextSpan:
    """Characters `start` to `end` (exclusive) of `whole`; `label` names what is read, e.g. `Input x`."""

    label: str
    whole: str
    start: int
    end: int

    @classmethod
    def of(cls, label: str, text: str) -> "TextSpan":
        """All of `text`; line breaks and tabs become single spaces, so that a caret can be put below it."""
        line = "".join(character if character.isprintable() else " " for character in text)
        return cls(label, line, 0, len(line))

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.whole[self.start : self.end]

    def cut(self, start: int, end: int | None = None) -> "TextSpan":
        """Characters `start` to `end` of this span (to its end when None)."""
        stop = self.end if end is None else self.start + end
        return TextSpan(self.label, self.whole, self.start + start, stop)

    def stripped(self) -> "TextSpan":
        """Without the spaces around it."""
        leading = len(self.text) - len(self.text.lstrip())
        return self.cut(leading, max(leading, len(self.text.rstrip())))

    def split(self, separator: str) -> list["TextSpan"]:
        """The stripped parts between separators, which count only outside brackets; at least one part."""
        cuts, open_brackets = [-1], 0
        for index, character in enumerate(self.text):
            if character in _BRACKETS:
                open_brackets += 1
            elif character in _BRACKETS.values():
                open_brackets -= 1
            elif character == separator and open_brackets == 0:
                cuts.append(index)
        ends = [*cuts[1:], len(self.text)]
        return [self.cut(start + 1, end).stripped() for start, end in zip(cuts, ends, strict=True)]

    def refusal(self, problem: str, hint: str, *, at: int = 0) -> BadDeclaration:
        """The error to raise, its caret `at` characters into this span; a long text is cut around it."""
        position = self.start + at
        first = max(0, position - _SHOWN // 2) if len(self.whole) > _SHOWN else 0
        shown = self.whole[first : first + _SHOWN]
        return BadDeclaration(f"{brief(self.label)}: {brief(problem)}", shown, position - first, hint)


def brief(text: str) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
