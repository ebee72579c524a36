"""Comments that suppress findings: `# audit: ignore[rule, other_rule] why it is right here`.

Beside code it covers that statement; on a line of its own, the next one (of a decorated function: up to its
`def`); `# audit: ignore-file[rule] why` covers the whole file. Without a reason nothing is suppressed.
"""

import io
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from pytorch_to_triton.audit.registry import Rule
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
    """The lines that it covers, the last one included."""
    last: int

    def suppresses(self, finding: Finding) -> bool:
        return bool(self.reason) and finding.rule in self.rules and self.first <= finding.line <= self.last


def comments_in(source: str) -> tuple[Comment, ...]:
    """All such comments of a file that parses, in source order."""
    if "audit:" not in source:
        return ()
    statements = tuple(_statements(source))
    comments: list[Comment] = []
    for token in _tokens(source):
        if token.type != tokenize.COMMENT or not (almost := ALMOST.search(token.string)):
            continue
        line, parsed = token.start[0], COMMENT.match(token.string[almost.start() :])
        if parsed is None:
            comments.append(Comment(at=line, first=line, last=line))
            continue
        names = tuple(name for one in parsed[2].split(",") if (name := one.strip()))
        whole = parsed[1] == "ignore-file"
        first, last = (1, len(source)) if whole else _covered_lines(line, statements)
        comments.append(Comment(at=line, rules=names, reason=parsed[3].strip(), first=first, last=last))
    return tuple(comments)


def suppress(
    findings: Sequence[Finding], comments: Sequence[Comment]
) -> tuple[list[Finding], list[Suppressed]]:
    """A file's findings that remain, and those that a comment suppresses."""
    kept: list[Finding] = []
    aside: list[Suppressed] = []
    for finding in findings:
        reason = next((comment.reason for comment in comments if comment.suppresses(finding)), None)
        if reason is None:
            kept.append(finding)
        else:
            aside.append(Suppressed(finding=finding, reason=reason))
    return kept, aside


def notes_on(
    name: str, comments: Sequence[Comment], aside: Sequence[Suppressed], rules: Sequence[Rule]
) -> Iterator[str]:
    """Comments without effect, and why; those on rules that were not applied are left alone."""
    every = {rule.name: rule for rule in rules}
    for comment in comments:
        unknown = [rule for rule in comment.rules if rule not in every]
        where, listed = f"{name}:{comment.at}", ", ".join(comment.rules)
        if not comment.rules:
            yield f"{where}: this comment suppresses nothing; write `# audit: ignore[RULE] REASON`."
        elif not comment.reason:
            yield f"{where}: audit: ignore[{listed}] gives no reason, so it suppresses nothing."
        elif unknown:
            yield f"{where}: there is no rule {', '.join(unknown)} to ignore."
        elif any(comment.suppresses(suppressed.finding) for suppressed in aside):
            continue
        elif all(every[rule].evidence == ("source",) for rule in comment.rules):
            yield f"{where}: audit: ignore[{listed}] suppresses nothing: there is no such finding."


def _covered_lines(line: int, statements: Sequence[tuple[int, int]]) -> tuple[int, int]:
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
