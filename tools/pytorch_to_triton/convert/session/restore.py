"""Going back to an earlier attempt of a session."""

from __future__ import annotations

from pytorch_to_triton import places
from pytorch_to_triton.convert.session.answers import step_of
from pytorch_to_triton.convert.session.store import SessionFolder, attempt_path, now
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.session import Attempt, SessionStep, Stage


def restore(folder: SessionFolder, number: int) -> SessionStep:
    """Go back to an attempt whose gate opened: its file is the stage's again, and counts as the best.

    What the stage's file held is kept as an attempt if it was submitted, else beside it. Raises BadInput for
    an attempt that is not there or did not pass.
    """
    with folder.locked():
        attempts = folder.attempts()
        chosen = next((attempt for attempt in attempts if attempt.number == number), None)
        if chosen is None:
            numbers = ", ".join(str(attempt.number) for attempt in attempts) or "none"
            raise BadInput(f"{folder.path} has no attempt {number}.", f"Its attempts are: {numbers}.")
        if not chosen.opened:
            raise BadInput(
                f"Attempt {number} did not pass its gate.", f"Its file is {folder.kernel(chosen)}: submit it."
            )
        text = folder.text(chosen)
        notes = tuple(set_aside(folder, attempts, chosen.stage, text))
        places.write_atomically(folder.file(chosen.stage), text)
        again = folder.next_number()
        copy = {"number": again, "file": attempt_path(again), "restored": number, "when": now()}
        folder.keep(chosen.model_copy(update=copy), text)
        return step_of(folder, "restored", notes)


def set_aside(folder: SessionFolder, attempts: tuple[Attempt, ...], stage: Stage, text: str) -> list[str]:
    """Keep what a stage's file holds that was never submitted; a note about it."""
    file = folder.file(stage)
    if not file.exists():
        return []
    present = file.read_text(encoding="utf-8")
    submitted = map(folder.text, attempts)
    if present == text or present in submitted:
        return []
    kept = file.with_name(f"{file.stem}.before_restore.py")
    places.write_atomically(kept, present)
    return [f"What {file.name} held was never submitted: it is kept as {kept.name}."]
