"""A conversion in steps: what was understood of a target, what was tried, and which gates opened."""

from pathlib import Path
from typing import Literal

from pytorch_to_triton.schema.value import Value

Met = Literal["met", "not met", "not measured"]
Stage = Literal[1, 2, 3]
Outcome = Literal["started", "opened", "shut", "finished", "restored", "open"]
"""What a call did: the gate `opened` (`finished`: the last) or stayed `shut`; `open` where it only looked."""


class Condition(Value):
    """One thing that a stage's gate asks."""

    name: str
    """`right`, `compiles`, `no grave finding`, ..."""
    met: Met
    evidence: str
    """What was seen, with its figures."""
    advice: str = ""
    """What to try next, where it is not met."""


class TimedAt(Value):
    """What was measured of a file at one size."""

    dims: dict[str, int]
    median_ms: float
    eager_ms: float | None
    """Of eager PyTorch; None where that could not be timed."""


class Attempt(Value):
    """A file that was submitted to a stage's gate, and is kept."""

    number: int
    """From 1, in the order of submission."""
    stage: Stage
    opened: bool
    """Whether the gate opened."""
    file: Path
    """The kept copy, relative to the session's folder."""
    conditions: tuple[Condition, ...]
    times: tuple[TimedAt, ...] = ()
    """At each timed size; none where nothing was measured."""
    accepted: str = ""
    """The reason for which a stage that is not faster was accepted."""
    judged_with: str = ""
    """The torch, Triton and runtime that its verdict holds for."""
    restored: int | None = None
    """The attempt whose file this one brought back."""
    when: str
    """In UTC, ISO 8601."""


class Understanding(Value):
    """What the trace of a target says, and what of it can be drafted."""

    function: str
    inputs: tuple[str, ...]
    """One line each: `x: float32|bfloat16[M, N]`."""
    frozen: tuple[str, ...] = ()
    """Arguments whose value the trace holds for: `eps = 1e-05`."""
    steps: tuple[str, ...] = ()
    """The graph, an operator a line: `y = aten.add.Tensor(x, bias) -> float32[M, N], line 12`."""
    guards: tuple[str, ...] = ()
    """Conditions on the sizes under which it holds."""
    compared: tuple[str, ...] = ()
    """What of the results is free, as declared or as PyTorch's operators leave it; none: nothing."""
    kernels: tuple[str, ...] = ()
    """What the draft computes in each kernel."""
    calls: tuple[str, ...] = ()
    """What stays a call of PyTorch in the draft, with its line and why."""
    no_draft: str = ""
    """Why there is no draft at all."""
    work: str = ""
    """Bytes and operations at each timed size, and the time at the device's limit where that is known."""
    gradients: str = ""
    """What of the inputs is trained, and whether a backward pass is part of the session."""
    read: tuple[str, ...] = ()
    """Reference kernels and guides whose techniques are close."""


class ConversionSession(Value):
    """A conversion in steps, as it stands."""

    summary: str
    next_step: str
    verdict: Outcome
    session: Path
    """Its folder."""
    target: str
    stage: Stage
    """Whose gate is next."""
    file: Path
    """What to edit and submit for it."""
    understood: Understanding
    at: tuple[str, ...]
    """The sizes that matter; none: the largest declared ones, enlarged."""
    attempts: tuple[Attempt, ...]
    best: Path | None
    """The kernel of the last gate that opened."""
    notes: tuple[str, ...] = ()


class SessionStep(Value):
    """What one call changed of a session; `convert status` shows all of it."""

    summary: str
    next_step: str
    verdict: Outcome
    session: Path
    stage: Stage
    """Whose gate is next."""
    file: Path
    """What to edit and submit for it."""
    attempt: int
    """The number of what was submitted or restored."""
    met: tuple[str, ...]
    """The conditions of its gate that are met, by name."""
    not_measured: tuple[str, ...] = ()
    unmet: tuple[Condition, ...] = ()
    """Of its gate or, where that opened and the call asked for more, of the next one."""
    best: Path | None
    """The kernel of the last gate that opened."""
    notes: tuple[str, ...] = ()


class SessionLine(Value):
    """One session in a list."""

    session: Path
    target: str
    stage: Stage
    attempts: int
    best: Path | None


class UnreadableSession(Value):
    """One of which nothing can be said."""

    session: Path
    why: str


class SessionList(Value):
    """The sessions below a folder."""

    summary: str
    next_step: str
    sessions: tuple[SessionLine, ...]
    unreadable: tuple[UnreadableSession, ...] = ()
    """Those that are damaged, or lead out of the folders that may be used."""
