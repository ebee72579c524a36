"""A benchmark's folder: the Markdown report, the JSON and the pictures."""

from collections.abc import Callable, Iterator, Sequence

from pydantic import JsonValue

from pytorch_to_triton.benchmark.figures import PASSES, digits, percent, size_of
from pytorch_to_triton.benchmark.flags import all_flags, flag_text
from pytorch_to_triton.benchmark.pictures import draw
from pytorch_to_triton.benchmark.verdict import best_baseline
from pytorch_to_triton.results import Destination
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, KERNEL, Benchmark, Conditions
from pytorch_to_triton.schema.timing import Ceilings, Timing, TimingTable

MISSING = "not measured"
HEADINGS = {EAGER: "PyTorch ms", COMPILE: "torch.compile ms"}

Cells = Sequence[str]


def write_report(benchmark: Benchmark, destination: Destination) -> Benchmark:
    """The benchmark with its pictures; they, report.md and report.json are in the destination then.

    Raises BadInput where the destination is not a benchmark's of this kernel to replace.
    """
    with destination.fresh() as fresh:
        pictures = {"pictures": draw(benchmark, fresh.folder), "folder": fresh.folder}
        whole = fresh.relocated(benchmark.model_copy(update=pictures))
        (fresh.folder / "report.md").write_text(markdown(whole), encoding="utf-8")
        (fresh.folder / "report.json").write_text(whole.model_dump_json(indent=2), encoding="utf-8")
    return whole


def markdown(benchmark: Benchmark) -> str:
    """The report file."""
    sections = (
        ("Conditions", conditions_section),
        ("Speed", speed_section),
        ("Kernel, call and graph", details_section),
        ("Red flags", flags_section),
        ("Tuned configurations", tuned_section),
        ("Pictures", pictures_section),
        ("To repeat", repeat_section),
    )
    lines = [f"# {benchmark.kernel}", "", benchmark.summary, "", benchmark.next_step, ""]
    for heading, section in sections:
        body = list(section(benchmark))
        if body:
            lines += [f"## {heading}", "", *body, ""]
    return "\n".join(lines)


