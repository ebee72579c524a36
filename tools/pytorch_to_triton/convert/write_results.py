"""The results of a conversion on disk: the kernel, its stages and both reports, as one folder."""

from pathlib import Path

from pytorch_to_triton.convert.conversion_report import markdown
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.results import Destination, Fresh, folder_for
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.target import Target

TOOL = "convert"


def destination_of(target: Target, into: Path | None, *, force: bool) -> Destination:
    """Where a target's results go: `converted/NAME` below the working directory by default."""
    folder = into or Path("converted") / snake(target.name or target.path.stem)
    return Destination(folder_for(folder), TOOL, target, force)


def kernel_file(function: str) -> str:
    """The name of the kernel's file."""
    return f"{snake(function)}_triton.py"


def delivered(conversion: Conversion, fresh: Fresh, name: str) -> Conversion:
    """The conversion as it is returned; writes the kernel and both reports next to the stages.

    The kernel is the last stage that passed. Where none did, there is none; the results of an earlier
    conversion that has one are kept in a folder of their own.
    """
    if conversion.kernel is not None:
        passed = [stage.file for stage in conversion.stages if stage.passed]
        conversion.kernel.write_text(passed[-1].read_text(encoding="utf-8"), encoding="utf-8")
    elif kept := fresh.keep_previous(name):
        conversion = with_note(conversion, f"The kernel of an earlier conversion was moved to {kept / name}.")
    relocated = fresh.relocated(conversion)
    (fresh.folder / "report.md").write_text(markdown(relocated), encoding="utf-8")
    (fresh.folder / "report.json").write_text(relocated.model_dump_json(indent=2), encoding="utf-8")
    return relocated


def with_note(conversion: Conversion, note: str) -> Conversion:
    """With the note also in the summary, which may be all that is read."""
    summary = f"{conversion.summary} {note}"
    return conversion.model_copy(update={"summary": summary, "notes": (*conversion.notes, note)})
