"""A conversion in words: the summary, and the Markdown report in the conversion's folder."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytorch_to_triton.benchmark.figures import is_not_slower
from pytorch_to_triton.convert.gates import COMPILE, EAGER, label_of
from pytorch_to_triton.inputs.expression import names_in, point_name
from pytorch_to_triton.schema.conversion import AtSizes, Conversion, Speedup, StageReport
from pytorch_to_triton.schema.session import TimedAt
from pytorch_to_triton.schema.timing import Timing, TimingTable, Traffic
from pytorch_to_triton.schema.verdict import CaseStatus, Verdict
from pytorch_to_triton.validate.conclusion import most_telling, not_tried, skipped_text, wrong_of
from pytorch_to_triton.validate.judge import MEMORY

BASELINES = (EAGER, COMPILE)
PLAIN = {EAGER: "eager PyTorch", COMPILE: "torch.compile"}
"""What baselines are called in a sentence."""
IN_A_SESSION = "`convert start` opens a session with the same draft, which you can correct there."
AS_FINISHED = ": its docstring shows how; tests are beside it"
WAYS_ON: dict[CaseStatus | None, str] = {
    "timed_out": "Give a call more time (--timeout), or declare smaller sizes.",
    "raised": "Declare only sizes and values that the draft takes, as its message says.",
}
"""By how the telling case of a draft ended, where that does not say whose fault it is."""


def summary_of(name: str, stages: Sequence[StageReport], at: Sequence[AtSizes]) -> str:
    """The conversion in a sentence, which says first where the kernel is slower than PyTorch."""
    passed = [s for s in stages if s.passed]
    speed = [*faster_texts(at)]
    if not any(timed_at(at)):
        has_gpu = any(sizes.timing for sizes in at)
        speed = ["speed not measured (no GPU)" if passed and not has_gpu else "speed not measured"]
    return f"{name}: {'; '.join([*slower_texts(at), *outcomes(stages), *speed])}."


def outcomes(stages: Sequence[StageReport]) -> Iterator[str]:
    """Which stages passed, and why no other one did."""
    passed = [s for s in stages if s.passed]
    closed = next((s for s in stages if not s.passed), None)
    missing = dict.fromkeys(size for s in stages for size in not_tried(s.verdict.skipped))
    if closed is not None:
        last = passed[-1:]
        yield from (f"stage {stage.stage} ({stage.name}) is the kernel" for stage in last)
        yield from ["no stage passed"] * (not last)
        yield why_closed(closed)
    elif missing:
        tried = "all three stages are right at the sizes tried"
        yield f"{tried}, and {', '.join(missing)} not tried (too large for this run)"
    else:
        yield "all three stages are validated"


def why_closed(stage: StageReport) -> str:
    """Why a gate did not open."""
    if stage.verdict.verdict != "passed":
        outcome = "is not validated" if stage.verdict.verdict == "failed" else "is undecided"
        return f"stage {stage.stage} ({stage.name}) {outcome}: {stage.verdict.summary.rstrip('.')}"
    return f"stage {stage.stage} ({stage.name}) is right, but slower than the stage before"


def slower_texts(at: Sequence[AtSizes]) -> Iterator[str]:
    """Where the best stage is slower than the faster of eager PyTorch and torch.compile."""
    for sizes, table, speedup in timed_at(at):
        if speedup.slower:
            text = f"slower than {PLAIN[speedup.baseline]} {place(table)}: it takes "
            moved = f" and {moves(sizes.traffic)}" if sizes.traffic else ""
            yield f"{text}{1 / speedup.ratio:.2f} times as long{moved}"


def faster_texts(at: Sequence[AtSizes]) -> Iterator[str]:
    for _, table, speedup in timed_at(at):
        if not speedup.slower:
            yield f"{speedup.ratio:.2f} times as fast as {PLAIN[speedup.baseline]} {place(table)}"


def timed_at(at: Sequence[AtSizes]) -> Iterator[tuple[AtSizes, TimingTable, Speedup]]:
    """The sizes at which the kernel was timed beside PyTorch."""
    for sizes in at:
        if sizes.timing and sizes.speedup:
            yield sizes, sizes.timing, sizes.speedup


def place(table: TimingTable) -> str:
    return f"on {table.device} at {sizes_of(table)}"


def speedup_of(passed: Sequence[StageReport], table: TimingTable | None) -> Speedup | None:
    """The last of these stages beside the faster baseline; None where one side was not timed."""
    own = table.of(label_of(passed[-1].stage)) if table and passed else None
    if table is None or own is None:
        return None
    timings = {label: timing for label in BASELINES if (timing := table.of(label))}
    if not timings:
        return None
    label = min(timings, key=lambda name: timings[name].median_ms)
    baseline = timings[label]
    return Speedup(
        baseline=label,
        ratio=baseline.median_ms / own.median_ms,
        slower=not is_not_slower(own.low_ms, baseline.high_ms),
    )


def beside_eager(times: Iterable[TimedAt]) -> str:
    """`2.00 times as fast as eager PyTorch at M=64 (0.1000 ms against 0.2000 ms)`, size by size; empty where
    nothing was timed."""
    return ", ".join(map(beside_eager_at, times))


def beside_eager_at(timed: TimedAt) -> str:
    where = f" at {point_name(timed.dims)}" if timed.dims else ""
    if timed.eager_ms is None:
        return f"{timed.median_ms:.4f} ms{where}"
    figures = f"({timed.median_ms:.4f} ms against {timed.eager_ms:.4f} ms)"
    if timed.median_ms > timed.eager_ms:
        return f"slower than eager PyTorch{where} {figures}"
    return f"{timed.eager_ms / timed.median_ms:.2f} times as fast as eager PyTorch{where} {figures}"


def moves(traffic: Traffic) -> str:
    """What binds where memory does: `moves 3.1 times the bytes that are needed, in 5 launches`."""
    return f"moves {traffic.times_least:.2f} times the bytes that are needed, in {launch_count(traffic)}"


def launch_count(traffic: Traffic) -> str:
    """`5 launches`"""
    count = len(traffic.launches)
    return f"{count} launch{'es' if count != 1 else ''}"


def traffic_note(dims: Mapping[str, int], traffic: Traffic, *, on_gpu: bool) -> str:
    """The bytes that its launches move, each tensor once by each, beside the fewest that are possible."""
    how, where = "" if on_gpu else " (no GPU)", point_name(dims) or "its own sizes"
    moved = f"{traffic.bytes_moved / 1e6:,.1f} MB in {launch_count(traffic)}"
    return (
        f"Estimate{how}: at {where} memory traffic is {moved}, {traffic.times_least:.2f} times the minimum."
    )


def default_notes(defaults: Mapping[str, str]) -> tuple[str, ...]:
    """Which arguments have their defaults, given as `repr` shows them, in the kernels, as nobody declared
    them. Objects, `<module.Class object at ...>`, nobody can declare."""
    objects = [name for name, default in defaults.items() if default.startswith("<")]
    values = [f"{name} is {default}" for name, default in defaults.items() if name not in objects]
    notes = [f"{name} is the object that is its default in the kernel." for name in objects]
    if len(values) == 1:
        notes.append(f"{values[0]} in the kernel, its default: declare it as an input for another value.")
    elif values:
        listed = ", ".join(values)
        notes.append(f"{listed} in the kernel, their defaults: declare them as inputs for other values.")
    return tuple(notes)


def limit_notes(limits: Sequence[str], others: str) -> tuple[str, ...]:
    """Which sizes the kernels take, where not all, and what becomes of `others`."""
    if not limits:
        return ()
    names = " or ".join(sorted(frozenset().union(*map(names_in, limits))))
    served = f"Kernels serve {' and '.join(limits)}; larger sizes {others}."
    return (f"{served} Declare a larger {names} to change that.",)


def sizes_of(table: TimingTable) -> str:
    """Where the timing was taken."""
    dims = point_name(table.dims) or "its own sizes"
    dtypes = ", ".join(dict.fromkeys(table.dtypes.values()))
    moved = f", {table.bytes_moved / 1e6:.0f} MB moved" if table.bytes_moved else ""
    return f"{dims} ({dtypes}{moved})"


def next_step_of(stages: Sequence[StageReport], kernel: Path | None, at: Sequence[AtSizes]) -> str:
    """What to do with the result."""
    if kernel is None:
        return f"{why_without_kernel(stages[-1].verdict)} {IN_A_SESSION} {again(stages[-1])}"
    use = f"Use {nearby(kernel)} in place of the PyTorch function{AS_FINISHED}"
    if failing := next((s for s in stages if s.verdict.verdict != "passed"), None):
        return f"{use}. Look at the failing stage before going on. {again(failing)}"
    if not any(sizes.timing for sizes in at):
        return f"{use}. Run the same command on a machine with a GPU to measure its speed."
    slower = [(table, speedup) for _, table, speedup in timed_at(at) if speedup.slower]
    kept = {"torch.compile" if s.baseline == COMPILE else "the PyTorch function": None for _, s in slower}
    if slower and len(slower) == len([*timed_at(at)]):
        return f"Keep {' or '.join(kept)}, which is faster at these sizes; {nearby(kernel)} is right, though."
    if slower:
        sizes = " and ".join(point_name(table.dims) for table, _ in slower)
        return f"{use}. At {sizes} keep {' or '.join(kept)}, which is faster there."
    return f"{use}."


def again(stage: StageReport) -> str:
    """How the telling case of a stage that is not right is run again; the command has the seed."""
    return f"Run its telling case again: {stage.verdict.replay}"


def why_without_kernel(verdict: Verdict) -> str:
    """What to do about a draft that did not pass, which is at fault only where its own results say so."""
    wrong = wrong_of(verdict.cases)
    if any(case.mismatches or any(v.kind in MEMORY for v in case.violations) for case in wrong):
        return "The draft is at fault, not your function: please report it."
    status = most_telling(wrong).status if wrong else None
    return WAYS_ON.get(status, verdict.next_step)


def nearby(path: Path) -> str:
    """The path as seen from the working directory, where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def markdown(conversion: Conversion) -> str:
    """The report file."""
    lines = [
        f"# {conversion.target}",
        "",
        conversion.summary,
        "",
        f"Provenance: {conversion.provenance}. Device: {conversion.device}.",
        "",
        "| stage | gate | cases | kernels | passes over a row | against the stage before | file |",
        "|---|---|---|---|---|---|---|",
        *(stage_row(s) for s in conversion.stages),
        "",
        *timing_sections([sizes.timing for sizes in conversion.at if sizes.timing], conversion.stages),
        *(f"- {note}" for note in conversion.notes),
        *([""] if conversion.notes else []),
        *skipped_section(conversion.stages),
        "## Again",
        "",
        f"    {conversion.replay}",
        "",
    ]
    return "\n".join(lines)


