"""The process that generates the inputs of a size, and afterwards checks what timed calls returned."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..calls.call_inputs import generated_arguments, generated_cotangents, generated_state
from ..calls.exchange import CallInputs, Exchange
from ..calls.tensors import read_values
from ..loading.target import Loaded, load
from ..truth.compare import statistics_of
from ..truth.oracle import Oracle
from ..wire.as_json import decoded
from ..wire.comparison import Unordered
from .input_pool import fresh, variant

OWN_INPUTS = 3
"""Calls with different inputs that a file with its own `inputs()` generates."""
DEVICE = "cuda"


@dataclass(frozen=True)
class HeldCall(Exchange):
    """One call, kept in memory: it may be gigabytes, and the truth reads it several times."""

    held: CallInputs

    def call(self, case_id: str, device: str) -> CallInputs:
        """The inputs, in fresh memory, whichever case is asked for."""
        return fresh(self.held)


class Coordinator:
    """Knows the reference and the inputs, and times nothing; its methods are commands."""

    reference: Loaded
    oracle: Oracle

    def __init__(self, folder: Path, passes: str) -> None:
        self.exchange = Exchange(folder)
        self.backward = passes != "forward"

    def load(self, target: dict[str, Any], seed: int, unordered: list[dict[str, Any]]) -> None:
        """Load the reference, and write the state that all processes get."""
        self.reference = load(target, "reference")
        free = tuple(decoded(Unordered, each) for each in unordered)
        self.oracle = Oracle(self.reference, self.exchange, DEVICE, self.backward, unordered=free)
        self.exchange.put_state(generated_state(self.reference, seed), self.reference.unsaved)

    def generate(self, case: dict[str, Any], seed: int) -> list[str]:
        """Write the calls that a size's inputs are made of; returns their names."""
        count = 1 if case["arguments"] else OWN_INPUTS
        names = [f"inputs{number}" for number in range(count)]
        for number, name in enumerate(names):
            sample = {**case, "name": name, "seed": seed + number}
            call = CallInputs(generated_arguments(self.reference, sample, DEVICE), {})
            self.exchange.put(name, call)
            if self.backward:
                self.reference.to_gpu()
                run = dataclasses.replace(self.oracle, backward=False).run_as_it_is(name, seed)
                cotangents = generated_cotangents(run.outputs, seed, DEVICE)
                self.exchange.put(name, dataclasses.replace(call, cotangents=cotangents))
        return names

    def check(self, inputs: list[str], offset: int, seed: int, names: list[str]) -> dict[str, Any]:
        """By name: how what was returned for these inputs compares with the truth (compare.py)."""
        self.reference.to_gpu()
        call = variant([self.exchange.call(name, DEVICE) for name in inputs], offset)
        truth = dataclasses.replace(self.oracle, exchange=HeldCall(self.exchange.folder, call)).truth(
            str(offset), seed
        )
        checks = {}
        for name in names:
            outputs = read_values(self.exchange.outputs("candidate", name), DEVICE)
            checks[name] = brief(statistics_of(outputs, truth, call))
            self.exchange.forget(name)
        del truth, call
        torch.cuda.empty_cache()
        return checks


def brief(statistics: dict[str, Any]) -> dict[str, Any]:
    """How many elements of which output are wrong, and nothing else."""
    kept = ("path", "differs", "elements", "failing")
    outputs = [{key: output[key] for key in kept} for output in statistics["outputs"]]
    return {"missing": statistics["missing"], "extra": statistics["extra"], "outputs": outputs}
