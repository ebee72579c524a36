"""Do the job of one run folder: read `job.json`, call the job's `work`, send its reply."""

import importlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from . import wire
from .failure import describe_failure
from .job_report import MESSAGES, Channel, FolderChannel, JobReport
from .runtime import enter_runtime
from .wire.as_json import decoded

Work = Callable[..., Any]


def perform(folder: Path, channel: Channel) -> bool:
    """Do the folder's job in this process; True if it answered, False if it raised."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    report = JobReport(folder, channel)
    try:
        work = load_work(job["kind"])
        hints = get_type_hints(work)
        arguments = {name: decoded(hints.get(name), value) for name, value in job["arguments"].items()}
        channel.send(wire.AnsweredReply(answer=work(report, **arguments)))
    except BaseException as error:  # a SystemExit of the user's code is a result like any other
        channel.send(wire.RaisedReply(failure=describe_failure(error, report.phase)))
        return False
    return True


def rerun(folder: Path) -> bool:
    """Do the folder's job in the foreground, in the runtime that it names, and print all that it said."""
    enter_runtime(json.loads((folder / "job.json").read_text(encoding="utf-8"))["runtime"])
    answered = perform(folder, FolderChannel(folder))
    print((folder / MESSAGES).read_text(encoding="utf-8"), end="")
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
