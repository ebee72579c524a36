"""Job `reference`: whatever needs the reference. It prepares cases, and compares candidates with the truth.

One process does it for a whole validation, or for all stages of a conversion: inputs are generated once, and
the truth is computed once, after a candidate has run, and kept here. It is never written anywhere.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..calls.call_inputs import drawn, drawn_cotangents, trained
from ..calls.exchange import REFERENCE, CallInputs, Exchange
from ..calls.generate import perturbed_state
from ..calls.tensors import write_values
from ..failure import describe_failure
from ..job_report import Report
from ..loading.sides import stage_candidate, stage_reference
from ..loading.target import load
from ..truth.compare import compared
from ..truth.oracle import Oracle, Truth

KEPT_BYTES = 2**30
"""Truths are kept for further candidates up to so many bytes; then the oldest go."""


def work(
    report: Report,
    target: dict[str, Any],
    candidate: dict[str, Any],
    setting: dict[str, Any],
    state_seed: int,
    budget: dict[str, Any],
) -> dict[str, Any]:
    """An item once the reference is loaded, then one for each request, whose `do` names a method of Bench.

    `candidate` is the first that will be compared: where one file holds both, the reference loads its own
    part of it. `setting` holds the exchange `folder`, the torch `device`, and whether gradients are compared,
    `backward`. `budget` is what an error may be (compare.py).
    """
    report.during("load")
    exchange = Exchange(Path(setting["folder"]))
    if not (exchange.staged / REFERENCE).exists():
        copies = stage_reference(target, candidate, exchange.staged / REFERENCE)
        exchange.write_staging(REFERENCE, copies)
    reference = load(target, "reference", exchange.read_staging(REFERENCE))
    reference.to_gpu()
    if not exchange.state.exists():
        write_values(perturbed_state(reference.state, trained(reference), state_seed), exchange.state)
    oracle = Oracle(reference, exchange, setting["device"], setting["backward"])
    bench = ReferenceSession(target, oracle, budget)
    report.item({"loaded": reference.name, **device_facts(setting["device"])})
    answers = {
        "prepare": bench.prepare,
        "stage": bench.stage,
        "compare": bench.compare,
        "forget": bench.forget,
    }
    for request in report.requests():
        report.during(request["name"])
        report.item(answers[request["do"]](request))
    return {}


def device_facts(device: str) -> dict[str, Any]:
    """Its name, and how much of its memory is free."""
    if device == "cpu":
        return {"device": "CPU", "free_bytes": None}
    return {"device": torch.cuda.get_device_name(), "free_bytes": torch.cuda.mem_get_info()[0]}


@dataclass
class ReferenceSession:
    """The reference, and what has been computed with it so far."""

    target: Mapping[str, Any]
    oracle: Oracle
    budget: Mapping[str, Any]
    truths: OrderedDict[str, Truth] = field(default_factory=OrderedDict)
    """By the case's id, the one that was needed longest ago first."""

    def stage(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write the files that the candidate `candidate` of the side `name` loads: their `digest`."""
        exchange, side = self.oracle.exchange, request["name"]
        copies = stage_candidate(self.target, request["candidate"], exchange.staged / side)
        return {"digest": exchange.write_staging(side, copies)}

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Generate the inputs of a case, and see whether the reference can do it.

        `case` is the JSON of inputs/case.py with an `id`, which names its folder, and a `seed`. Answers `ok`
        with `digest` and `aliases`, or `raised`: an exception of the user's code is the case's result.
        """
        case, exchange = request["case"], self.oracle.exchange
        try:
            arguments = drawn(self.oracle.reference, case)
            exchange.put(case["id"], CallInputs(arguments, {}))
            run = dataclasses.replace(self.oracle, backward=False).run_as_it_is(case["id"], case["seed"])
            if self.oracle.backward:
                cotangents = drawn_cotangents(run.outputs, case["seed"])
                exchange.put(case["id"], CallInputs(arguments, {}, cotangents))
                self.oracle.run_as_it_is(case["id"], case["seed"])
        except Exception as error:
            return {"status": "raised", "failure": describe_failure(error, case["name"])}
        return {"status": "ok", "digest": exchange.digest(case["id"]), "aliases": run.aliases}

    def compare(self, request: dict[str, Any]) -> dict[str, Any]:
        """What a candidate's outputs of a case are like: `ok` with `statistics`, or `raised`.

        `side` names the candidate; `digests` are those of the case and of the candidate's files.
        """
        case_id, side, exchange = request["id"], request["side"], self.oracle.exchange
        untouched = [exchange.digest(case_id), exchange.staging_digest(side)] == request["digests"]
        try:
            truth = self.truth(case_id, request["seed"])
        except Exception as error:
            return {"status": "raised", "failure": describe_failure(error, request["name"])}
        found = compared(exchange, case_id, side, truth, self.oracle.device, self.budget)
        about = {"case": request["name"], "inputs_untouched": untouched, "truth": truth.precision}
        return {"status": "ok", "statistics": {**about, **found}}

    def forget(self, request: dict[str, Any]) -> dict[str, Any]:
        """Remove all bytes of a case."""
        self.truths.pop(request["id"], None)
        self.oracle.exchange.forget(request["id"])
        return {}

    def truth(self, case_id: str, seed: int) -> Truth:
        """The case's truth, computed once where it can be kept. Raises what the reference raises."""
        if case_id not in self.truths:
            self.truths[case_id] = self.oracle.truth(case_id, seed)
        self.truths.move_to_end(case_id)
        wanted = self.truths[case_id]
        while self.truths and sum(bytes_of(truth) for truth in self.truths.values()) > KEPT_BYTES:
            self.truths.popitem(last=False)
        return wanted


def bytes_of(truth: Truth) -> int:
    outputs = (*truth.pytorch.values(), *truth.precise.values(), *truth.nearby.values())
    return sum(output.tensor.nbytes for output in outputs if output.tensor is not None)
