"""Comments that set findings aside: `# audit: ignore[rule, other_rule] why it is right here`.

At the end of a line it holds for that line, alone on a line for the next line of code, and
`# audit: ignore-file[rule] why` for the whole file. Without a reason nothing is set aside.
"""

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytorch_to_triton.schema.finding import Finding, Suppressed

COMMENT = re.compile(r"#\s*audit:\s*(ignore|ignore-file)\s*\[([\w\s,]*)\]\s*(.*)")
BESIDE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


@dataclass(frozen=True)
class Comment:
    """One such comment."""

    at: int
    """Its own line."""
    rules: frozenset[str]
    reason: str
    covers: int | None
    """The line that it holds for; None: all lines."""

    def sets_aside(self, finding: Finding) -> bool:
        return bool(self.reason) and finding.rule in self.rules and self.covers in (None, finding.line)


def comments_in(source: str) -> Iterator[Comment]:
    """All of a file that parses, in source order."""
    if "audit:" not in source:
        return
    waiting: list[tuple[int, re.Match[str]]] = []
    code_on = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type not in BESIDE:
            yield from (_comment(at, found, line) for at, found in waiting)
            waiting = []
            code_on = token.end[0]
        elif token.type == tokenize.COMMENT and (found := COMMENT.match(token.string)):
            if found[1] == "ignore-file":
                yield _comment(line, found, None)
            elif code_on == line:
                yield _comment(line, found, line)
            else:
                waiting.append((line, found))


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


def notes_on(name: str, comments: Sequence[Comment], aside: Sequence[Suppressed]) -> Iterator[str]:
    """Comments that do nothing, and why."""
    for comment in comments:
        if not comment.reason:
            yield f"{name}:{comment.at}: audit: ignore gives no reason, so it sets nothing aside."
        elif not any(comment.sets_aside(found.finding) for found in aside):
            listed = ", ".join(sorted(comment.rules)) or "no rule"
            yield f"{name}:{comment.at}: audit: ignore[{listed}] sets nothing aside: nothing is found there."


def _comment(at: int, found: re.Match[str], covers: int | None) -> Comment:
    rules = frozenset(name.strip() for name in found[2].split(",") if name.strip())
    return Comment(at, rules, found[3].strip(), covers)
