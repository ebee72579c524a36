"""Refusals for jobs without an answer: what the target did, or what the machine is missing."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement, Refusal, TargetBroken, TargetTimedOut
from pytorch_to_triton.schema.job import Outcome
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.worker.wire import Failure

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A full disk, a quota that is used up, a limit on the size of files."""
LEAST_BYTES = 1 << 16
"""Where less is free, an answer cannot be written."""

DOING = {"": "Importing", "load": "Importing", "describe": "Constructing or describing"}
"""By the job's last phase; anything else is a call of the target."""


def refusal_of_end(outcome: Outcome, target: Target) -> Refusal:
    """Of a job that ended without an answer and without an exception."""
    doing = f"{DOING.get(outcome.during, 'Calling')} {target}"
    where = "what runs at import" if outcome.during in ("", "load") else "the function"
    if refusal := disk_full_refusal(outcome.folder, outcome.log):
        return refusal
    if outcome.status == "timed_out":
        return TargetTimedOut(
            f"{doing} took too long: {outcome.detail}.",
            f"Allow more with --timeout, or make {where} quicker.",
        )
    if code := re.search(r"exit code \d+", outcome.detail):
        return TargetBroken(
            f"{doing} ended the process with {code[0]}.",
            f"Remove the call that ends the process, such as os._exit, from {where}.",
        )
    if "SIGKILL" in outcome.detail:
        return TargetBroken(
            f"{doing} was {outcome.detail}.",
            f"Check how much memory {where} takes; the log is in {outcome.folder}.",
        )
    return TargetBroken(
        f"{doing} crashed: {outcome.detail}.",
        f"{outcome.folder / 'log.txt'} shows the line; check the native code that is called there.",
    )


def refusal_of_exception(failure: Failure) -> Refusal:
    """Of an exception that is none of the worker's own."""
    if is_full(failure.message):
        return disk_full(f"{failure.type}: {failure.message}")
    place = f" at {failure.file}:{failure.line}" if failure.file else ""
    doing = DOING.get(failure.during, "Calling")
    if failure.type == "SystemExit":
        message = f"{doing} the target ended the program with sys.exit({failure.message}){place}."
        return TargetBroken(message, "Raise an exception instead, or remove the call.")
    return TargetBroken(
        f"{doing} the target raised {failure.named}{place}.", "Correct that line, or declare other inputs."
    )


def is_full(message: str) -> bool:
    """Whether an exception's text is that of a full disk."""
    numbered = re.search(r"\[Errno (\d+)\]", message)
    return "No space left on device" in message or bool(numbered and int(numbered[1]) in FULL)


def disk_full_refusal(folder: Path, log: str) -> MissingRequirement | None:
    """The refusal where a job could not write its answer; None where there was space."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return None
    return disk_full(f"{free:,} bytes are free") if free < LEAST_BYTES or is_full(log) else None


def disk_full(why: str) -> MissingRequirement:
    """The disk is full."""
    return MissingRequirement(
        f"The disk is full ({why.removesuffix('.')}); {places.cache()} is the cache folder.",
        "Free some space there, or name another folder in the environment variable PYTORCH_TO_TRITON_CACHE.",
    )


def unusable_cache(problem: OSError) -> MissingRequirement:
    """The cache folder cannot be written to."""
    if problem.errno in FULL:
        return disk_full(str(problem.strerror))
    named = " (PYTORCH_TO_TRITON_CACHE names it)" if os.environ.get("PYTORCH_TO_TRITON_CACHE") else ""
    return MissingRequirement(
        f"The cache folder {places.cache()}{named} cannot be used: {problem.strerror}.",
        "Name a folder that you may write to in the environment variable PYTORCH_TO_TRITON_CACHE.",
    )


@contextmanager
def cache_required() -> Iterator[None]:
    """Raises MissingRequirement for an OSError: the block only writes below the cache."""
    try:
        yield
    except OSError as problem:
        raise unusable_cache(problem) from problem


@contextmanager
def cache_errors_refused() -> Iterator[None]:
    """Raises MissingRequirement for an OSError that means a full disk or an unusable cache."""
    try:
        yield
    except OSError as problem:
        below = [Path(str(name)) for name in (problem.filename, problem.filename2) if name is not None]
        if problem.errno in FULL or any(path.is_relative_to(places.cache()) for path in below):
            raise unusable_cache(problem) from problem
        raise
