"""A job under NVIDIA's compute-sanitizer: what it saw of accesses that no kernel may make.

Its options: docs.nvidia.com/compute-sanitizer/ComputeSanitizer.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from pytorch_to_triton.jobs.fork_server import job_environment
from pytorch_to_triton.jobs.job_channel import REQUESTS
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.tool_process import find_tool, run_tool, text_of, worker_command
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.as_json import encoded

HAZARDS = 20
"""At most this many different hazards are reported."""

LINE = re.compile(r"={8,10} *(.*?)\s*$")
INVALID = re.compile(r"Invalid __(\w+)__ (\w+|\?) of size ([\d.,]+) bytes?")
RACE = re.compile(r"(\w+): *(?:\([^)]*\) *)?Race reported between (\w+) access at (.*)")
OTHER_ACCESS = re.compile(r"and (\w+) access at (.*)")
PLACE = re.compile(r"at (?!0x[0-9a-f]+$)(.*)")
FRAME = re.compile(r"Device Frame: ?(.*)")
ACCESS = re.compile(r"(?:Address|Access)\b.*\bis |and is ")
NEAREST = re.compile(r"and is ([\d.,]+) bytes? (?:after|before) the nearest allocation")
ADDRESS = re.compile(r"(?: at| to)? 0x[0-9a-f]+")
COUNTED = re.compile(r"\s*\[([\d.,]+) hazards?\]$")
SUMMARY = re.compile(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: .*\()([\d.,]+) errors?\b")
COMPLAINT = re.compile(
    r"Internal Sanitizer Error|Error: (?!process didn't)|Unable to |Unsupported|.*not supported"
)
"""The tool reports that it did not check all."""
PLACES = (
    re.compile(r"(?:0x[0-9a-f]+ in )?(?P<file>[^:]+):(?P<line>\d+):(?P<kernel>.+)$"),
    re.compile(r"0x[0-9a-f]+ in (?P<kernel>.+)$"),
    re.compile(r"(?P<kernel>.+?)(?:[+:]0x[0-9a-f]+)?(?: in (?P<file>.+):(?P<line>\d+))?$"),
)
"""Before 2023 `0xb0 in /tmp/san.py:4:kernel` and `0xb0 in kernel`, from then on `kernel+0xb0 in san.py:4`, of
which all but the name may be missing."""
Tool = Literal["memcheck", "racecheck"]
NAME = "compute-sanitizer"
REPORT = "sanitizer.txt"
"""What the tool wrote, in the run folder; apart from what the job prints, which may look the same."""
ERRORS_SEEN = 86
"""Its exit code when the job succeeded and it saw errors: the job's process has no hand in that."""
PRINT_LIMIT = 1000
PADDING_BYTES = 2**20
"""Between allocations, so that an access far past the end of one does not hit the next one unseen."""
OPTIONS = (
    "--target-processes", "application-only",
    "--launch-timeout", "0",  # importing torch from a cold disk takes longer than its 10 s
    "--error-exitcode", str(ERRORS_SEEN),
    "--print-limit", str(PRINT_LIMIT),
    "--show-backtrace", "device",
    "--report-api-errors", "no",  # torch probes for functions that a driver may not have
    "--destroy-on-device-error", "kernel",  # the cases after a wrong one are run too
)  # fmt: skip
TOOL_OPTIONS: dict[Tool, tuple[str, ...]] = {
    "memcheck": ("--padding", str(PADDING_BYTES)),
    "racecheck": ("--racecheck-report", "analysis"),
}
UNSET = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TRITON_DISABLE_LINE_INFO")
"""Another allocator hides where an allocation ends; without line information no line can be named."""


class Hazard(Value):
    """One kind of wrong access at one place."""

    kind: str
    """`read`, `write`, `atomic` or `access`, where memory is outside of its allocation or misaligned; `race`;
    `write race`, between writes alone; `possible race`, of which the tool only warns; else its own words."""
    space: str = ""
    """`global`, `shared` or `local`; empty where the tool does not say."""
    kernel: str = ""
    """Of C++ kernels with its signature."""
    file: str | None = None
    """A path or a name, as the kernel's line information has it and the tool shortens it."""
    line: int | None = None
    size_bytes: int | None = None
    """What one thread accesses at once."""
    outside_bytes: int | None = None
    """How far from the nearest allocation."""
    misaligned: bool = False
    detail: str = ""
    """The tool's words, without addresses."""
    count: int = 1
    """How often it was reported: a thread, or a byte of a race, each. A wrong access ends its kernel, so this
    is no measure of how much is wrong."""


