"""Job `reference`: whatever needs the reference. It prepares cases, and compares candidates with the truth.

One process does it for a whole validation, or for all stages of a conversion: inputs are generated once, and
the truth is computed once, after a candidate has run, and kept here. It is never written anywhere.
"""

import contextlib
import dataclasses
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .. import wire
from ..calls.call_inputs import (
    generated_arguments,
    generated_cotangents,
    generated_state,
    layout_of_gradients,
    numbers_among,
)
from ..calls.exchange import REFERENCE, CallInputs, Exchange
from ..device import is_usable, release_cached
from ..dispatch import AroundFunctions
from ..failure import describe_failure
from ..job_report import JobReport
from ..loading.sides import stage_candidate, stage_reference
from ..loading.target import load
from ..tracing.description import description, has_examples
from ..truth.compare import compare
from ..truth.oracle import Oracle, Truth, with_own_module
from ..truth.order import refuse_unusable
from ..truth.reference_calls import CallLimit
from ..wire import validation
from ..wire.as_json import decoded
from ..wire.comparison import Unordered
from ..wire.statistics import CaseStatistics

KEPT_BYTES = 2**30
"""Truths are kept for further candidates up to this many bytes; then the oldest are dropped."""


def work(
    report: JobReport,
    target: wire.Target,
    candidate: wire.Target,
    setting: validation.ExchangeSetting,
    state_seed: int,
) -> dict[str, Any]:
    """An item once the reference is loaded, then one for each request.

    A reference that leaves the device unusable ends the job early: the other cases are not to blame.
    """
    report.during("load")
    exchange = Exchange(Path(setting.folder))
    if not (exchange.staged / REFERENCE).exists():
        copies = stage_reference(target, candidate, exchange.staged / REFERENCE)
        exchange.write_staging(REFERENCE, copies)
    reference = load(target, "reference", exchange.read_staging(REFERENCE))
    report.during("describe")
    # get_inputs() is not run here: what it leaves behind must not reach the truth.
    described = None if has_examples(reference) else description(target, reference, "reference")
    reference.to_gpu()
    if not exchange.state.exists():
        exchange.put_state(generated_state(reference, state_seed), reference.unsaved)
    oracle = Oracle(reference, exchange, setting.device, setting.backward, limited=CallLimit())
    session = ReferenceSession(target, oracle)
    report.item(loaded_item(reference.name, described, setting.device))
    for request in report.requests(validation.ReferenceRequest):
        report.during(request.name)
        report.item(session.answer(request))
        if not is_usable(setting.device):
            break
        release_cached(setting.device)
    return {}


def loaded_item(name: str, described: wire.Json | None, device: str) -> validation.ReferenceLoadedItem:
    on_cpu = device == "cpu"
    return validation.ReferenceLoadedItem(
        name=name,
        description=described,
        device="CPU" if on_cpu else torch.cuda.get_device_name(),
        free_bytes=None if on_cpu else torch.cuda.mem_get_info()[0],
    )


