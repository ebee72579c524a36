"""Job `subject`: run the candidate, and nothing else, on inputs that lie in the exchange folder.

Items come one a case and in order, so that after a crash or a time-out it is known which case it was, and a
fresh process can take the rest. This process knows neither the reference, nor what is expected, nor the seed.
"""

import dataclasses
import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..allocation import Poison
from ..calls.exchange import CallInputs, Exchange, all_outputs, mapped, written_to
from ..calls.generate import far_strides
from ..calls.gradients import gradcheck_failure, with_gradients
from ..calls.tensors import OutputLeaf, leaves, output_of, read_values, storage_bytes, write_outputs
from ..failure import describe_failure
from ..guarded_memory import GuardedMemory
from ..integrity.returned_tensors import plain
from ..job_report import Report
from ..loading.redirect import redirect
from ..loading.target import Loaded, TargetError, load
from ..observer import Observer, Record, in_original_file
from ..runtime import interpreting
from ..tuning.rotation import Rotation

SEED = 0
"""Of torch's own generator before each call: what the candidate draws is the same in each of its runs."""


def work(
    report: Report,
    target: dict[str, Any],
    setting: dict[str, Any],
    secret: list[str],
    red_zone_bytes: int | None,
    turn: int,
) -> dict[str, Any]:
    """An item once the candidate is loaded, then one for each request: `ok` or `raised`, with `facts`.

    A request is a case: `id`, `name`, `far` (names of tensors with huge strides), `twice` (whether a second
    run must give the same bits), and in `again` the id of the case before it whose tensors are called once
    more. A candidate that leaves the device unusable ends the job early. `setting` is that of job
    `reference`, and the candidate's `side`. `secret` are files and folders that are none of the candidate's
    business. `red_zone_bytes`: None suits the device, 0 leaves the zones out. `turn` is the
    number of this process among those that share the cases.
    """
    report.during("load")
    rotation = None if interpreting() else Rotation(turn)
    exchange = Exchange(Path(setting["folder"]))
    redirect(exchange.read_staging(setting["side"]))
    observer = Observer(
        [*map(Path, secret), *exchange.secret],
        [report.folder, exchange.folder],
        lambda violation: report.item({"trespass": in_original_file(violation)}),
    )
    with observer.loading():
        candidate = load(target, "candidate")
    candidate.take_state(read_values(exchange.state, "cpu"))
    candidate.to_gpu()
    report.item({"loaded": candidate.name, "traces": observer.traces()})
    subject = CandidateSession(candidate, exchange, observer, setting, red_zone_bytes)
    for case in report.requests():
        report.during(case["name"])
        report.item({"case": case["name"], **subject.attempt(case)})
        if not usable(setting["device"]):
            break
    return {"traces": observer.traces(), "configurations": rotation.summary() if rotation else []}


@dataclass
class CandidateCall:
    """One call of the candidate: what it was given, and what it left."""

    call: CallInputs
    memory: GuardedMemory
    leaves: dict[str, Any]
    outputs: dict[str, OutputLeaf]


