"""convert: a PyTorch function goes in, a validated Triton kernel with its report comes out, as one folder."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytorch_to_triton.convert.compiled_figures import compiled_at
from pytorch_to_triton.convert.conversion_report import (
    AS_FINISHED,
    default_notes,
    limit_notes,
    markdown,
    next_step_of,
    speedup_of,
    summary_of,
    traffic_note,
)
from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.example import as_called
from pytorch_to_triton.convert.finish.converted import module_name, recipe_of
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.convert.gates import gated
from pytorch_to_triton.convert.request import LAST, ConversionRequest
from pytorch_to_triton.convert.resolve import DraftOrigin, ResolvedTarget, resolve
from pytorch_to_triton.convert.stages import Staged, stages_of
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.draft.file.module import Drafted, by_reason
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.graph.trace_sizes import joined
from pytorch_to_triton.hardware.versions import Versions, versions
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.timing_dims import filled_in
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.results import Destination, Fresh, folder_for
from pytorch_to_triton.schema.conversion import AtSizes, Conversion
from pytorch_to_triton.schema.graph import Graph, NodeRef
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.conclusion import limit_sentences
from pytorch_to_triton.validate.request import command


async def convert(
    worker: WorkerClient,
    request: ConversionRequest,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Conversion:
    """Trace the target, draft and validate three stages, time them on a device, and write the results.

    The inputs come from the calls that an example makes, where one is named. Without a device every stage is
    validated under Triton's interpreter and no speed is reported. Raises NotConvertible where no pattern
    fits, BadInput where the target, its declaration, the example or the folder cannot be used.
    """
    seed = secrets.randbits(31) if request.seed is None else request.seed
    request = request.model_copy(update={"seed": seed, "pure": request.pure or request.strict})
    destination = destination_of(request.target, request.into, force=request.force)
    destination.check()
    request, guesses = await as_called(worker, request, runtime)
    target = await resolve(worker, request, runtime)
    target.convertible()
    with destination.fresh() as fresh:
        work = ConversionWork(worker, runtime, listener, target, fresh.folder)
        if request.strict:
            refuse_calls(work)
        staged = await stages_of(work)
        at, compiled = await at_sizes(work, staged), await compiled_at_sizes(work, staged)
        notes = (*guesses, filled_in(request.points, target.request.points), *staged.notes, *compiled)
        staged = replace(staged, notes=tuple(filter(None, notes)))
        conversion = conclude(work, staged, at, await versions(worker, runtime))
        name = f"{module_name(target.description.name)}.py"
        return deliver(*finish_files(conversion, target, staged.drafts, name), fresh, name)


def finish_files(
    conversion: Conversion, target: ResolvedTarget, drafts: Sequence[Drafted], name: str
) -> tuple[Conversion, Mapping[str, str]]:
    """What the last stage that passed becomes in the user's repository; nothing where none passed.

    Where no function can be made of it, the file `name` is the stage as it is, and a note says why.
    """
    passed = [d for stage, d in zip(conversion.stages, drafts, strict=False) if stage.passed]
    if not passed:
        return conversion, {}
    draft = passed[-1]
    limits = [limit for limit in draft.file.limits if limit not in target.declaration.requires]
    try:
        texts = files(recipe_of(target, draft.file, drafted=True), measured="").texts
        notes = limit_notes(limits, "go to PyTorch")
    except BadInput as refusal:
        texts = {name: draft.text}
        alone = f"{name} has `run` alone, without tests and fallback. {refusal.message}"
        notes = (*limit_notes(limits, "are refused"), alone)
        step = conversion.next_step.replace(AS_FINISHED, "")
        conversion = conversion.model_copy(update={"next_step": step})
    return conversion.model_copy(update={"notes": (*conversion.notes, *notes)}), texts


async def at_sizes(work: ConversionWork, staged: Staged) -> tuple[AtSizes, ...]:
    """What is known of the last stage that counts at each size that is timed."""
    passed = [stage for stage in gated(staged.reports, staged.tables) if stage.passed]
    tables = {point_name(table.dims): table for table in staged.tables}
    return tuple(
        [
            AtSizes(
                dims=case.dims,
                timing=(table := tables.get(point_name(case.dims))),
                speedup=speedup_of(passed, table),
                traffic=await work.traffic(passed[-1].file, case.dims) if passed else None,
            )
            for case in work.target.timing_cases()
        ]
    )


async def compiled_at_sizes(work: ConversionWork, staged: Staged) -> tuple[str, ...]:
    """What the compiler makes of the last stage that is right at each named size, where there is no GPU."""
    passed = [stage for stage in staged.reports if stage.passed]
    if not passed or not work.runtime.interpreter:
        return ()
    return tuple([await compiled_at(work, passed[-1].file, point) for point in work.request.points])


def refuse_calls(work: ConversionWork) -> None:
    """Raises NotConvertible where something would stay a call of PyTorch."""
    if left := work.drafted(1, PURE).left:
        raise NotConvertible(
            f"{work.target.description.name} would leave calls to PyTorch: {by_reason(left)}.",
            "Leave out --strict to convert what is around them, or write kernels for them by hand.",
        )


def conclude(work: ConversionWork, staged: Staged, at: tuple[AtSizes, ...], found: Versions) -> Conversion:
    """The conversion's outcome, from its stages."""
    stages = gated(staged.reports, staged.tables)
    passed = [s for s in stages if s.passed]
    target = work.target
    name = target.description.name
    kernel = work.folder / f"{module_name(name)}.py" if passed else None
    speed = "speed measured by device events" if staged.tables else "speed not measured"
    machine = stages[0].verdict.device if stages else "none"
    shown = passed[-1] if passed else stages[-1]
    again = work.request.validation_of(Target(path=kernel or shown.file), LAST, shown.calls)
    return Conversion(
        summary=summary_of(name, stages, at),
        next_step=next_step_of(stages, kernel, at),
        verdict="converted" if passed and passed[-1].stage == LAST else "stopped",
        target=str(work.request.target),
        kernel=kernel,
        folder=work.folder,
        stages=stages,
        at=at,
        device=f"{machine}; torch {found.torch}, Triton {found.triton}",
        notes=(
            *(f"{dim} is {size} in the kernel: it shapes the program." for dim, size in target.fixed.items()),
            *default_notes(target.undeclared_defaults),
            *notes_of(target.convertible(), dict(staged.left)),
            *(
                f"Stage {shown.stage} leaves to PyTorch: {by_reason(drafted.left)}."
                for drafted in staged.drafts[shown.stage - 1 : shown.stage]
                if drafted.left
            ),
            *limit_sentences(shown.verdict.limits),
            *staged.notes,
            *(
                traffic_note(sizes.dims, sizes.traffic, on_gpu=not work.runtime.interpreter)
                for sizes in at
                if sizes.traffic
            ),
        ),
        provenance=f"correctness measured; {speed}",
        replay=command(again, work.runtime, shown.verdict.seed, None),
    )


