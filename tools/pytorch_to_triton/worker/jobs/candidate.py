"""Job `candidate`: run the candidate, and nothing else, on inputs that lie in the exchange folder.

Items come one a case and in order, so that after a crash or a time-out it is known which case it was, and a
fresh process can take the rest. This process knows neither the reference, nor what is expected, nor the seed.
"""

import copy
import gc
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .. import wire
from ..allocation import Poison
from ..calls.exchange import CallInputs, Exchange, map_tensors, outputs_of, written_cotangents, written_to
from ..calls.generate import large_strides
from ..calls.gradients import gradcheck_failure, gradients_apart, with_gradients
from ..calls.tensors import Outputs, leaves, output_of, same_output, write_values
from ..compilation import compile_otherwise
from ..device import is_usable, release_cached, synchronize
from ..failure import describe_failure
from ..guarded_memory import GuardedMemory
from ..integrity.kernel_source import while_lines
from ..integrity.returned_tensors import plain
from ..interpreter.autotuning import make_room_to_wait
from ..interpreter.launching import GridExecutor, Order
from ..interpreter.memory_guard import spare_repeat
from ..job_report import JobReport
from ..loading.redirect import redirect
from ..loading.target import Loaded, load
from ..loading.target_file import TargetError
from ..observer import USUAL, Circumstances, Observer
from ..random_numbers import seed_call
from ..runtime import interpreting
from ..tracing.description import description
from ..untimed_tuning import UntimedTuning
from ..wire import validation
from ..wire.observation import Differs, Observation, SecondRun
from ..wire.statistics import Run

TRIALS = 2
INTERPRETED_TRIALS = 1
"""Runs of an autotuned kernel before the launch that counts: under the interpreter each takes its time."""
CALLS_BEFORE = 5
"""Calls with the same tensors before their values change: a kernel that counts them has its fill, and one
that returns the same few tensors in turn has used them all."""


def work(
    report: JobReport,
    target: wire.Target,
    setting: validation.CandidateSetting,
    secret: list[str],
    red_zone_bytes: int | None,
) -> validation.CandidateAnswer:
    """An item once the candidate is loaded, then one for each request.

    A candidate that leaves the device unusable ends the job early.
    """
    report.during("load")
    tuning = UntimedTuning(INTERPRETED_TRIALS, spare_repeat) if interpreting() else UntimedTuning(TRIALS)
    exchange = Exchange(Path(setting.folder))
    redirect(exchange.read_staging(setting.side))
    if setting.compilation is not None:
        compile_otherwise(setting.compilation)
    observer = Observer(
        [*map(Path, secret), *exchange.secret],
        [report.folder, exchange.folder],
        lambda violation: report.item(validation.ViolationItem(violation=violation)),
        lambda kernel: report.during(phase_of(kernel, report.phase)),
    )
    GridExecutor.note_progress = staticmethod(
        lambda ended, programs: report.during(phase_with(ended, programs, report.phase))
    )
    with observer.sandbox.watching():
        candidate = load(target, "candidate")
        make_room_to_wait(candidate.contents)
        report.during("describe")
        described = description(target, candidate, "candidate")
    candidate = exchange.with_state(candidate)
    candidate.to_gpu()
    report.item(
        validation.CandidateLoadedItem(name=candidate.name, description=described, traces=observer.traces())
    )
    session = CandidateSession(candidate, exchange, observer, tuning, setting, red_zone_bytes)
    for request in report.requests(validation.CandidateRequest):
        report.during(request.name)
        report.item(session.answer(request))
        if not is_usable(setting.device):
            break
        release_cached(setting.device)
    return validation.CandidateAnswer(traces=observer.traces())


def phase_of(kernel: Callable[..., Any] | None, before: str) -> str:
    """The phase in which a kernel runs: the case's, which it follows, with the kernel behind it."""
    case = before.partition(validation.KERNEL)[0]
    if kernel is None:
        return case
    lines = ", ".join(map(str, while_lines(kernel)))
    loops = f" (it has a while loop in line {lines})" if lines else ""
    return f"{case}{validation.KERNEL}{kernel.__name__}{loops}"


def phase_with(ended: int, programs: int, before: str) -> str:
    """The phase of a kernel, with how many of its programs have ended."""
    return f"{before.partition(validation.PROGRAMS)[0]}{validation.PROGRAMS}{ended} of {programs}"


Seen = tuple[Outputs | wire.Failure, Observation]
"""What a further call returned or raised, and what was observed."""


@dataclass
class CandidateCall:
    """One call of the candidate: what it was given, and what it returned."""

    call: CallInputs
    memory: GuardedMemory
    returned: dict[str, Any]
    """The leaves of its result by path, as they lie in memory."""
    outputs: Outputs
    """Copies from right after the call."""