@dataclass
class ReferenceSession:
    """The reference, and what has been computed with it so far."""

    target: wire.Target
    oracle: Oracle
    truths: OrderedDict[str, Truth] = field(default_factory=OrderedDict)
    """By the case's id, least recently used first."""
    exact: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """By the case's id: numbers that its functions may compare their inputs with."""

    def answer(self, request: validation.ReferenceRequest) -> validation.ReferenceItem:
        match request:
            case validation.PrepareRequest():
                return self.prepare(request.case, request.unordered)
            case validation.CompareRequest():
                return self.compare(request)
            case validation.MeasureRequest():
                return self.measure(request.case)
            case validation.StageRequest():
                return self.stage(request)
            case validation.ForgetRequest():
                return self.forget(request.id)

    def stage(self, request: validation.StageRequest) -> validation.StagedItem:
        """Write the files that the candidate loads."""
        exchange, side = self.oracle.exchange, request.name
        copies = stage_candidate(self.target, request.candidate, exchange.staged / side)
        return validation.StagedItem(digest=exchange.write_staging(side, copies))

    def prepare(
        self, case: wire.Case, unordered: tuple[Unordered, ...]
    ) -> validation.PreparedItem | validation.ReferenceRaisedItem:
        """Generate the inputs of a case, and run the reference on them.

        An exception of the user's code is the case's result, and so is a comparison that does not fit.
        """
        exchange = self.oracle.exchange
        self.exact[case["id"]] = numbers_among(case)
        try:
            arguments = generated_arguments(self.oracle.reference, case)
            exchange.put(case["id"], CallInputs(arguments, {}))
            run = dataclasses.replace(self.oracle, backward=False).run_as_it_is(case["id"], case["seed"])
            refuse_unusable(unordered, run.outputs)
            if self.oracle.backward:
                layout = layout_of_gradients(case)
                cotangents = generated_cotangents(run.outputs, case["seed"], layout=layout)
                exchange.put(case["id"], CallInputs(arguments, {}, cotangents))
                run = self.oracle.run_as_it_is(case["id"], case["seed"])
        except Exception as error:
            return validation.ReferenceRaisedItem(failure=describe_failure(error, case["name"]))
        digest, aliases = exchange.digest(case["id"]), frozenset(run.aliases)
        return validation.PreparedItem(digest=digest, aliases=aliases, draws=run.draws)

    def measure(self, case: wire.Case) -> validation.MeasuredItem:
        """Call the reference where no candidate will be called: the elements of what it computes.

        Where it raises, of what it computed up to then.
        """
        elements, oracle = set[int](), dataclasses.replace(self.oracle, backward=False)

        def note(func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            returned = result if isinstance(result, tuple | list) else (result,)
            elements.update(tensor.numel() for tensor in returned if isinstance(tensor, torch.Tensor))
            return result

        with contextlib.suppress(Exception):
            arguments = generated_arguments(oracle.reference, case)
            oracle.exchange.put(case["id"], CallInputs(arguments, {}))
            call = oracle.inputs(case["id"], case["seed"])
            with AroundFunctions(note):
                oracle.run(with_own_module(oracle.reference), call, case["id"])
        self.forget(case["id"])
        return validation.MeasuredItem(elements=tuple(sorted(elements)))

    def compare(
        self, request: validation.CompareRequest
    ) -> validation.ComparedItem | validation.ReferenceRaisedItem:
        """Compare a candidate's outputs of a case with the truth."""
        case_id, side, exchange = request.id, request.side, self.oracle.exchange
        untouched = (exchange.digest(case_id), exchange.staging_digest(side)) == request.digests
        try:
            truth = self.truth(case_id, request.seed, request.unordered)
        except Exception as error:
            return validation.ReferenceRaisedItem(failure=describe_failure(error, request.name))
        figures = compare(exchange, case_id, side, truth, self.oracle.device)
        about = {"case": request.name, "inputs_untouched": untouched, "truth": truth.precision}
        return validation.ComparedItem(statistics=decoded(CaseStatistics, {**about, **figures}))

    def forget(self, case_id: str) -> validation.ForgottenItem:
        self.truths.pop(case_id, None)
        self.exact.pop(case_id, None)
        self.oracle.exchange.forget(case_id)
        return validation.ForgottenItem()

    def truth(self, case_id: str, seed: int, unordered: tuple[Unordered, ...]) -> Truth:
        """The case's truth, computed once if it can be kept. Raises what the reference raises."""
        if case_id not in self.truths:
            exact = self.exact.get(case_id, ())
            oracle = dataclasses.replace(self.oracle, unordered=unordered, exact=exact)
            self.truths[case_id] = oracle.truth(case_id, seed)
        self.truths.move_to_end(case_id)
        truth = self.truths[case_id]
        while self.truths and sum(bytes_of(kept) for kept in self.truths.values()) > KEPT_BYTES:
            self.truths.popitem(last=False)
        return truth


def bytes_of(truth: Truth) -> int:
    outputs = (*truth.pytorch.values(), *truth.precise.values(), *truth.nearby.values())
    return sum(output.tensor.nbytes for output in outputs if output.tensor is not None)