def notes_of(origin: DraftOrigin | CutOrigin, left: Mapping[str, str]) -> tuple[str, ...]:
    """What the trace holds for, and what the target does that no kernel of the draft does; parts that are
    `left` to PyTorch have none."""
    if isinstance(origin, CutOrigin):
        return origin.cut.without(left).notes
    traced, graph = origin.traced, origin.traced.graph
    values = dict.fromkeys(joined(branch.values) for branch in traced.branches if branch.values)
    sizes = dict.fromkeys(joined(b.sizes) for b in traced.branches if b.sizes and not b.values)
    notes = []
    if values:
        notes.append(f"{_choose('Values', values)}, which alone is timed and tuned.")
    if sizes:
        notes.append(f"{_choose('Sizes', sizes)}.")
    notes += [f"The trace holds only where {condition}." for condition in traced.holds_where]
    if graph.autocast:
        notes.append('torch.autocast("cuda") casts in the kernels as on a GPU; on a CPU it does nothing.')
    notes += [
        f"{name} is drawn in no order, and where boundaries are not sorted PyTorch's own result means "
        f"nothing: a kernel may differ there without a mistake. Sort it in the function, "
        f"{name}.sort().values, and declare its range, in 0..1, as NaN has no place among them."
        for name in unsorted_boundaries(graph)
    ]
    if updated := ", ".join(graph.updated):
        notes.append(f"The module in training also updates {updated}; only what it returns is converted.")
    return tuple(notes)


BOUNDARIES = {"aten.bucketize.Tensor": 1, "aten.searchsorted.Tensor": 0}
"""Operators that take what is sorted, and the place of it."""


def unsorted_boundaries(graph: Graph) -> list[str]:
    """The inputs that are to be sorted; a module's own are as the module has them."""
    drawn = {tensor.name for tensor in graph.inputs} - graph.state.keys()
    nodes = (node for node in graph.nodes if node.op in BOUNDARIES and "sorter" not in node.kwargs)
    taken = (node.args[BOUNDARIES[node.op]] for node in nodes)
    return list(dict.fromkeys(a.name for a in taken if isinstance(a, NodeRef) and a.name in drawn))


def _choose(what: str, conditions: Iterable[str]) -> str:
    return f"{what} choose the program: one where {'; one where '.join(conditions)}; else another"


TOOL = "convert"


def destination_of(target: Target, into: Path | None, *, force: bool) -> Destination:
    """Where a target's results go: `converted/NAME` below the working directory by default."""
    folder = into or Path("converted") / snake(target.name or target.path.stem)
    return Destination(folder_for(folder), TOOL, target, force)


def deliver(conversion: Conversion, finished: Mapping[str, str], fresh: Fresh, name: str) -> Conversion:
    """The conversion as it is returned; writes the finished files and both reports next to the stages.

    `name` is the file of the kernel, and `finished` has the text of each file. Where no stage passed there
    are none; the results of an earlier conversion that has some are kept in a folder of their own.
    """
    for file, text in finished.items():
        (fresh.folder / file).write_text(text, encoding="utf-8")
    if conversion.kernel is None and (kept := fresh.keep_previous(name)):
        # Also in the summary, which may be all that is read.
        note = f"The kernel of an earlier conversion was moved to {kept / name}."
        added = {"summary": f"{conversion.summary} {note}", "notes": (*conversion.notes, note)}
        conversion = conversion.model_copy(update=added)
    relocated = fresh.relocated(conversion)
    (fresh.folder / "report.md").write_text(markdown(relocated), encoding="utf-8")
    (fresh.folder / "report.json").write_text(relocated.model_dump_json(indent=2), encoding="utf-8")
    return relocated
