"""The findings of source rules: in several processes for many files, and cached by content."""

import contextlib
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from anyio import CapacityLimiter, to_process, to_thread
from pydantic import ValidationError

from pytorch_to_triton import places, triton_api
from pytorch_to_triton.audit.analysis.callers import BENCHMARKS, TESTS, files_near
from pytorch_to_triton.audit.baseline import Comment, comments_in
from pytorch_to_triton.audit.find_files import printable
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.source import SourceFile, SourceKernel, TooDeep, parse
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.triton_api.surface import installed_version

FEW = 12
"""Up to this many files are read in this process: starting others would take longer."""
CHUNK = 12
"""Files that a process reads between two reports of progress."""
RULES_PAGE = "references/auditing_rules.md"


class SourceReading(Value):
    """What the source of one file shows."""

    file: Path
    imports_triton: bool = False
    kernels: tuple[str, ...] = ()
    """Its @triton.jit functions."""
    is_kernel_file: bool = False
    """It defines both `run` and `reference`."""
    findings: tuple[Finding, ...] = ()
    comments: tuple[Comment, ...] = ()
    """Those that suppress findings."""
    notes: tuple[str, ...] = ()
    """Rules that failed on it."""
    refusal: str = ""
    """Why it could not be read; empty where it was."""
    hint: str = ""
    """How to fix that."""
    too_deep: bool = False
    """It could not be read because it is nested too deeply; other files can."""


OnReading = Callable[[SourceReading], Awaitable[None]]


async def read_all(files: Sequence[Path], on_reading: OnReading) -> list[SourceReading]:
    """One reading per file, in the order of the files; `on_reading` is called with each when it is done."""
    readings: dict[Path, SourceReading] = {}

    async def take(done: Sequence[SourceReading]) -> None:
        for reading in done:
            readings[reading.file] = reading
            await on_reading(reading)

    if len(files) <= FEW:
        for file in files:
            await take([await to_thread.run_sync(read, file)])
        return [readings[file] for file in files]
    processes = CapacityLimiter(os.cpu_count() or 1)

    async def work(chunk: Sequence[Path]) -> None:
        await take(await to_process.run_sync(read_chunk, chunk, cancellable=True, limiter=processes))

    async with task_group() as group:
        for start in range(0, len(files), CHUNK):
            group.start_soon(work, files[start : start + CHUNK])
    return [readings[file] for file in files]


def read_chunk(files: Sequence[Path]) -> tuple[SourceReading, ...]:
    """In a process of its own."""
    return tuple(read(file) for file in files)


def read(file: Path) -> SourceReading:
    """The findings of all rules on source, from the cache where the file was read before."""
    if (name := printable(file)) != file:
        # A report could not name it.
        return SourceReading(
            file=file, refusal=f"The file name {name} is not valid UTF-8.", hint="Rename the file."
        )
    try:
        source = places.read_regular(file)
    except OSError as error:
        refusal = f"{file} cannot be read: {error.strerror}."
        return SourceReading(file=file, refusal=refusal, hint="Name readable files.")
    around = repr(files_near(file, *TESTS, *BENCHMARKS)).encode()
    key = hashlib.sha256(b"\0".join((_rules_key(), bytes(file), around, source))).hexdigest()
    kept = places.cache() / "audit" / f"{hashlib.sha256(bytes(file)).hexdigest()[:24]}.json"
    if (known := _cached_reading(kept, key)) is not None:
        return known
    reading = _reading(file, source)
    _keep(kept, key, reading)
    return reading


def complete(finding: Finding, file: SourceFile) -> Finding:
    """A finding with its excerpt, column, function and page."""
    lines = file.lines
    line = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    return finding.model_copy(
        update={
            "column": len(line.encode()[: finding.column - 1].decode(errors="replace")) + 1,
            "excerpt": line.strip(),
            "page": f"{RULES_PAGE}#{finding.rule}",
            "kernel": function_at(file, finding.line),
        }
    )


def function_at(file: SourceFile, line: int) -> str:
    """The innermost function that a line stands in; empty at the top of the file."""
    around = [f for f, _ in file.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return max(around, key=lambda f: f.lineno).name if around else ""


def _reading(file: Path, source: bytes) -> SourceReading:
    try:
        parsed = parse(file, source)
        findings, notes = _run_rules(parsed)
        return SourceReading(
            file=file,
            imports_triton=parsed.imports_triton,
            kernels=tuple(kernel.name for kernel in parsed.kernels),
            is_kernel_file={"run", "reference"} <= {function.name for function, _ in parsed.functions},
            findings=tuple(complete(finding, parsed) for finding in findings),
            comments=comments_in(parsed.text),
            notes=tuple(notes),
        )
    except (RecursionError, MemoryError):
        refusal: BadInput = TooDeep(file)
    except BadInput as error:
        refusal = error
    return SourceReading(
        file=file, refusal=refusal.message, hint=refusal.hint, too_deep=isinstance(refusal, TooDeep)
    )


def _run_rules(file: SourceFile) -> tuple[list[Finding], list[str]]:
    """The findings of all rules; a rule that fails on a file becomes a note, and the others go on."""
    findings: list[Finding] = []
    notes: list[str] = []
    for rule in all_rules():
        if rule.needs not in (SourceKernel, SourceFile):
            continue
        try:
            findings += rule.find(file)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:  # a defect of the rule must not end the audit of a tree
            notes.append(f"Rule {rule.name} failed on {file.path}: {type(error).__name__}: {error}.")
    return findings, notes


class _Kept(Value):
    key: str
    reading: SourceReading


def _cached_reading(place: Path, key: str) -> SourceReading | None:
    try:
        kept = _Kept.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept.reading if kept.key == key else None


def _keep(place: Path, key: str, reading: SourceReading) -> None:
    """A cache that cannot be written only costs time."""
    with contextlib.suppress(OSError, ValueError):
        places.write_atomically(place, _Kept(key=key, reading=reading).model_dump_json())


@cache
def _rules_key() -> bytes:
    """A digest of the code that reads, and of the Triton whose names it knows."""
    digest = hashlib.sha256(str(installed_version()).encode())
    for path in _code():
        digest.update(path.read_bytes())
    return digest.digest()


def _code() -> Iterator[Path]:
    for folder in (Path(__file__).parent, *map(Path, triton_api.__path__)):
        yield from sorted((*folder.rglob("*.py"), *folder.glob("*.json")))
