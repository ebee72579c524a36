"""The results of a conversion on disk: the finished files, the stages and both reports, as one folder."""

from collections.abc import Mapping
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


def delivered(conversion: Conversion, finished: Mapping[str, str], fresh: Fresh, name: str) -> Conversion:
    """The conversion as it is returned; writes the finished files and both reports next to the stages.

    `name` is the file of the kernel, and `finished` has the text of each file. Where no stage passed there
    are none; the results of an earlier conversion that has some are kept in a folder of their own.
    """
    for file, text in finished.items():
        (fresh.folder / file).write_text(text, encoding="utf-8")
    if conversion.kernel is None and (kept := fresh.keep_previous(name)):
        conversion = with_note(conversion, f"The kernel of an earlier conversion was moved to {kept / name}.")
    relocated = fresh.relocated(conversion)
    (fresh.folder / "report.md").write_text(markdown(relocated), encoding="utf-8")
    (fresh.folder / "report.json").write_text(relocated.model_dump_json(indent=2), encoding="utf-8")
    return relocated


def with_note(conversion: Conversion, note: str) -> Conversion:
    """With the note also in the summary, which may be all that is read."""
    summary = f"{conversion.summary} {note}"
    return conversion.model_copy(update={"summary": summary, "notes": (*conversion.notes, note)})
