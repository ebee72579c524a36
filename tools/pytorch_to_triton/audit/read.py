"""What the rules on source find in files: in several processes where there are many, and kept by content."""

import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_process, to_thread
from pydantic import ValidationError

from pytorch_to_triton import api, places
from pytorch_to_triton.api.surface import installed_version
from pytorch_to_triton.audit.analysis.callers import BENCHMARKS, TESTS, files_near
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.source import Kernel, SourceFile, parse
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.value import Value

FEW = 12
"""So many files are read at once: starting processes takes longer."""
CHUNK = 12
"""Files that a process reads between two words about its progress."""
RULES_PAGE = "references/auditing_rules.md"


class Reading(Value):
    """What source alone says of one file."""

    file: Path
    imports_triton: bool = False
    kernels: tuple[str, ...] = ()
    """Its @triton.jit functions."""
    findings: tuple[Finding, ...] = ()
    refusal: str = ""
    """Why it could not be read; empty: it was."""
    hint: str = ""
    """How to mend that."""


async def read_all(files: Sequence[Path]) -> AsyncIterator[Reading]:
    """One reading a file, as they are done; of a cached one at once."""
    if len(files) <= FEW:
        for file in files:
            yield await to_thread.run_sync(read, file)
        return
    chunks = [tuple(files[start : start + CHUNK]) for start in range(0, len(files), CHUNK)]
    processes = CapacityLimiter(os.cpu_count() or 1)
    done, read_ones = anyio.create_memory_object_stream[tuple[Reading, ...]](len(chunks))

    async def work(chunk: tuple[Path, ...]) -> None:
        await done.send(await to_process.run_sync(read_chunk, chunk, cancellable=True, limiter=processes))

    async with anyio.create_task_group() as group, read_ones:
        for chunk in chunks:
            group.start_soon(work, chunk)
        for _ in chunks:
            for reading in await read_ones.receive():
                yield reading
    done.close()


def read_chunk(files: Sequence[Path]) -> tuple[Reading, ...]:
    """In a process of its own."""
    return tuple(read(file) for file in files)


def read(file: Path) -> Reading:
    """The findings of all rules on source, from the cache where the file was read before."""
    try:
        source = file.read_bytes()
    except OSError as error:
        refusal = f"{file} cannot be read: {error.strerror}."
        return Reading(file=file, refusal=refusal, hint="Name files that you may read.")
    around = repr(files_near(file, *TESTS, *BENCHMARKS)).encode()
    key = hashlib.sha256(b"\0".join((_rules_key(), bytes(file), around, source))).hexdigest()
    kept = places.cache() / "audit" / f"{hashlib.sha256(bytes(file)).hexdigest()[:24]}.json"
    if (known := _kept(kept, key)) is not None:
        return known
    reading = _reading(file, source)
    _keep(kept, key, reading)
    return reading


def finished(finding: Finding, file: SourceFile) -> Finding:
    """A finding with what its place in the source adds."""
    lines = file.lines
    excerpt = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
    page = f"{RULES_PAGE}#{finding.rule}"
    kernel = function_at(file, finding.line)
    return finding.model_copy(update={"excerpt": excerpt, "page": page, "kernel": kernel})


def function_at(file: SourceFile, line: int) -> str:
    """The innermost function that a line stands in; empty at the top of the file."""
    around = [f for f, _ in file.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return max(around, key=lambda f: f.lineno).name if around else ""


def _reading(file: Path, source: bytes) -> Reading:
    try:
        parsed = parse(file, source)
    except BadInput as refusal:
        return Reading(file=file, refusal=refusal.message, hint=refusal.hint)
    rules = [rule for rule in all_rules() if rule.needs in (Kernel, SourceFile)]
    return Reading(
        file=file,
        imports_triton=parsed.imports_triton,
        kernels=tuple(kernel.node.name for kernel in parsed.kernels),
        findings=tuple(finished(f, parsed) for rule in rules for f in rule.find(parsed)),
    )


class _Kept(Value):
    key: str
    reading: Reading


def _kept(place: Path, key: str) -> Reading | None:
    try:
        kept = _Kept.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept.reading if kept.key == key else None


def _keep(place: Path, key: str, reading: Reading) -> None:
    """A cache that cannot be written costs time alone."""
    with contextlib.suppress(OSError):
        places.write_whole(place, _Kept(key=key, reading=reading).model_dump_json())


@cache
def _rules_key() -> bytes:
    """Of the code that reads, and of the Triton whose names it knows."""
    digest = hashlib.sha256(str(installed_version()).encode())
    for path in _code():
        digest.update(path.read_bytes())
    return digest.digest()


def _code() -> Iterator[Path]:
    for folder in (Path(__file__).parent, *map(Path, api.__path__)):
        yield from sorted((*folder.rglob("*.py"), *folder.glob("*.json")))
