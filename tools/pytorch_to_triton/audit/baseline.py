"""Findings that do not count: those in a file of known ones, and those that comments suppress.

A team adopts the audit on old code by a baseline, and only new findings count. A comment,
`# audit: ignore[rule, other_rule] why it is right here`, covers the statement beside it; on its own line,
the next one (of a decorated function: up to its `def`); `# audit: ignore-file[rule] why`, the whole file.
Without a reason nothing is suppressed.
"""

import hashlib
import io
import re
import tokenize
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Finding, Suppressed
from pytorch_to_triton.schema.value import Value

BASELINE_BYTES = 64 << 20
"""Enough for several hundred thousand findings."""


class KnownFinding(Value):
    """One finding in a baseline; everything but the fingerprint is for readers."""

    fingerprint: str
    rule: str
    file: str
    line: int
    excerpt: str


class Baseline(Value):
    """All of them, by file and line."""

    findings: tuple[KnownFinding, ...] = ()


def add_fingerprints(findings: Iterable[Finding], root: Path) -> list[Finding]:
    """Findings whose fingerprints stay the same when lines move.

    They are made of rule, file below `root`, function and the line's text; equal ones are numbered in
    source order.
    """
    seen: Counter[str] = Counter()
    marked: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.file, f.line, f.column)):
        name = relative(finding.file, root)
        core = "\0".join((finding.rule, name, finding.kernel, " ".join(finding.excerpt.split())))
        seen[core] += 1
        digest = hashlib.sha256(f"{core}\0{seen[core]}".encode()).hexdigest()
        marked.append(finding.model_copy(update={"fingerprint": digest[:16]}))
    return marked


def mark_known(findings: Sequence[Finding], baseline: Baseline) -> list[Finding]:
    """The findings, with those in the baseline marked as known."""
    known = {finding.fingerprint for finding in baseline.findings}
    return [f.model_copy(update={"known": True}) if f.fingerprint in known else f for f in findings]


def read_baseline(path: Path) -> Baseline:
    """Raises BadInput where the file is missing or is not a baseline."""
    try:
        return Baseline.model_validate_json(places.read_regular(path, BASELINE_BYTES).decode())
    except OSError as error:
        hint = "Write one with --update-baseline, or leave the baseline out."
        raise BadInput(f"The baseline {path} cannot be read: {error.strerror}.", hint) from error
    except (UnicodeDecodeError, ValidationError) as error:
        hint = "Delete it, then write a new one with --update-baseline."
        raise BadInput(f"{path} is not an audit baseline.", hint) from error


def updated_baseline(before: Baseline, findings: Sequence[Finding], scope: "BaselineScope") -> Baseline:
    """A baseline of these findings; entries for other files and other rules stay."""
    left = [one for one in before.findings if one.rule not in scope.rules or one.file not in scope.files]
    known = [
        KnownFinding(
            fingerprint=finding.fingerprint,
            rule=finding.rule,
            file=relative(finding.file, scope.root),
            line=finding.line,
            excerpt=finding.excerpt,
        )
        for finding in findings
    ]
    return Baseline(findings=tuple(sorted([*left, *known], key=lambda one: (one.file, one.line, one.rule))))


@dataclass(frozen=True)
class BaselineScope:
    """What an audit covered."""

    root: Path
    files: frozenset[str]
    """As a baseline names them."""
    rules: frozenset[str]


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Raises BadInput where the file cannot be written."""
    if path.exists() and not path.is_file():
        # Writing would replace the device by a file.
        raise BadInput(f"{path} cannot be written: it is not a regular file.", "Choose another path.")
    try:
        places.write_atomically(path, baseline.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another path.") from error


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
        names = tuple(name for part in parsed[2].split(",") if (name := part.strip()))
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
