"""What a caller of a session is told."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pytorch_to_triton.convert.conversion_report import beside_eager
from pytorch_to_triton.convert.request import LAST
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, best_of, stage_of
from pytorch_to_triton.draft.file.module import STAGE_NAMES
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.session import (
    Attempt,
    Condition,
    ConversionSession,
    Outcome,
    SessionLine,
    SessionList,
    SessionStep,
    UnreadableSession,
)


def session_of(
    folder: SessionFolder, verdict: Outcome | None = None, notes: tuple[str, ...] = ()
) -> ConversionSession:
    """The session as it stands after a call that ended with `verdict`; None: after none."""
    record, attempts = folder.record(), folder.attempts()
    best, stage = best_of(attempts), stage_of(attempts)
    verdict = verdict or ("finished" if best and best.stage == LAST else "open")
    return ConversionSession(
        summary=" ".join(filter(None, (summary_of(record, attempts, verdict), sizes_of(record)))),
        next_step=next_step_of(folder, record, attempts, verdict),
        verdict=verdict,
        session=folder.path,
        target=str(record.setting.target),
        stage=stage,
        file=folder.file(stage),
        understood=record.understood,
        at=record.setting.at,
        attempts=attempts,
        best=folder.kernel(best) if best else None,
        notes=notes,
    )


def step_of(
    folder: SessionFolder, verdict: Outcome, notes: tuple[str, ...] = (), beyond: tuple[Condition, ...] = ()
) -> SessionStep:
    """What a call changed that ended with `verdict`; `beyond`: conditions of a gate that did not open."""
    record, attempts = folder.record(), folder.attempts()
    best, stage, last = best_of(attempts), stage_of(attempts), attempts[-1]
    conditions = (*last.conditions, *(c for c in beyond if c.met == "not met"))
    return SessionStep(
        summary=summary_of(record, attempts, verdict),
        next_step=next_step_of(folder, record, attempts, verdict),
        verdict=verdict,
        session=folder.path,
        stage=stage,
        file=folder.file(stage),
        attempt=last.number,
        met=tuple(c.name for c in conditions if c.met == "met"),
        not_measured=tuple(c.name for c in conditions if c.met == "not measured"),
        unmet=tuple(c for c in conditions if c.met == "not met"),
        best=folder.kernel(best) if best else None,
        notes=notes,
    )


def summary_of(record: SessionRecord, attempts: tuple[Attempt, ...], verdict: Outcome) -> str:
    """What happened, and where the session stands."""
    name = record.understood.function
    best = best_of(attempts)
    if verdict == "started":
        return f"{name}: {start_text(record)}."
    if not attempts:
        return f"{name}: nothing has been submitted yet."
    last = attempts[-1]
    if verdict == "shut":
        unmet = [condition for condition in last.conditions if condition.met == "not met"]
        reasons = "".join(
            f"\nNot met: {condition.name}. {sentence(condition.evidence)}" for condition in unmet
        )
        return f"{name}: the gate of stage {last.stage} ({STAGE_NAMES[last.stage]}) stays shut.{reasons}"
    where = f"stage {best.stage} ({STAGE_NAMES[best.stage]}) has passed" if best else "no gate has opened yet"
    speed = beside_eager(best.times if best else ()) or "speed not measured"
    return f"{name}: {where} after {len(attempts)} attempt{'s' if len(attempts) > 1 else ''}; {speed}."


def sizes_of(record: SessionRecord) -> str:
    """The sizes that matter, as a sentence; empty where none was named."""
    at = record.setting.at
    return f"Sizes that matter: {'; '.join(at)}." if at else ""


def start_text(record: SessionRecord) -> str:
    """What there is to begin with."""
    understood = record.understood
    if understood.no_draft:
        return f"stage 1 is to be written by hand. {understood.no_draft.rstrip('.')}"
    left, kernels = len(understood.calls), len(understood.kernels)
    calls = f"; {left} operator{'s stay calls' if left > 1 else ' stays a call'} of PyTorch" if left else ""
    return f"stage 1 is drafted with {kernels} kernel{'s' if kernels > 1 else ''}{calls}"


def sentence(text: str) -> str:
    """As a sentence of its own; a file's name stays as it is."""
    first = text if "." in text.partition(" ")[0].rstrip(".") else text[:1].upper() + text[1:]
    return first + ("" if text.endswith(".") else ".")


def next_step_of(
    folder: SessionFolder, record: SessionRecord, attempts: tuple[Attempt, ...], verdict: Outcome
) -> str:
    """The one thing to do now."""
    stage, best = stage_of(attempts), best_of(attempts)
    session = shlex.quote(str(folder.path))
    submit = f"convert submit {session}"
    if verdict == "shut":
        advice = dict.fromkeys(
            condition.advice.strip() for condition in attempts[-1].conditions if condition.met == "not met"
        )
        return " ".join([*filter(None, advice), f"Then submit again: {submit}"])
    if best and best.stage == LAST:
        return f"convert finish {session} writes it as a function, or change {folder.file(LAST)} and submit."
    if not attempts and record.understood.no_draft:
        read = ", ".join(record.understood.read[:2])
        return f"Write {folder.file(stage)} (read {read}), then {submit}"
    return f"Look at {folder.file(stage)}, change what you like, then {submit}"


def line_of(folder: SessionFolder) -> SessionLine:
    """One session among others. Raises BadInput where it is damaged."""
    record, attempts = folder.record(), folder.attempts()
    best = best_of(attempts)
    return SessionLine(
        session=folder.path,
        target=str(record.setting.target),
        stage=stage_of(attempts),
        attempts=len(attempts),
        best=folder.kernel(best) if best else None,
    )


def after_drop(folder: SessionFolder, attempts: int, sessions: SessionList) -> SessionList:
    """The sessions that are left, after what was dropped."""
    dropped = f"{folder.path} with {attempts} attempt{'' if attempts == 1 else 's'} is dropped."
    return sessions.model_copy(update={"summary": f"{dropped} {sessions.summary}"})


def list_of(
    folders: list[SessionFolder], below: Path, check: Callable[[SessionFolder], None] = lambda folder: None
) -> SessionList:
    """The sessions below a folder; apart from them what is damaged, and what `check` refuses by BadInput."""
    lines: list[SessionLine] = []
    unreadable: list[UnreadableSession] = []
    for folder in folders:
        try:
            check(folder)
            lines.append(line_of(folder))
        except BadInput as refusal:
            unreadable.append(UnreadableSession(session=folder.path, why=refusal.message))
    count = len(lines)
    more = f" ({len(unreadable) - 1} more)" if len(unreadable) > 1 else ""
    others = f" Not readable: {unreadable[0].why}{more}" if unreadable else ""
    return SessionList(
        summary=f"{count} session{'' if count == 1 else 's'} in {below}.{others}",
        next_step="convert status FOLDER shows one." if lines else "convert start TARGET opens one.",
        sessions=tuple(lines),
        unreadable=tuple(unreadable),
    )