@dataclass
class CandidateSession:
    """The candidate, and how it is called."""

    candidate: Loaded
    exchange: Exchange
    observer: Observer
    setting: dict[str, Any]
    red_zone_bytes: int | None
    last: CandidateCall | None = None
    """The case before: its tensors may be called with once more, and its results must not change."""

    @property
    def device(self) -> str:
        """The torch device on which tensors lie."""
        return str(self.setting["device"])

    @property
    def backward(self) -> bool:
        """Whether gradients are outputs too."""
        return bool(self.setting["backward"])

    def attempt(self, case: dict[str, Any]) -> dict[str, Any]:
        """Call the candidate, and write what it returns and the arguments that it wrote to."""
        again = self.last if case["again"] and self.last else None
        before = self.exchange.call(case["id"], self.device)
        if again is None:
            self.let_go()
            memory = GuardedMemory(self.device, Poison.FIRST, self.red_zone_bytes)
            call = placed(before, case["far"], memory)
        else:
            memory, call = again.memory, again.call
            overwrite(call, before)
        found, facts = self.called(call, memory, before)
        if found is None:
            self.let_go()
            return {"status": "raised", **facts}
        if again is not None:
            facts["facts"]["overwritten"] = changed_since(again, call)
        write_outputs(found.outputs, self.exchange.outputs(self.setting["side"], case["id"]))
        self.last = found
        if case["twice"]:
            facts["facts"]["differs"] = self.differs(case, found, before)
        if self.backward:
            with self.observer.calling(memory, call):
                facts["facts"]["gradcheck"] = gradcheck_failure(self.candidate_of, call)
        return {"status": "ok", **facts}

    def called(
        self, call: CallInputs, memory: GuardedMemory, before: CallInputs
    ) -> tuple[CandidateCall | None, Record]:
        """One call under observation: what it left, None where it raised; and `facts`, or the failure too."""
        torch.manual_seed(SEED)
        returned, failure = None, None
        with self.observer.calling(memory, call) as observed:
            try:
                returned = self.call_candidate(call)
                synchronize(self.device)
            except TargetError:
                raise
            except (Exception, SystemExit) as error:
                failure = describe_failure(error, "call")
        if returned is not None:
            try:
                with uncollected():
                    everything = all_outputs(returned, call, written_to(call, before))
                    outputs = {path: output_of(leaf, plain(leaf)) for path, leaf in everything.items()}
                    attempt = CandidateCall(call, memory, returned, outputs)
                    return attempt, {"facts": observed.record(returned, call, memory)}
            except RuntimeError as error:
                failure = describe_failure(error, "its results")
        facts = observed.record({}, call, memory) if usable(self.device) else {}
        return None, {"failure": failure, "facts": facts}

    def call_candidate(self, call: CallInputs) -> dict[str, Any]:
        """The leaves of its result by path."""
        if self.backward:
            return with_gradients(self.candidate_of, call)
        # A candidate must not depend on it: second calls come with gradients enabled.
        with torch.set_grad_enabled(self.last is not None and self.last.call is call):
            return dict(leaves(self.candidate_of(call)))

    def candidate_of(self, call: CallInputs) -> Any:
        return self.candidate(call.arguments, call.state)

    def differs(self, case: dict[str, Any], first: CandidateCall, before: CallInputs) -> Record | None:
        """Outputs that are other bits in a second run, in memory that held something else; None: none."""
        second = self.once_more(before, case["far"])
        paths = [path for path in first.outputs if not same(first.outputs[path], second.get(path))]
        if not paths:
            return None
        write_outputs(second, self.exchange.second_run(self.setting["side"], case["id"]))
        third = self.once_more(before, case["far"])
        steady = all(same(second.get(path), third.get(path)) for path in paths)
        return {"paths": paths, "by_what_memory_held": steady}

    def once_more(self, before: CallInputs, far: Collection[str]) -> dict[str, OutputLeaf]:
        """The outputs of another run on the same values; nothing where it raises."""
        memory = GuardedMemory(self.device, Poison.SECOND, self.red_zone_bytes)
        try:
            found, _ = self.called(placed(before, far, memory), memory, before)
            return found.outputs if found else {}
        finally:
            memory.close()

    def let_go(self) -> None:
        """Free the last case's memory."""
        if self.last is not None:
            self.last.memory.close()
            self.last = None


def placed(before: CallInputs, far: Collection[str], memory: GuardedMemory) -> CallInputs:
    """A copy of what a case is called with, each tensor between red zones; those of `far` at huge strides."""

    def place(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name in far:
            return memory.spread(tensor, far_strides(tuple(tensor.shape)), name)
        return memory.placed(tensor, name)

    cotangents = {path: tensor.clone() for path, tensor in before.cotangents.items()}
    return dataclasses.replace(mapped(before, place), cotangents=cotangents)


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, no finalizer of the author's runs: nobody would watch it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def overwrite(call: CallInputs, values: CallInputs) -> None:
    """Write other values into the tensors of a call; neither their addresses nor their versions change."""
    new = values.tensors()
    for name, tensor in call.tensors().items():
        tensor.data.copy_(new[name])
    for path, cotangent in call.cotangents.items():
        cotangent.copy_(values.cotangents[path])


def changed_since(attempt: CandidateCall, call: CallInputs) -> list[str]:
    """Results of an earlier call that are no longer what they were; those in the inputs' memory left out."""
    inputs = {tensor.untyped_storage().data_ptr() for tensor in call.tensors().values()}
    return [
        path
        for path, leaf in attempt.leaves.items()
        if isinstance(leaf, torch.Tensor)
        and plain(leaf) is None
        and leaf.untyped_storage().data_ptr() not in inputs
        and not same(output_of(leaf), attempt.outputs[path])
    ]


def same(left: OutputLeaf | None, right: OutputLeaf | None) -> bool:
    """Equal in every trait and every bit."""
    if left is None or right is None or left.traits != right.traits:
        return False
    if left.tensor is None or right.tensor is None:
        return left.tensor is right.tensor
    return bool(storage_bytes(left.tensor).equal(storage_bytes(right.tensor)))


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def usable(device: str) -> bool:
    """False once an illegal memory access has made this process's device context useless."""
    try:
        synchronize(device)
    except RuntimeError:
        return False
    return True
