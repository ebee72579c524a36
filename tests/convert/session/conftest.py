from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.start import start
from pytorch_to_triton.convert.session.store import SessionFolder, open_session
from pytorch_to_triton.convert.session.submit import SubmitRequest, submit
from pytorch_to_triton.inputs.declaration import parse_points
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import SessionStep

from ...conftest import Written
from .kept import setting_of
from .silent import Silent

Starting = Callable[..., Awaitable[SessionFolder]]
Submitting = Callable[..., Awaitable[SessionStep]]


@pytest.fixture
def started(worker: WorkerClient, interpreter: Runtime, written: Written, tmp_path: Path) -> Starting:
    """Opens a session for the function `name` of a text; `at` names sizes that matter."""

    async def started(text: str, *at: str, name: str = "f", **setting: Any) -> SessionFolder:
        target = written(text).model_copy(update={"name": name})
        asked = setting_of(target, *at).model_copy(update=setting)
        return open_session((await start(worker, asked, tmp_path / "session", interpreter)).session)

    return started


@pytest.fixture
def submitted(worker: WorkerClient, interpreter: Runtime) -> Submitting:
    """Submits a text, or the stage's file as it is; `at` names sizes that matter from here on."""

    async def submitted(
        folder: SessionFolder,
        text: str | None = None,
        *at: str,
        listener: ProgressListener | None = None,
        **asked: Any,
    ) -> SessionStep:
        if text is not None:
            folder.file(session_of(folder).stage).write_text(text, encoding="utf-8")
        request = SubmitRequest(points=parse_points(at), **asked)
        return await submit(worker, folder, request, interpreter, listener or Silent())

    return submitted