def stage_row(stage: StageReport) -> str:
    gate = "open" if stage.passed else "closed"
    cases = counted(stage.verdict)
    passes = ", ".join(str(p) for p in stage.passes)
    return (
        f"| {stage.stage} {stage.name} | {gate} | {cases} | {len(stage.kernels)} | {passes} | {stage.speed} "
        f"| {stage.file.name} |"
    )


def counted(verdict: Verdict) -> str:
    """How many cases came out how."""
    counts = Counter(c.status for c in verdict.cases)
    skipped = counts.pop("skipped", 0)
    others = [f"{count} {status.replace('_', ' ')}" for status, count in counts.items()]
    return ", ".join([*others, *([skipped_text(verdict.cases)] if skipped else [])]) or "none"


def timing_sections(tables: Sequence[TimingTable], stages: Sequence[StageReport]) -> list[str]:
    if tables:
        return [line for table in tables for line in timing_section(table)]
    why = "no GPU" if any(s.passed for s in stages) else "no stage passed"
    return [f"Speed: not measured, {why}.", ""]


def timing_section(table: TimingTable) -> list[str]:
    eager = table.of(EAGER)
    rows = [timing_row(t, eager) for t in table.timings]
    return [
        f"## Speed on {table.device}",
        "",
        f"At {sizes_of(table)}; medians with 95 % confidence intervals, cold L2, taken in turn.",
        "",
        "| | ms | interval | GB/s | speed-up vs eager |",
        "|---|---|---|---|---|",
        *rows,
        *(f"\n{label} could not be timed: {why}" for label, why in table.failed.items()),
        "",
    ]


def timing_row(timing: Timing, eager: Timing | None) -> str:
    ratio = f"{eager.median_ms / timing.median_ms:.2f}" if eager else "not available"
    rate = f"{timing.gbytes_per_s:.0f}" if timing.gbytes_per_s else "not available"
    interval = f"{timing.low_ms:.4f} to {timing.high_ms:.4f}"
    return f"| {timing.label} | {timing.median_ms:.4f} | {interval} | {rate} | {ratio} |"


def skipped_section(stages: Sequence[StageReport]) -> list[str]:
    skipped = {(s.what, s.why) for stage in stages for s in stage.verdict.skipped}
    if not skipped:
        return []
    return ["## Not tried", "", *(f"- {what}: {why}" for what, why in sorted(skipped)), ""]
