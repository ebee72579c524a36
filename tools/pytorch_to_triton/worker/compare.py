"""Job `compare`: reduce the outputs of oracle and subject to error statistics, as plain JSON.

It judges no case: it counts what exceeds the budget that it is given, and tells what the excess looks like.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .error import Budget, Errors, exact_errors, float_errors, largest, rms
from .exchange import Exchange
from .facts import is_transposed, what_it_looks_like, where_it_fails
from .report import Report
from .tensors import Record, read_outputs, read_tensor

SIDES = ("candidate", "pytorch", "truth", "nearby")


def work(
    report: Report, cases: list[dict[str, Any]], folder: str, device: str, budget: dict[str, Any]
) -> dict[str, Any]:
    """One item a case: statistics of every output, and the outputs that only one side has.

    `budget` holds `factor`, `untrusted`, and `slack` by dtype (error.py). The case's bytes are removed.
    """
    exchange = Exchange(Path(folder))
    for done, case in enumerate(cases):
        report.during(case["name"])
        report.progress(done, len(cases), f"compare: {case['name']}")
        statistics = Comparison(exchange, case["id"], device, budget).statistics()
        report.item({"case": case["name"], **statistics})
        exchange.forget(case["id"])
    return {}


class Comparison:
    """The outputs of one case, side by side."""

    def __init__(self, exchange: Exchange, case_id: str, device: str, budget: Mapping[str, Any]) -> None:
        self.folders = {side: exchange.case(side, case_id) for side in SIDES}
        self.records = {side: read_outputs(folder) for side, folder in self.folders.items()}
        self.inputs = exchange.call(case_id, device).tensors()
        self.device = device
        self.budget = budget

    def statistics(self) -> dict[str, Any]:
        """`outputs`: one entry a path that both have; `missing` and `extra`: paths that one side lacks."""
        ours, theirs = self.records["candidate"], self.records["pytorch"]
        return {
            "missing": [path for path in theirs if path not in ours],
            "extra": [path for path in ours if path not in theirs],
            "outputs": [self.output(path) for path in theirs if path in ours],
        }

    def output(self, path: str) -> dict[str, Any]:
        """What both sides returned at `path`, and, where type, dtype, shape and device agree, the errors."""
        ours, theirs = self.records["candidate"][path], self.records["pytorch"][path]
        traits = ("type", "dtype", "shape", "device")
        differs = next((trait for trait in traits if ours.get(trait) != theirs.get(trait)), None)
        facts = {
            "path": path,
            "differs": differs,
            "candidate": {trait: ours.get(trait) for trait in traits},
            "pytorch": {trait: theirs.get(trait) for trait in traits},
        }
        if differs:
            return {**facts, "elements": 0, "failing": 0, "transposed": self.is_transposed(path, differs)}
        if theirs["form"] == "other":
            return {**facts, "elements": 0, "failing": 0}
        if self.records["truth"].get(path, {}).get("shape") != theirs["shape"]:
            elements = math.prod(theirs["shape"])
            return {**facts, "elements": elements, "failing": 0, "unjudged": elements}
        return {**facts, **self.errors(path)}

    def is_transposed(self, path: str, differs: str) -> bool:
        """A wrong shape may still hold the right values."""
        return differs == "shape" and is_transposed(self.read("candidate", path), self.read("pytorch", path))

    def errors(self, path: str) -> dict[str, Any]:
        """Figures in units of the allowed rounding error, and facts about the failing elements."""
        outputs = {side: self.read(side, path) for side in SIDES}
        dtype = outputs["pytorch"].dtype
        if dtype.is_floating_point:
            slacks = self.budget["slack"]
            slack = slacks.get(str(dtype).removeprefix("torch."), min(slacks.values()))
            budget = Budget(self.budget["factor"], slack, self.budget["untrusted"])
            errors = float_errors(outputs, rms(self.inputs.values()), budget)
        else:
            errors = exact_errors(outputs)
        figures = {
            "elements": errors.failing.numel(),
            "failing": int(errors.failing.sum()),
            "unjudged": int((~errors.judged).sum()),
            "candidate_error": largest(errors.candidate),
            "pytorch_error": largest(errors.pytorch[errors.judged]),
            "allowed_error": errors.allowed,
        }
        return {**figures, "facts": self.facts(outputs, errors) if figures["failing"] else None}

    def facts(self, outputs: Mapping[str, torch.Tensor], errors: Errors) -> dict[str, Any]:
        where = where_it_fails(errors.failing)
        first = tuple(where["first"])
        return {
            **where,
            "values": {side: plain(outputs[side][first]) for side in ("candidate", "pytorch", "truth")},
            **what_it_looks_like(outputs, errors.failing, self.inputs),
        }

    def read(self, side: str, path: str) -> torch.Tensor:
        """The output; a complex one as pairs of real numbers."""
        record: Record = self.records[side][path]
        tensor = read_tensor(record, self.folders[side], self.device)
        return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def plain(value: torch.Tensor) -> float | str:
    """A number that JSON can hold; NaN and infinities as text."""
    number = value.item()
    return number if value.isfinite() else str(number)
