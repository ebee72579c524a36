"""What compute-sanitizer's report says: lines with a prefix, a record of several lines for each hazard.

Formats: docs.nvidia.com/compute-sanitizer/ComputeSanitizer, and reports of its versions 2021 to 2025.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pytorch_to_triton.schema.value import Value

HAZARDS = 20
"""At most this many different hazards are reported."""

LINE = re.compile(r"={8,10} *(.*?)\s*$")
INVALID = re.compile(r"Invalid __(\w+)__ (\w+|\?) of size ([\d.,]+) bytes?")
RACE = re.compile(
    r"(\w+): *(?:\([^)]*\) *)?(?:Race reported between (\w+) access at (.*)|Potential (RAW|WAR|WAW) hazard)"
)
OTHER_ACCESS = re.compile(r"and (\w+) access at (.*)")
THREAD_ACCESS = re.compile(r"(Read|Write) Thread \([^)]*\) at (.*)")
LEAK = re.compile(r"Leaked ([\d.,]+) bytes")
API = re.compile(r"Program hit .* on CUDA API call to")
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


class Hazard(Value):
    """One kind of wrong access at one place."""

    kind: str
    """`read`, `write`, `atomic` or `access`, where memory is outside of its allocation or misaligned; `race`;
    `write race`, between writes alone; `possible race`, of which the tool only warns; `leak`; `api`; else the
    tool's own words."""
    space: str = ""
    """`global`, `shared` or `local`; empty where the tool does not say."""
    kernel: str = ""
    """Of C++ kernels with its signature."""
    file: str | None = None
    """A path or a name, as the kernel's line information has it and the tool shortens it."""
    line: int | None = None
    size_bytes: int | None = None
    """What one thread accesses at once, or what leaked."""
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
    for hazard in map(_hazard, _records(report_lines(text))):
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


@dataclass
class HazardRecord:
    """What is known of one hazard while its lines are read."""

    kind: str
    space: str = ""
    size: int | None = None
    count: int = 1
    place: str | None = None
    outermost: str = ""
    """The last device frame: the kernel, where the place is in a function that it calls."""
    accesses: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    outside: int | None = None


def _records(lines: Iterable[str]) -> Iterator[HazardRecord]:
    record: HazardRecord | None = None
    unknown = ""
    for line in lines:
        if begun := _begun(line):
            if record:
                yield record
            record, unknown = begun, ""
        elif not line or line.startswith("Saved host backtrace"):
            if record:
                yield record
            record, unknown = None, ""
        elif record is not None:
            _take(record, line)
        elif unknown and (place := PLACE.match(line)):
            record = HazardRecord(kind=unknown, place=place[1])
        else:
            unknown = line
    if record:
        yield record


def _begun(line: str) -> HazardRecord | None:
    """A record that starts with this line."""
    if match := INVALID.match(line):
        kind = match[2] if match[2] in ("read", "write", "atomic") else "access"
        return HazardRecord(kind=kind, space=match[1], size=_number(match[3]))
    if match := RACE.match(line):
        record = HazardRecord(kind=_race(match[1], match[4] or match[2]), space="shared")
        if match[3]:
            record.count = 0
            _note_access(record, match[2], match[3])
        return record
    if match := LEAK.match(line):
        return HazardRecord(kind="leak", size=_number(match[1]), words=[ADDRESS.sub("", line)])
    if API.match(line):
        return HazardRecord(kind="api", words=[line])
    return None


def _race(severity: str, accesses: str) -> str:
    if severity.upper() != "ERROR":
        return "possible race"
    return "write race" if accesses in ("WAW", "Write") else "race"


def _take(record: HazardRecord, line: str) -> None:
    """Add one more line of a record."""
    if access := OTHER_ACCESS.match(line):
        counted = COUNTED.search(line)
        record.count += _number(counted[1]) if counted else 1
        if record.kind == "write race" and access[1] == "Read":
            record.kind = "race"
        _note_access(record, access[1], access[2])
    elif access := THREAD_ACCESS.match(line):
        _note_access(record, access[1], access[2])
    elif frame := FRAME.match(line):
        record.outermost = frame[1]
    elif ACCESS.match(line):
        record.words.append(ADDRESS.sub("", line))
        nearest = NEAREST.match(line)
        record.outside = _number(nearest[1]) if nearest else record.outside
    elif record.place is None and (place := PLACE.match(line)):
        record.place = place[1]


def _note_access(record: HazardRecord, access: str, place: str) -> None:
    record.place = record.place or place
    _, file, line = _locate(place)
    at = f" at {file}:{line}" if file else ""
    record.accesses.append(f"{access.lower()}{at}")


def _hazard(record: HazardRecord) -> Hazard:
    kernel, file, line = _locate(record.place or "")
    words = " ".join(record.words) or " and ".join(dict.fromkeys(record.accesses))
    return Hazard(
        kind=record.kind,
        space=record.space,
        kernel=_locate(record.outermost)[0] or kernel,
        file=file,
        line=line,
        size_bytes=record.size,
        outside_bytes=record.outside,
        misaligned="is misaligned" in words,
        detail=words,
        count=max(1, record.count),
    )


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