@dataclass
class CandidateSession:
    candidate: Loaded
    exchange: Exchange
    observer: Observer
    tuning: UntimedTuning
    setting: validation.CandidateSetting
    red_zone_bytes: int | None
    call_id: str = ""
    """Of the request's case: what a call draws at random is the reference's, in each of its runs."""
    last: CandidateCall | None = None
    """The case before: its tensors may be called with once more, and its results must not change."""

    def answer(self, request: validation.CandidateRequest) -> validation.ReturnedItem | validation.RaisedItem:
        """Call the candidate, and write its outputs to the exchange folder."""
        if request.again and self.last is None:
            # A process that was lost took the call before with it.
            self.answer(replace(request, id=request.again, again=None, twice=False, without_gradients=False))
        self.call_id = request.id
        again = self.last if request.again else None
        before = self.exchange.call(request.id, self.setting.device)
        if again is None:
            self.drop_last()
            self.tuning.begin(request.configuration, undo_trials=request.undo_trials)
            memory = GuardedMemory(self.setting.device, Poison.FIRST, self.red_zone_bytes)
            call = place_in_guarded_memory(before, request.large_stride, memory)
        else:
            memory, call = again.memory, again.call
            calls = [self.called(call, memory, before)[0] for _ in range(CALLS_BEFORE)]
            earlier = [again, *(each for each in calls if isinstance(each, CandidateCall))]
            overwrite(call, before)
        result, observation = self.called(call, memory, before)
        observation = replace(observation, tuned=tuple(self.tuning.taken()))
        if isinstance(result, wire.Failure):
            self.drop_last()
            return validation.RaisedItem(case=request.name, failure=result, observation=observation)
        if again is not None:
            changed = {path: None for each in earlier for path in changed_since(each, call)}
            observation = replace(observation, overwritten=tuple(changed))
        write_values(result.outputs, self.exchange.outputs(self.setting.side, request.id))
        self.last = result
        if request.twice:
            observation = replace(observation, differs=self.differs(request, result, before))
        for run, (outputs, seen) in self.other_ways(request, result, before):
            if isinstance(outputs, wire.Failure):
                return validation.RaisedItem(case=request.name, failure=outputs, observation=seen)
            path = self.exchange.outputs(self.setting.side, request.id, run)
            write_values({**result.outputs, **outputs}, path)
            observation = observation.joined(seen)
        if self.setting.backward:
            with self.observer.calling(memory, call):
                observation = replace(observation, gradcheck=gradcheck_failure(self.run, call))
        return validation.ReturnedItem(case=request.name, observation=observation)

    def called(
        self,
        call: CallInputs,
        memory: GuardedMemory,
        before: CallInputs,
        circumstances: Circumstances = USUAL,
    ) -> tuple[CandidateCall | wire.Failure, Observation]:
        """One call under observation: what it returned or raised, and what was observed."""
        returned: dict[str, Any] | None = None
        with self.observer.calling(memory, call, circumstances) as observation:
            try:
                returned = self.returned_by(call)
                synchronize(self.setting.device)
            except TargetError:
                raise
            except (Exception, SystemExit) as error:
                failure = describe_failure(error, "call")
        if returned is not None:
            try:
                with without_collection():
                    written = written_to(call, before)
                    outputs = outputs_of(returned, call, written)
                    seen = observation.seen(returned, call, memory)
                    cotangents = tuple(written_cotangents(call, before))
                    observed = replace(seen, written=tuple(written), written_cotangents=cotangents)
                    return CandidateCall(call, memory, returned, outputs), observed
            except RuntimeError as error:
                failure = describe_failure(error, "its results")
        usable = is_usable(self.setting.device)
        return failure, observation.seen({}, call, memory) if usable else Observation()

    def returned_by(self, call: CallInputs) -> dict[str, Any]:
        """The leaves of its result by path."""
        if self.setting.backward:
            return with_gradients(self.run, call)
        # A candidate must not depend on it: second calls come with gradients enabled.
        with torch.set_grad_enabled(self.last is not None and self.last.call is call):
            return dict(leaves(self.run(call)))

    def run(self, call: CallInputs) -> Any:
        seed_call(self.call_id)
        return self.candidate(call.arguments, call.state)

    def differs(
        self, request: validation.CandidateRequest, first: CandidateCall, before: CallInputs
    ) -> Differs | None:
        """Outputs with other bits in a second run, in memory that held something else and with programs in
        another order; None if none has."""
        order, is_interpreted = order_of_second_run(request.name), interpreting()
        again = Circumstances("forward", Poison.SECOND)
        concealed = replace(again, concealed=is_interpreted)
        second = self.once_more(request, before, replace(concealed, order=order))
        paths = [path for path in first.outputs if not same_output(first.outputs[path], second.get(path))]
        if not paths:
            return None
        write_values(second, self.exchange.outputs(self.setting.side, request.id, "second"))

        def are_alike(left: Outputs, right: Outputs) -> bool:
            return all(same_output(left.get(path), right.get(path)) for path in paths)

        third = self.once_more(request, before, again)
        by: SecondRun = "chance"
        if are_alike(second, third):
            by = "memory"
        elif is_interpreted and are_alike(first.outputs, third):
            # What changes with every second call is as at first in the third run, and not in those after it.
            fourth = self.once_more(request, before, concealed)
            if are_alike(third, fourth):
                by = "order"
            elif are_alike(fourth, self.once_more(request, before, concealed)):
                by = "reading"
        return Differs(paths=tuple(paths), by=by)

    def once_more(
        self, request: validation.CandidateRequest, before: CallInputs, circumstances: Circumstances
    ) -> Outputs:
        """The outputs of another run on the same values; none where it raises."""
        result, _ = self.afresh(request, before, circumstances)
        return result.outputs if isinstance(result, CandidateCall) else {}

    def other_ways(
        self, request: validation.CandidateRequest, first: CandidateCall, before: CallInputs
    ) -> Iterator[tuple[Run, Seen]]:
        """What is returned where gradients are asked for in another way, or not at all."""
        if request.without_gradients:
            yield "without_gradients", self.without_gradients(request, before)
        if request.again and self.setting.backward:
            yield "gradients_apart", self.gradients_apart(request.again, request, first, before)

    def without_gradients(self, request: validation.CandidateRequest, before: CallInputs) -> Seen:
        """A call on the same values without gradients, for which a candidate may take another way."""
        session = replace(self, setting=replace(self.setting, backward=False), last=None)
        result, observation = session.afresh(request, before, replace(USUAL, poison=Poison.SECOND))
        return result.outputs if isinstance(result, CandidateCall) else result, observation

    def gradients_apart(
        self, other: str, request: validation.CandidateRequest, first: CandidateCall, before: CallInputs
    ) -> Seen:
        """Each gradient asked for alone, after a forward pass on the inputs of another case."""
        memory = GuardedMemory(self.setting.device, Poison.SECOND, self.red_zone_bytes)

        def placed(inputs: CallInputs) -> CallInputs:
            return place_in_guarded_memory(inputs, request.large_stride, memory)

        between = placed(self.exchange.call(other, self.setting.device))
        returned: dict[str, Any] = {}
        try:
            with self.observer.calling(memory, between) as observation:
                returned = gradients_apart(self.run, lambda: placed(before), between, first.outputs)
            return outputs_of(returned, between, []), observation.seen(returned, between, memory)
        except (Exception, SystemExit) as error:
            return describe_failure(error, "call"), Observation()
        finally:
            memory.close()

    def afresh(
        self, request: validation.CandidateRequest, before: CallInputs, circumstances: Circumstances
    ) -> tuple[CandidateCall | wire.Failure, Observation]:
        """Another call on the same values."""
        memory = GuardedMemory(self.setting.device, circumstances.poison, self.red_zone_bytes)
        try:
            call = place_in_guarded_memory(before, request.large_stride, memory)
            return self.called(call, memory, before, circumstances)
        finally:
            memory.close()

    def drop_last(self) -> None:
        """Free the last case's memory."""
        if self.last is not None:
            self.last.memory.close()
            self.last = None


