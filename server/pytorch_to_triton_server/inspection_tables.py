"""What `inspect` found, as tables for a terminal."""

from collections.abc import Iterator, Sequence

from pytorch_to_triton.inspect.pages import configuration_of, issued, kinds, widths
from pytorch_to_triton.schema.compiled import CompiledKernel, Inspection
from pytorch_to_triton.schema.profile import Profile
from pytorch_to_triton_server.tables import TerminalTable


def inspection_tables(inspection: Inspection) -> Iterator[TerminalTable]:
    """Resources of each kernel, its instructions, what it takes at least, the remarks, and the profile."""
    yield resource_table(inspection)
    yield instruction_table(inspection)
    if any(kernel.estimate for kernel in inspection.kernels):
        yield estimate_table(inspection)
    remarks = remark_rows(inspection)
    if remarks:
        yield TerminalTable(("kernel", "remark"), remarks)
    if inspection.profile:
        yield profile_table(inspection.profile)


def compiled_at(inspection: Inspection) -> str:
    """`At M=1024 N=1024 with a_ptr: *fp16, b_ptr: *fp16.`; by kernel where their pointers differ."""
    signatures = {(kernel.compiled.name, pointers(kernel.compiled)): None for kernel in inspection.kernels}
    taken = [text for text in dict.fromkeys(text for _, text in signatures) if text]
    if len(taken) > 1:
        taken = [f"{name}({text})" for name, text in signatures if text]
    sizes = " ".join(f"{name}={size}" for name, size in inspection.dims.items())
    text = " ".join([f"at {sizes}"] * bool(sizes) + [f"with {', '.join(taken)}"] * bool(taken))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def pointers(kernel: CompiledKernel) -> str:
    """`x_ptr: *fp32, out_ptr: *fp32`, tensor descriptors included."""
    return ", ".join(
        f"{a.name}: {a.type}" for a in kernel.arguments if a.type.startswith(("*", "tensordesc"))
    )


def remark_rows(inspection: Inspection) -> list[tuple[str, str]]:
    """Kernels and their remarks; one row for a remark that several configurations share."""
    labels: dict[tuple[str, str], list[str]] = {}
    for kernel in inspection.kernels:
        for remark in kernel.remarks:
            labels.setdefault((kernel.compiled.name, remark.message), []).append(kernel.label)
    return [(join_labels(kernels), message) for (_, message), kernels in labels.items()]


def join_labels(labels: Sequence[str]) -> str:
    """`kernel#1 to #4, #6` of labels with one name."""
    name, mark, _ = labels[0].partition("#")
    if not mark:
        return name
    numbers = sorted({int(label.rpartition("#")[2]) for label in labels})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = (f"#{run[0]} to #{run[-1]}" if len(run) > 2 else ", ".join(f"#{n}" for n in run) for run in runs)
    return name + ", ".join(parts)


def resource_table(inspection: Inspection) -> TerminalTable:
    """One row a kernel that was compiled."""
    rows = []
    for kernel in inspection.kernels:
        compiled, used, occupancy = kernel.compiled, kernel.compiled.resources, kernel.occupancy
        if used is None or occupancy is None:
            continue
        rows.append(
            (
                kernel.label,
                configuration_of(kernel),
                " x ".join(map(str, compiled.grid or ())),
                str(used.registers),
                f"{used.spill_store_bytes} B",
                f"{used.shared_bytes} B",
                f"{100 * occupancy.share:.3g} % ({' and '.join(occupancy.binds)})",
            )
        )
    heading = ("kernel", "configuration", "grid", "registers", "spilled", "shared", "occupancy, limited by")
    return TerminalTable(heading, rows)


def instruction_table(inspection: Inspection) -> TerminalTable:
    """One row a kernel that was compiled: the instructions in its assembly, with their counts."""
    rows = [
        (
            kernel.label,
            widths(kernel.instructions, "load"),
            widths(kernel.instructions, "store"),
            widths(kernel.instructions, "async_copy"),
            f"{kernel.instructions.tma_loads} / {kernel.instructions.tma_stores}",
            ", ".join(f"{m.name} {m.operands} x {m.count}" for m in kernel.instructions.matrix),
        )
        for kernel in inspection.kernels
        if kernel.instructions is not None
    ]
    heading = ("kernel", "global loads", "global stores", "async copies", "TMA in / out", "tensor cores")
    return TerminalTable(heading, rows)


def estimate_table(inspection: Inspection) -> TerminalTable:
    """One row a kernel whose launch is known: what each warp issues, and what binds on the data sheet."""
    rows = [
        (
            kernel.label,
            issued(kernel),
            kinds(kernel),
            figure(estimate.waves, "{:.3g}"),
            f"{estimate.least_bytes / 1e6:.3g} MB",
            estimate.sentence,
        )
        for kernel in inspection.kernels
        if (estimate := kernel.estimate)
    ]
    heading = (
        "kernel",
        "instructions a warp",
        "most of them",
        "waves",
        "least traffic",
        "time, not measured",
    )
    return TerminalTable(heading, rows)


def profile_table(profile: Profile) -> TerminalTable:
    """One row a kernel that ran."""
    rows = [
        (
            kernel.name,
            str(kernel.launches),
            f"{kernel.microseconds:.2f}",
            figure(kernel.dram_gbytes_per_s, "{:.0f}"),
            figure(kernel.dram_share, "{:.1%}"),
            figure(kernel.achieved_occupancy, "{:.1%}"),
            figure(kernel.tensor_share, "{:.1%}"),
            ", ".join(f"{reason} {ratio:.1f}" for reason, ratio in list(kernel.stalls.items())[:3]),
        )
        for kernel in profile.kernels
    ]
    heading = ("kernel", "launches", "total us", "DRAM GB/s", "of peak", "occupancy", "tensor")
    return TerminalTable((*heading, "top stall reasons"), rows)


def figure(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)
