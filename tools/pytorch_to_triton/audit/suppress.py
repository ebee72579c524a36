"""Comments that set findings aside: `# audit: ignore[rule, other_rule] why it is right here`.

Beside code it holds for that statement, alone on a line for the next one (of a decorated function: up to its
`def`), and `# audit: ignore-file[rule] why` for the whole file. Without a reason nothing is set aside.
"""

import io
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from pytorch_to_triton.audit.registry import KINDS, Rule
from pytorch_to_triton.schema.finding import Finding, Suppressed
from pytorch_to_triton.schema.value import Value

COMMENT = re.compile(r"#\s*audit:\s*(ignore|ignore-file)\s*\[([\w\s,]*)\]\s*(.*)")
ALMOST = re.compile(r"#\s*audit:\s*ignore")
LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


class Comment(Value):
    """One such comment."""

    at: int
    """Its own line."""
    rules: tuple[str, ...] = ()
    reason: str = ""
    first: int
    """The lines that it holds for, the last one included."""
    last: int

    def sets_aside(self, finding: Finding) -> bool:
        return bool(self.reason) and finding.rule in self.rules and self.first <= finding.line <= self.last


def comments_in(source: str) -> tuple[Comment, ...]:
    """All of a file that parses, in source order."""
    if "audit:" not in source:
        return ()
    statements = tuple(_statements(source))
    found: list[Comment] = []
    for token in _tokens(source):
        if token.type != tokenize.COMMENT or not (almost := ALMOST.search(token.string)):
            continue
        line, told = token.start[0], COMMENT.match(token.string[almost.start() :])
        if told is None:
            found.append(Comment(at=line, first=line, last=line))
            continue
        names = tuple(name for one in told[2].split(",") if (name := one.strip()))
        whole = told[1] == "ignore-file"
        first, last = (1, len(source)) if whole else _covered(line, statements)
        found.append(Comment(at=line, rules=names, reason=told[3].strip(), first=first, last=last))
    return tuple(found)


def set_aside(
    findings: Sequence[Finding], comments: Sequence[Comment]
) -> tuple[list[Finding], list[Suppressed]]:
    """A file's findings that remain, and those that a comment sets aside."""
    kept: list[Finding] = []
    aside: list[Suppressed] = []
    for finding in findings:
        reason = next((comment.reason for comment in comments if comment.sets_aside(finding)), None)
        if reason is None:
            kept.append(finding)
        else:
            aside.append(Suppressed(finding=finding, reason=reason))
    return kept, aside


def notes_on(
    name: str, comments: Sequence[Comment], aside: Sequence[Suppressed], rules: Sequence[Rule]
) -> Iterator[str]:
    """Comments of a file that do nothing, and why; those on rules that were not tried are left alone."""
    every = {rule.name: rule for rule in rules}
    for comment in comments:
        unknown = [rule for rule in comment.rules if rule not in every]
        where, listed = f"{name}:{comment.at}", ", ".join(comment.rules)
        if not comment.rules:
            yield f"{where}: this sets nothing aside; write `# audit: ignore[RULE] REASON`."
        elif not comment.reason:
            yield f"{where}: audit: ignore[{listed}] gives no reason, so it sets nothing aside."
        elif unknown:
            yield f"{where}: there is no rule {', '.join(unknown)} to ignore."
        elif any(comment.sets_aside(found.finding) for found in aside):
            continue
        elif all(KINDS[every[rule].needs] == "source" for rule in comment.rules):
            yield f"{where}: audit: ignore[{listed}] sets nothing aside: nothing is found there."


def _covered(line: int, statements: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The statement that a line belongs to, else the next one."""
    at = bisect_left(statements, line, key=lambda statement: statement[1])
    return statements[at] if at < len(statements) else (line, line)


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(source).readline)


def _statements(source: str) -> Iterator[tuple[int, int]]:
    """First and last line of each logical line; decorators belong to the `def` below them."""
    start: int | None = None
    begins, decorates = True, False
    for token in _tokens(source):
        if token.type == tokenize.NEWLINE and start is not None:
            if not decorates:
                yield start, token.start[0]
                start = None
            begins = True
        elif token.type not in LAYOUT and token.type != tokenize.ENDMARKER:
            start = token.start[0] if start is None else start
            if begins:
                begins, decorates = False, token.string == "@"