def order_of_second_run(case: str) -> Order:
    """The same in each validation: reversed in about half of the cases, shuffled in the others."""
    return "reversed" if zlib.crc32(case.encode()) % 2 else "shuffled"


def place_in_guarded_memory(
    before: CallInputs, large_stride: Collection[str], memory: GuardedMemory
) -> CallInputs:
    """A copy of the inputs, each tensor between red zones; those of `large_stride` at huge strides."""

    def place(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name in large_stride:
            return memory.spread(tensor, large_strides(tuple(tensor.shape)), name)
        return memory.placed(tensor, name)

    return replace(map_tensors(before, place), cotangents=copy.deepcopy(before.cotangents))


@contextmanager
def without_collection() -> Iterator[None]:
    """Inside, no finalizer of the author's runs: nothing would observe it."""
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


def changed_since(earlier: CandidateCall, call: CallInputs) -> list[str]:
    """Results of an earlier call that have changed since, but for those in the inputs' memory."""
    tensors = (*call.tensors().values(), *call.cotangents.values())
    inputs = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    return [
        path
        for path, leaf in earlier.returned.items()
        if isinstance(leaf, torch.Tensor)
        and plain(leaf) is None
        and leaf.untyped_storage().data_ptr() not in inputs
        and not same_output(output_of(leaf), earlier.outputs[path])
    ]
