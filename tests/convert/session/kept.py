"""Sessions on disk that nothing was traced for: what is made of their files."""

import os
from pathlib import Path

from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, Setting, attempt_path
from pytorch_to_triton.inputs.declaration import parse_points
from pytorch_to_triton.schema.session import Attempt, Understanding
from pytorch_to_triton.schema.target import Target

SUBMITTED = "# what was submitted\n"


def setting_of(target: Target, *at: str, example: Target | None = None) -> Setting:
    """How a session under the interpreter is started, for one GPU; `at` names sizes that matter."""
    return Setting(
        target=target,
        example=example,
        points=parse_points(at),
        seed=7,
        seconds=120.0,
        device="interpreter",
        python=None,
        archs=("sm_90",),
    )


def kept_session(folder: Path) -> SessionFolder:
    """A session for a target beside it, with one attempt whose gate opened."""
    folder.mkdir(parents=True)
    target = folder.parent / "target.py"
    target.write_text("def f(x):\n    return x\n", encoding="utf-8")
    setting = setting_of(Target(path=target, name="f"))
    session = SessionFolder(folder)
    understood = Understanding(function="f", inputs=("x: float32[N]",))
    session.write(SessionRecord(setting=setting, target_digest="", understood=understood))
    session.file(1).write_text("# edited\n", encoding="utf-8")
    session.keep(opened_attempt(1), SUBMITTED)
    return session


def opened_attempt(number: int) -> Attempt:
    """One of stage 1 whose gate opened."""
    return Attempt(
        number=number,
        stage=1,
        opened=True,
        file=attempt_path(number),
        conditions=(),
        when="2026-01-01T00:00:00+00:00",
    )


def replace_by_pipe(file: Path) -> None:
    """Put a named pipe in the place of a file: whoever opens it to read waits for a writer."""
    file.unlink()
    os.mkfifo(file)
