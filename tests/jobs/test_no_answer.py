"""A job without an answer is reported by its own cause: what the target did, or what the machine lacks."""

import errno
import os
from pathlib import Path

import pytest

from pytorch_to_triton.errors import MissingRequirement, Refusal, TargetBroken
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.jobs.no_answer import cache_errors_refused, refusal_of_end, refusal_of_exception
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Outcome, Runtime, Status
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.first_call import refuse_unrunnable
from pytorch_to_triton.worker.wire import Failure

TARGET = Target(path=Path("/a/b.py"), name="f")


def end(status: Status, detail: str, during: str, folder: Path, log: str = "") -> Refusal:
    return refusal_of_end(
        Outcome(
            status=status,
            answer=None,
            items=(),
            failure=None,
            detail=detail,
            during=during,
            log=log,
            folder=folder,
        ),
        TARGET,
    )


@pytest.mark.parametrize(
    ("status", "detail", "during", "message", "hint"),
    [
        ("timed_out", "not done within 4 s", "load", "Importing /a/b.py:f took too long", "--timeout"),
        ("timed_out", "not done within 4 s", "trace", "Calling /a/b.py:f took too long", "the function"),
        ("crashed", "ended with exit code 3 before it answered", "", "with exit code 3", "runs at import"),
        ("crashed", "ended with exit code 3 before it answered", "call", "Calling", "os._exit"),
        ("crashed", "killed by SIGSEGV", "load", "crashed: killed by SIGSEGV", "log.txt"),
        ("crashed", "killed by SIGKILL (often: out of memory)", "call", "killed by SIGKILL", "memory"),
    ],
)
def test_each_end_has_its_own_advice(
    status: Status, detail: str, during: str, message: str, hint: str, tmp_path: Path
) -> None:
    refusal = end(status, detail, during, tmp_path)
    assert isinstance(refusal, TargetBroken)
    assert message in refusal.message
    assert hint in refusal.hint


def test_a_full_disk_is_not_the_target_s_fault(tmp_path: Path) -> None:
    log = "OSError: [Errno 28] No space left on device"
    by_log = end("crashed", "ended with exit code 1 before it answered", "load", tmp_path, log)
    failure = Failure(type="OSError", message="[Errno 28] No space left on device", traceback="")
    for refusal in (by_log, refusal_of_exception(failure)):
        assert isinstance(refusal, MissingRequirement)
        assert "disk is full" in refusal.message
        assert "PYTORCH_TO_TRITON_CACHE" in refusal.hint


def test_an_exception_without_words_is_reported_with_its_place() -> None:
    failure = Failure(type="KeyboardInterrupt", message="", traceback="", file="b.py", line=4, during="load")
    refusal = refusal_of_exception(failure)
    assert refusal.message == "Importing the target raised KeyboardInterrupt at b.py:4."


def test_an_error_below_the_cache_is_the_cache_s_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))

    def failing(number: int, path: Path) -> None:
        with cache_errors_refused():
            raise OSError(number, os.strerror(number), str(path))

    with pytest.raises(MissingRequirement, match="cannot be used: Permission denied"):
        failing(errno.EACCES, tmp_path / "results")
    with pytest.raises(MissingRequirement, match="disk is full"):
        failing(errno.ENOSPC, Path("/elsewhere"))
    with pytest.raises(PermissionError):
        failing(errno.EACCES, Path("/elsewhere"))


@pytest.mark.anyio
async def test_a_cache_that_is_a_file_is_named(
    interpreter: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cache"
    file.write_text("")
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(file))
    async with open_client(RunFolders(file / "runs")) as worker:
        with pytest.raises(MissingRequirement, match=f"{file} .* cannot be used: Not a directory"):
            await worker.ask(Job(kind="versions"), interpreter, seconds=60)


IMPORTS = {
    "sys.exit": ("import sys\nsys.exit('no licence')", r"SystemExit: sys\.exit\('no licence'\) \(line 2\)"),
    "os._exit": ("import os\nos._exit(3)", "ended the process with exit code 3"),
    "a signal": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashed: killed by SIGSEGV"),
    "no end": ("while True: pass", "took too long: not done within 2 s"),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("text", "message"), IMPORTS.values(), ids=IMPORTS.keys())
async def test_what_an_import_does_is_named(
    text: str, message: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(f"{text}\n\n\ndef f(x):\n    return x\n")
    with pytest.raises(TargetBroken, match=message):
        await describe(worker, Target(path=path, name="f"), "reference", interpreter, seconds=2)


CALLS = {
    "an exception": ("raise ValueError('bad shape')", r"ValueError: bad shape \(N=4, .*target\.py:4\)"),
    "an end": ("sys.exit(2)", r"ended the program with sys\.exit\(2\) at .*target\.py:4"),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("body", "message"), CALLS.values(), ids=CALLS.keys())
async def test_a_reference_that_does_not_run_is_reported_with_case_and_line(
    body: str, message: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(f"import sys\n\ndef f(x):\n    {body}\n")
    declaration = parse_declaration({"x": "float32[N]"}, {"N": [4]}, [])
    with pytest.raises(TargetBroken, match=message):
        await refuse_unrunnable(worker, Target(path=path, name="f"), declaration, interpreter, seconds=60)


@pytest.mark.anyio
async def test_a_reference_that_runs_is_not_refused(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text("def f(x):\n    return x[x > 0]\n")
    declaration = parse_declaration({"x": "float32[N]"}, {"N": [4]}, [])
    await refuse_unrunnable(worker, Target(path=path, name="f"), declaration, interpreter, seconds=60)
