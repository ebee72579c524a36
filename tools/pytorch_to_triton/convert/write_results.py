"""The results of a conversion on disk: the kernel, its stages and both reports, as one folder."""

from pathlib import Path

from pytorch_to_triton.convert.conversion_report import markdown
from pytorch_to_triton.convert.draft.module import snake
from pytorch_to_triton.results import Destination, Fresh, folder_for
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.target import Target

TOOL = "convert"


def destination_of(target: Target, into: Path | None, *, force: bool) -> Destination:
    """Where a target's results go: `converted/NAME` below the working directory where nobody says."""
    folder = into or Path("converted") / snake(target.name or target.path.stem)
    return Destination(folder_for(folder), TOOL, target, force)


def kernel_file(function: str) -> str:
    """The name of the kernel's file."""
    return f"{snake(function)}_triton.py"


def delivered(conversion: Conversion, fresh: Fresh, name: str) -> Conversion:
    """The conversion as it is told, with the kernel and both reports beside the stages in the fresh folder.

    The kernel is the last stage that passed. Where none did, there is none; the results of an earlier
    conversion that has one are kept in a folder of their own.
    """
    if conversion.kernel is not None:
        passed = [stage.file for stage in conversion.stages if stage.passed]
        conversion.kernel.write_text(passed[-1].read_text(encoding="utf-8"), encoding="utf-8")
    elif kept := fresh.keep_previous(name):
        conversion = with_note(conversion, f"The kernel of an earlier conversion was moved to {kept / name}.")
    settled = fresh.settled(conversion)
    (fresh.folder / "report.md").write_text(markdown(settled), encoding="utf-8")
    (fresh.folder / "report.json").write_text(settled.model_dump_json(indent=2), encoding="utf-8")
    return settled


def with_note(conversion: Conversion, note: str) -> Conversion:
    """The note is for whoever reads the summary alone, too."""
    summary = f"{conversion.summary} {note}"
    return conversion.model_copy(update={"summary": summary, "notes": (*conversion.notes, note)})