def parse_report(text: str) -> tuple[Hazard, ...]:
    """The hazards of a report in its order, repeats counted; at most HAZARDS. Other lines are skipped."""
    merged: dict[tuple[object, ...], Hazard] = {}
    for hazard in filter(None, map(_hazard, _records(report_lines(text)))):
        key = (hazard.kind, hazard.space, hazard.kernel, hazard.file, hazard.line, hazard.misaligned)
        known = merged.get(key)
        merged[key] = _merge(known, hazard) if known else hazard
    return tuple(merged.values())[:HAZARDS]


def counted_errors(text: str) -> int | None:
    """How many errors the report's summary counts; None where it has none, so is not complete."""
    counts = [_number(match[1]) for line in report_lines(text) if (match := SUMMARY.match(line))]
    return max(counts) if counts else None


def complaint(text: str) -> str:
    """The first line in which the tool reports that it could not check all; empty without one."""
    return next((line for line in report_lines(text) if COMPLAINT.match(line)), "")


def report_lines(text: str) -> Iterator[str]:
    """The tool's own lines, without prefix and indentation."""
    return (match[1] for line in text.splitlines() if (match := LINE.match(line)))


def _records(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines up to an empty one, to the host's backtrace, or to where the next hazard begins."""
    record: list[str] = []
    for line in lines:
        if not line or line.startswith("Saved host backtrace") or INVALID.match(line) or RACE.match(line):
            yield record
            record = []
        record += [line] * bool(line)
    yield record


def _hazard(record: Sequence[str]) -> Hazard | None:
    """What the lines report; None where that is no hazard."""
    head, *lines = record or [""]
    invalid, race = INVALID.match(head), RACE.match(head)
    if not (invalid or race):
        placed = next((n for n, line in enumerate(lines) if PLACE.match(line)), None)
        if placed is None:
            return None
        head, lines = record[placed], lines[placed:]
    others = _matches(OTHER_ACCESS, lines)
    accesses = [*([(race[2], race[3])] if race else []), *((other[1], other[2]) for other in others)]
    places = [place for _, place in accesses] or [place[1] for place in _matches(PLACE, lines)]
    kernel, file, line = _locate(places[0] if places else "")
    outermost = [frame[1] for frame in _matches(FRAME, lines)][-1:]
    words = " ".join(ADDRESS.sub("", line) for line in lines if ACCESS.match(line))
    words = words or " and ".join(dict.fromkeys(_access_text(*access) for access in accesses))
    counts = [_number(counted[1]) if (counted := COUNTED.search(other.string)) else 1 for other in others]
    nearest = _matches(NEAREST, lines)
    return Hazard(
        kind=_kind(head, {other[1] for other in others}),
        space=invalid[1] if invalid else "shared" if race else "",
        kernel=_locate("".join(outermost))[0] or kernel,
        file=file,
        line=line,
        size_bytes=_number(invalid[3]) if invalid else None,
        outside_bytes=_number(nearest[-1][1]) if nearest else None,
        misaligned="is misaligned" in words,
        detail=words,
        count=max(1, sum(counts)),
    )


def _matches(pattern: re.Pattern[str], lines: Iterable[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := pattern.match(line))]


def _kind(head: str, others: Collection[str]) -> str:
    """By the first line; `others` are the accesses that raced with the one in it."""
    if invalid := INVALID.match(head):
        return invalid[2] if invalid[2] in ("read", "write", "atomic") else "access"
    if race := RACE.match(head):
        certain = "write race" if race[2] == "Write" and "Read" not in others else "race"
        return certain if race[1].upper() == "ERROR" else "possible race"
    return head


def _access_text(access: str, place: str) -> str:
    _, file, line = _locate(place)
    return f"{access.lower()} at {file}:{line}" if file else access.lower()


def _locate(text: str) -> tuple[str, str | None, int | None]:
    """Kernel, file and line of a place."""
    text = re.sub(r"\s*\[0x[0-9a-f]+\]$", "", COUNTED.sub("", text))
    match = next((match for pattern in PLACES if (match := pattern.match(text))), None)
    if match is None:
        return "", None, None
    fields = match.groupdict()
    return fields["kernel"], fields.get("file"), int(fields["line"]) if fields.get("line") else None


def _merge(known: Hazard, again: Hazard) -> Hazard:
    """Both as one; the words are those of the access nearest to its allocation."""
    distances = [(h.outside_bytes is None, h.outside_bytes or 0) for h in (known, again)]
    nearer = again if distances[1] < distances[0] else known
    return nearer.model_copy(update={"count": known.count + again.count})


def _number(text: str) -> int:
    """Digits in whatever groups the tool's locale makes of them."""
    return int(re.sub(r"\D", "", text))


class Sanitized(Value):
    """How a job under the tool ended."""

    status: Literal["clean", "found", "failed"]
    """clean: the job answered, and the tool checked all of it and found nothing. failed: nothing is known."""
    hazards: tuple[Hazard, ...] = ()
    detail: str = ""
    """Why it failed; else how a job with hazards ended, where it did not answer."""
    items: tuple[dict[str, Any], ...] = ()
    """What the job handed over on its way."""


def find_sanitizer() -> Path | None:
    """The tool on PATH, else in CUDA's folders; None where there is none."""
    return find_tool(NAME)


async def sanitize(
    folders: RunFolders,
    job: Job,
    requests: Sequence[Any],
    runtime: Runtime,
    tool: Tool,
    *,
    seconds: float,
) -> Sanitized:
    """Do one job in a process of its own under the tool, for at most `seconds` from its start.

    `requests` are all that it will be asked, where it takes requests.

    That includes importing torch, and kernels run many times slower. Each tensor has an allocation of its
    own, so that its real end is known. What goes wrong is a result, never an exception; cancelling kills the
    job and the tool.
    """
    program = find_sanitizer()
    if program is None:
        return Sanitized(status="failed", detail=f"{NAME} is not installed; it comes with the CUDA toolkit")
    await anyio.to_thread.run_sync(folders.make_room)
    with folders.new(job, runtime) as folder:
        asked = "".join(encoded(request) + "\n" for request in requests)
        (folder / REQUESTS).write_text(asked, encoding="utf-8")
        command = [*_command(program, tool, folder), *worker_command(runtime, folder)]
        try:
            outcome, exit_code = await run_tool(command, folder, environment(runtime), seconds=seconds)
        except OSError as error:
            return Sanitized(status="failed", detail=f"{program} cannot be started: {error.strerror}")
        return _judge(text_of(folder / REPORT), exit_code, outcome)


def _command(program: Path, tool: Tool, folder: Path) -> list[str]:
    return [str(program), "--tool", tool, *OPTIONS, *TOOL_OPTIONS[tool], "--log-file", str(folder / REPORT)]


def environment(runtime: Runtime) -> dict[str, str]:
    """This process's environment, with one device allocation a tensor and the runtime's devices."""
    kept = {name: value for name, value in job_environment().items() if name not in UNSET}
    devices = {} if runtime.devices is None else {"CUDA_VISIBLE_DEVICES": runtime.devices}
    return {**kept, **devices, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def _judge(report: str, exit_code: int, outcome: Outcome) -> Sanitized:
    hazards = parse_report(report)
    if hazards:
        return Sanitized(status="found", hazards=hazards, detail=outcome.detail, items=outcome.items)
    why = _why_nothing_is_known(report, exit_code, outcome)
    return Sanitized(status="failed" if why else "clean", detail=why, items=outcome.items)


def _why_nothing_is_known(report: str, exit_code: int, outcome: Outcome) -> str:
    """Why a report without hazards does not show that there are none; empty where it does."""
    if message := complaint(report):
        return message
    if outcome.status != "answered":
        return f"the job did not answer: {outcome.detail}"
    errors = counted_errors(report)
    if errors or exit_code == ERRORS_SEEN:
        return f"{NAME} counts errors that it does not name"
    if exit_code != 0:
        return f"{NAME} ended with exit code {exit_code}"
    return f"{NAME} left no summary" if errors is None else ""
