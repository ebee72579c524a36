"""One piece of work for the worker, and its outcome."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire import Failure

Status = Literal["answered", "raised", "crashed", "timed_out", "cancelled", "lost"]
"""lost: the process that the job was forked from has ended, and took the job with it."""


class Runtime(Value):
    """Which worker does a job: the Python that runs it, and how Triton kernels run in it."""

    python: str
    """The interpreter's path; it needs torch and triton, nothing else."""
    interpreter: bool
    """True: kernels run under Triton's interpreter on CPU tensors. False: compiled, on the device."""
    devices: str | None = None
    """CUDA_VISIBLE_DEVICES for the worker; None leaves the environment's own."""
    memory_gib: float | None = None
    """What the processes of one job may hold; None: what the environment says, else most of the machine's."""


class Job(Value):
    """One job: a module with `def work(report: JobReport, **arguments) -> dict`."""

    kind: Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]*|/.*\.py)$")]
    """The name of a file in worker/jobs/, or the absolute path of a Python file."""
    arguments: Mapping[str, object] = Field(default_factory=dict)
    """Those of its `work`, as JSON or as the dataclasses of worker/wire/ that it takes."""
    needs: tuple[str, ...] = ()
    """Modules that take long to import: the fork server imports them once, for all jobs that follow."""


class Outcome(Value):
    """How a job ended. A crash, a time-out and a cancel are results, not exceptions."""

    status: Status
    answer: dict[str, Any] | None
    """What the job returned; None unless `status` is `answered`."""
    items: tuple[dict[str, Any], ...]
    """The results that the job reported while it ran, in order; kept however it ended."""
    failure: Failure | None
    """Set when `status` is `raised`."""
    detail: str
    """For a person: the signal, the exit code or the time limit."""
    during: str
    """The job's last phase; empty where it reported none."""
    log: str
    """The end of what the job's process printed."""
    folder: Path
    """The run folder: job.json, requests.jsonl, log.txt, outcome.json."""
