"""Do the job of one run folder: read `job.json`, call the job's `work`, write `reply.json`."""

import importlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import wire
from .failure import describe_failure
from .job_report import JobReport
from .runtime import enter_runtime

Work = Callable[..., dict[str, Any]]


def perform(folder: Path) -> bool:
    """Do the folder's job in this process; True if it answered, False if it raised.

    `reply.json` is written as a whole or not at all.
    """
    reply = folder / "reply.json"
    reply.unlink(missing_ok=True)
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    answered = True
    with JobReport(folder) as report:
        try:
            answer = load_work(job["kind"])(report, **job["arguments"])
            text = written({"event": "answered", "answer": answer})
        except BaseException as error:  # a SystemExit of the user's code is a result like any other
            answered = False
            text = written({"event": "raised", "failure": describe_failure(error, report.phase)})
    unfinished = folder / "reply.json.part"
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, reply)
    return answered


def written(reply: wire.Reply) -> str:
    return json.dumps(reply, allow_nan=False)


def rerun(folder: Path) -> bool:
    """Do the folder's job in the foreground, in the runtime that it names, and print the reply."""
    enter_runtime(json.loads((folder / "job.json").read_text(encoding="utf-8"))["runtime"])
    answered = perform(folder)
    print((folder / "reply.json").read_text(encoding="utf-8"))
    return answered


def load_work(kind: str) -> Work:
    """The `work` of a module in jobs/, or of a file where `kind` is its absolute path."""
    if not os.path.isabs(kind):
        module = importlib.import_module(f".jobs.{kind}", __package__)
    else:
        spec = importlib.util.spec_from_file_location(f"{__package__}.jobs.{Path(kind).stem}", kind)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    work: Work = module.work
    return work