def brief_table(benchmark: Benchmark) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows for a terminal: each size with its times, the speedup over each baseline
    in brackets, and its share of the limit."""
    if benchmark.verdict == "estimated":
        limits = [(table, table.limit) for table in benchmark.tables]
        least = [(size_of(t), f"{digits(m.ms)} (estimated)", m.binds) for t, m in limits if m]
        return ("size", "minimum ms", "bound by"), [*least]
    others = others_in(benchmark.tables)
    rows: list[tuple[str, ...]] = []
    for table in benchmark.tables:
        kernel = table.of(KERNEL)
        timings = [table.of(label) for label in others]
        compared = [f"{figure(t.median_ms)} ({ratio(kernel, t)})" if t else MISSING for t in timings]
        binds = table.limit.binds if table.limit else "not known"
        own = figure(kernel.median_ms if kernel else None)
        rows.append((size_of(table), own, *compared, share_of(kernel), binds))
    return ("size", "kernel ms", *(f"{label} ms" for label in others), "of limit", "bound by"), rows


def conditions_section(benchmark: Benchmark) -> Iterator[str]:
    """Where and how the figures were taken."""
    yield f"- Device: {benchmark.device}."
    yield f"- Figures: {benchmark.provenance}."
    if benchmark.conditions:
        yield f"- State while timing: {state_of(benchmark.conditions)}."
    yield f"- Ceilings: {ceilings_of(benchmark.ceilings)}."
    yield f"- Precision: {benchmark.precision}."
    how = dict.fromkeys(table.work.provenance for table in benchmark.tables if table.work)
    yield f"- Work of the {PASSES[benchmark.passes]}: {'; '.join(how) or 'not known'}."
    if benchmark.seed is not None:
        yield f"- Seed: {benchmark.seed}."


def state_of(conditions: Conditions) -> str:
    """Clocks and temperature, or why they are not known."""
    parts = [f"driver {conditions.driver}" if conditions.driver else ""]
    if conditions.sm_clock_mhz:
        low, high = conditions.sm_clock_mhz
        most = f" of at most {conditions.max_sm_clock_mhz:,}" if conditions.max_sm_clock_mhz else ""
        parts.append(f"clocks {low:,} to {high:,}{most} MHz")
    if conditions.temperature_celsius is not None:
        parts.append(f"up to {conditions.temperature_celsius} °C")
    return f"{', '.join(filter(None, parts)) or MISSING} ({conditions.provenance})"


def ceilings_of(ceilings: Ceilings | None) -> str:
    """What the device can do at most, and how that is known."""
    if ceilings is None:
        return MISSING
    rates = ", ".join(f"{dtype} {rate:,.1f}" for dtype, rate in ceilings.matmul_tflops.items()) or MISSING
    what = "copy" if ceilings.provenance == "measured" else "memory"
    bandwidth = f"{what} {ceilings.copy_gbytes_per_s:,.0f} GB/s"
    return f"{bandwidth}; products in TFLOP/s: {rates} ({ceilings.provenance}, {ceilings.source})"


def speed_section(benchmark: Benchmark) -> Iterator[str]:
    """One row a size."""
    if benchmark.verdict == "estimated":
        yield from estimate_table(benchmark.tables)
        return
    yield "Medians on the device with 95 % confidence intervals, cold L2 cache, implementations alternating."
    yield ""
    labels = others_in(benchmark.tables)
    headings = ["size", "dtype", "Triton ms", "95 % interval", *(HEADINGS.get(o, f"{o} ms") for o in labels)]
    headings += ["speed-up vs eager", "speed-up vs best", "rate", "of the limit", "bound by"]
    yield from table_lines(headings, [speed_row(table, labels) for table in benchmark.tables])
    for table in benchmark.tables:
        for label, why in table.failed.items():
            yield f"\n{label} could not be timed at {size_of(table)}: {why}"
    if any((timing.share_of_limit or 0) > 1 for table in benchmark.tables for timing in table.timings):
        yield "\nMore than 100 % of the limit: a call did less work than counted, or data stayed in cache."


def speed_row(table: TimingTable, others: Sequence[str]) -> Cells:
    kernel, eager, best = table.of(KERNEL), table.of(EAGER), best_baseline(table)
    times = [figure(timing.median_ms if (timing := table.of(label)) else None) for label in others]
    interval = f"{digits(kernel.low_ms)} to {digits(kernel.high_ms)}" if kernel else MISSING
    return [
        size_of(table),
        dtypes_of(table),
        figure(kernel.median_ms if kernel else None),
        interval,
        *times,
        ratio(kernel, eager),
        ratio(kernel, best),
        rate_of(table, kernel),
        share_of(kernel),
        table.limit.binds if table.limit else "not known",
    ]


def share_of(timing: Timing | None) -> str:
    """Of the limit."""
    if timing is None or timing.share_of_limit is None:
        return MISSING
    return percent(timing.share_of_limit)


def rate_of(table: TimingTable, timing: Timing | None) -> str:
    """TFLOP/s where compute binds, else GB/s."""
    if timing and timing.tflops is not None and table.limit and table.limit.binds == "compute":
        return f"{timing.tflops:,.1f} TFLOP/s"
    if timing and timing.gbytes_per_s is not None:
        return f"{timing.gbytes_per_s:,.0f} GB/s"
    return MISSING


def estimate_table(tables: Sequence[TimingTable]) -> Iterator[str]:
    """What is known without running anything."""
    yield "Nothing was run. The minimum times follow from a data sheet; real ones are longer."
    yield ""
    rows = [
        [
            size_of(table),
            dtypes_of(table),
            f"{digits(table.limit.ms)} (estimated)" if table.limit else "not known",
            table.limit.binds if table.limit else "not known",
            megabytes(table.bytes_moved),
            digits(sum(table.work.flops.values()) / 1e9) if table.work else "not known",
            MISSING,
        ]
        for table in tables
    ]
    yield from table_lines(
        ["size", "dtype", "minimum ms", "bound by", "MB moved", "GFLOP", "Triton ms"], rows
    )


def details_section(benchmark: Benchmark) -> Iterator[str]:
    """One row a size and callable."""
    columns: dict[str, Callable[[Timing], str]] = {
        "kernel ms": lambda t: figure(t.median_ms),
        "call ms": lambda t: figure(t.wall_ms),
        "as CUDA graph ms": lambda t: figure(t.graph_ms),
        "outside clock ms": lambda t: figure(t.outside_ms),
        "all streams ms": lambda t: figure(t.busy_ms),
        "launches": lambda t: MISSING if t.kernels is None else f"{t.kernels:g}",
        "first call ms": lambda t: MISSING if t.first_call_ms is None else f"{t.first_call_ms:,.0f}",
        "peak memory MB": lambda t: MISSING if t.peak_bytes is None else megabytes(t.peak_bytes),
        "note": lambda t: "; ".join(t.notes),
    }
    rows = [
        [size_of(table), timing.label, *(column(timing) for column in columns.values())]
        for table in benchmark.tables
        for timing in table.timings
    ]
    if rows:
        yield from table_lines(["size", "", *columns], rows)


def flags_section(benchmark: Benchmark) -> Iterator[str]:
    """The worst first."""
    if benchmark.verdict == "estimated":
        return
    flags = all_flags(benchmark.tables, benchmark.flags)
    yield from (f"- {flag.kind.replace('_', ' ')}: {flag_text(size, flag)}" for size, flag in flags)
    if not flags:
        yield "None."


def tuned_section(benchmark: Benchmark) -> Iterator[str]:
    """What autotuning chose, and what searches found."""
    yield from (f"- {note}" for note in benchmark.notes)
    rows = [
        [t.kernel, pairs(t.key), pairs(t.config), MISSING if t.seconds is None else f"{t.seconds:.1f}"]
        for t in benchmark.tuned
    ]
    if rows:
        yield from table_lines(["kernel", "at", "configuration", "tuning s"], rows)
    if benchmark.frozen:
        yield f"\n{benchmark.frozen} holds them as a table and does no tuning."


def pairs(values: dict[str, JsonValue]) -> str:
    """`BLOCK_N=1024 num_warps=8`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def pictures_section(benchmark: Benchmark) -> Iterator[str]:
    """They lie beside the report."""
    for picture in benchmark.pictures:
        yield f"![{picture.stem}]({picture.name})"


def repeat_section(benchmark: Benchmark) -> Iterator[str]:
    """The command that measures the same again."""
    if benchmark.replay:
        yield f"    {benchmark.replay}"


def others_in(tables: Sequence[TimingTable]) -> list[str]:
    """The labels of all baselines that were timed or should have been, in their order."""
    labels = [label for t in tables for label in (*(timing.label for timing in t.timings), *t.failed)]
    return [label for label in dict.fromkeys(labels) if label != KERNEL]


def dtypes_of(table: TimingTable) -> str:
    return ", ".join(dict.fromkeys(table.dtypes.values()))


def figure(milliseconds: float | None) -> str:
    return MISSING if milliseconds is None else digits(milliseconds)


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}"


def ratio(kernel: Timing | None, other: Timing | None) -> str:
    return f"{other.median_ms / kernel.median_ms:.2f}" if kernel and other else MISSING


def table_lines(headings: Cells, rows: Sequence[Cells]) -> Iterator[str]:
    """A Markdown table."""
    yield _line(headings)
    yield _line(["---"] * len(headings))
    yield from (_line(row) for row in rows)


def _line(cells: Cells) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
