"""A candidate's outputs compared with the truth: its errors as statistics, in JSON.

No case is judged here: what exceeds the given budget is counted and described.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from .. import wire
from ..allocation import Poison, poison_bytes
from ..calls.exchange import AFTER_THE_CALL, CallInputs, Exchange
from ..calls.gradients import GRADIENT_OF
from ..calls.tensors import OutputLeaf, Outputs, output_of, read_outputs, storage_bytes
from .blocks import blocks
from .diagnostics import is_transposed, what_it_looks_like, where_it_fails
from .error import ErrorBudget, Errors, Tolerance, exact_errors, float_errors, is_one_value, largest, rms
from .oracle import MORE_SAMPLES, Truth

TINY = 1e-300
LITTLE = 16.0
"""Times the allowed error: beyond it, no other sample would make a right value of a wrong one."""
ELSEWHERE = 1e-2
"""By how much of itself a value may differ from one that another kernel has in place of NaN."""
FEW = 0.01
"""The share of whole numbers up to which those that differ may all be near a tie, which rounding decides."""
TIES = range(2 + MORE_SAMPLES, 14)
"""Samples of what is near a tie: each of them moves every other one."""
FAILING = "failing"
TRAITS = ("type", "dtype", "shape", "device")


def compared(
    exchange: Exchange, case_id: str, side: str, truth: Truth, device: str, budget: wire.ErrorBudget
) -> dict[str, Any]:
    """Statistics of the candidate's outputs of a case, or of its second run where those are worse."""
    call = exchange.call(case_id, device)
    runs = [exchange.outputs(side, case_id), exchange.second_run(side, case_id)]
    found = [
        statistics_of(read_outputs(folder, device), truth, call, budget) for folder in runs if folder.exists()
    ]
    worst: dict[str, Any] = max(found, key=wrong_in)
    return {**worst, "right_at_first": wrong_in(found[0]) == 0}


def statistics_of(
    candidate: Outputs, truth: Truth, call: CallInputs, budget: wire.ErrorBudget
) -> dict[str, Any]:
    """The statistics of one run.

    Where it fails by little, more samples show how far rounding moves the truth, then how much PyTorch errs:
    a single one moves an element of millions too little by chance. A few whole numbers may be near a tie.
    """
    found = Comparison(candidate, truth, call, budget).statistics()
    if fails_by_little(found):
        truth = truth.with_more_samples()
        found = Comparison(candidate, truth, call, budget).statistics()
    if not fails_by_little(found):
        return found
    failing = [output for output in found["outputs"] if output["failing"]]
    if any(map(is_floating, failing)):
        return Comparison(candidate, truth.with_more_roundings(), call, budget).statistics()
    if all(output["failing"] <= FEW * output["elements"] for output in failing):
        return Comparison(candidate, truth.with_more_samples(TIES), call, budget).statistics()
    return found


def fails_by_little(statistics: Mapping[str, Any]) -> bool:
    """Whether values fail, and not one of them by far; of whole numbers, none is far."""
    failing = [output for output in statistics["outputs"] if output["failing"]]
    return bool(failing) and all(
        output["candidate_error"] <= LITTLE * output["allowed_error"] or not is_floating(output)
        for output in failing
    )


def is_floating(output: Mapping[str, Any]) -> bool:
    return "float" in output["pytorch"]["dtype"]


def wrong_in(statistics: dict[str, Any]) -> int:
    """How much is wrong in a run: the run with the most is reported."""
    differing = sum(output["differs"] is not None for output in statistics["outputs"])
    failing = sum(int(output["failing"]) for output in statistics["outputs"])
    others = sum(len(statistics[key]) for key in ("missing", "extra", "mutated"))
    return others + differing + failing


def with_truth_where(as_good: torch.Tensor, candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The candidate, with the truth where what it has is as good."""
    return torch.where(as_good, truth.to(candidate.dtype), candidate)


def with_one_infinity(candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The candidate, with the truth where neither is finite.

    Whether a gradient is NaN or infinite there follows from the order of its sums: PyTorch's own kernels for
    CPUs and for GPUs differ.
    """
    return with_truth_where(~(candidate.isfinite() | truth.isfinite()), candidate, truth)


def with_the_infinities_of_another_order(candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The candidate, with NaN where it is infinite and the truth NaN.

    Whether an infinite input meets its opposite follows from the order of operations: group norm's
    x * (rstd * w) + (b - mean * rstd * w) does for an infinite w, (x - mean) * rstd * w + b does not.
    """
    return with_truth_where(candidate.isinf() & truth.isnan(), candidate, truth)


def with_sums_of_nothing(candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The candidate, with NaN where it is zero and the truth NaN.

    The gradient of a weight that met no element is zero; PyTorch's own group norm divides by their count.
    """
    return with_truth_where((candidate == 0) & truth.isnan(), candidate, truth)


def with_what_pytorch_has_elsewhere(
    candidate: torch.Tensor, truth: torch.Tensor, elsewhere: torch.Tensor
) -> torch.Tensor:
    """The candidate, with NaN where the truth is and PyTorch's own kernel for CPUs has the same value as it.

    A row of attention whose scores are all -inf is zeros in some of PyTorch's kernels and NaN in others.
    """
    as_there = torch.isclose(candidate, elsewhere.to(candidate), rtol=ELSEWHERE, atol=0.0)
    return with_truth_where(as_there & truth.isnan(), candidate, truth)


def has_infinities_alone(inputs: Iterable[torch.Tensor]) -> bool:
    """Whether an input is infinite somewhere, and none is NaN."""
    floats = [values for values in inputs if values.is_floating_point()]
    return any(bool(values.isinf().any()) for values in floats) and not any(
        bool(values.isnan().any()) for values in floats
    )


class Comparison:
    """The outputs of one case, side by side."""

    def __init__(self, candidate: Outputs, truth: Truth, call: CallInputs, budget: wire.ErrorBudget) -> None:
        self.truth = truth
        self.call = call
        self.inputs = call.tensors()
        self.arguments = {f"{name}{AFTER_THE_CALL}": name for name in self.inputs}
        """The names of arguments by the paths that they have as outputs."""
        self.budget = budget
        passed_over = {f"{name}{AFTER_THE_CALL}" for name in truth.updated}
        returned = {path: output for path, output in candidate.items() if path not in passed_over}
        self.candidate = {**self.unwritten_arguments(), **returned}

    def unwritten_arguments(self) -> Outputs:
        """Arguments that the reference writes to, as they were before the call."""
        names = {path: name for path, name in self.arguments.items() if path in self.truth.pytorch}
        return {path: output_of(self.inputs[name]) for path, name in names.items()}

    def statistics(self) -> dict[str, Any]:
        """For CaseStatistics of validate/error_statistics.py."""
        ours, theirs = self.candidate, self.truth.pytorch
        extra = [path for path in ours if path not in theirs]
        return {
            "missing": [path for path in theirs if path not in ours],
            "extra": [path for path in extra if path not in self.arguments],
            "mutated": {path: self.arguments[path] for path in extra if path in self.arguments},
            "outputs": [self.output(path) for path in theirs if path in ours],
        }

    def output(self, path: str) -> dict[str, Any]:
        """What both sides returned at `path`, and, where type, dtype, shape and device agree, the errors."""
        ours, theirs = self.candidate[path], self.truth.pytorch[path]
        differs = next((t for t in TRAITS if ours.traits.get(t) != theirs.traits.get(t)), None)
        about = {
            "path": path,
            "differs": differs,
            "candidate": {trait: ours.traits.get(trait) for trait in TRAITS},
            "pytorch": {trait: theirs.traits.get(trait) for trait in TRAITS},
        }
        if differs:
            transposed = differs == "shape" and shows_transposed(ours, theirs)
            right = differs == "dtype" and self.is_right_but_for_dtype(path)
            return {**about, "elements": 0, "failing": 0, "transposed": transposed, "right_values": right}
        if theirs.tensor is None:
            return {**about, "elements": 0, "failing": 0}
        precise = self.truth.precise.get(path)
        if precise is None or precise.traits.get("shape") != theirs.traits["shape"]:
            elements = math.prod(theirs.traits["shape"])
            return {
                **about, "elements": elements, "failing": 0, "unjudged": elements, "unconfirmed": elements
            }  # fmt: skip
        return {**about, **self.errors(path)}

    def is_right_but_for_dtype(self, path: str) -> bool:
        """Whether floating values of the right shape are right for the shorter of both sides' dtypes."""
        ours, theirs = self.candidate[path], self.truth.pytorch[path]
        precise, nearby = self.truth.precise.get(path), self.truth.nearby.get(path)
        if precise is None or nearby is None:
            return False
        if len({tuple(side.traits.get("shape") or ()) for side in (ours, theirs, precise)}) > 1:
            return False
        candidate, pytorch = real(ours), real(theirs)
        if not (candidate.is_floating_point() and pytorch.is_floating_point()):
            return False
        shorter = min(candidate.dtype, pytorch.dtype, key=lambda dtype: torch.finfo(dtype).bits)
        outputs = {
            "candidate": candidate.to(shorter),
            "pytorch": pytorch.to(shorter),
            "truth": real(precise),
            "nearby": real(nearby),
        }
        errors = float_errors(outputs, rms(self.inputs.values()), self.budget_for(shorter))
        return not bool(errors.failing.any()) and not bool(errors.unconfirmed.any())

    def errors(self, path: str) -> dict[str, Any]:
        """Errors in units of the allowed rounding error, and diagnostics of the failing elements."""
        sides = {
            "candidate": self.candidate[path],
            "pytorch": self.truth.pytorch[path],
            "truth": self.truth.precise[path],
            "nearby": self.truth.nearby[path],
        }
        if path in self.truth.rounded:
            sides["rounded"] = self.truth.rounded[path]
        outputs = {side: real(output) for side, output in sides.items()}
        outputs["candidate"] = self.excused(path, outputs["candidate"], outputs["truth"])
        inputs_rms = rms(self.inputs.values())
        parts = [self.measured(block, inputs_rms) for block in blocks(outputs)]
        total = merged([part.figures for part in parts])
        if total["constant"] and len(parts) > 1:
            total["constant"] = is_one_value(outputs["pytorch"])
        failing = torch.cat([part.failing.reshape(-1) for part in parts]).view(outputs["pytorch"].shape)
        return {**total, "diagnostics": self.diagnostics(outputs, failing) if total["failing"] else None}

    def excused(self, path: str, candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """The candidate, with the truth where a right kernel may have something else that is not finite."""
        if path.startswith(GRADIENT_OF):
            candidate = with_one_infinity(candidate, truth)
            if any(values.numel() == 0 for values in self.inputs.values()):
                candidate = with_sums_of_nothing(candidate, truth)
        if not (candidate.is_floating_point() and self.has_infinities_alone):
            return candidate
        candidate = with_the_infinities_of_another_order(candidate, truth)
        if bool((candidate.isfinite() & truth.isnan()).any()) and path in self.elsewhere:
            return with_what_pytorch_has_elsewhere(candidate, truth, real(self.elsewhere[path]))
        return candidate

    @cached_property
    def elsewhere(self) -> Outputs:
        """What PyTorch's kernels for CPUs return, of the candidate's shapes."""
        found = {path: output for path, output in self.truth.elsewhere().items() if output.tensor is not None}
        shapes = {path: output.traits.get("shape") for path, output in self.candidate.items()}
        return {path: output for path, output in found.items() if output.traits["shape"] == shapes.get(path)}

    @cached_property
    def has_infinities_alone(self) -> bool:
        """Of the inputs: looked at once for all outputs."""
        return has_infinities_alone(self.inputs.values())

    def measured(self, outputs: Mapping[str, torch.Tensor], inputs_rms: float) -> "Measured":
        """The errors of whole outputs, or of one block of them."""
        dtype = outputs["pytorch"].dtype
        if dtype.is_floating_point:
            errors = float_errors(outputs, inputs_rms, self.budget_for(dtype))
        else:
            errors = exact_errors(outputs)
        closest = closest_to_its_limit(errors)
        figures = {
            "elements": errors.failing.numel(),
            "failing": int(errors.failing.sum()),
            "unjudged": int((~errors.judged).sum()),
            "unconfirmed": int(errors.unconfirmed.sum()),
            "as_pytorch": int(errors.as_pytorch.sum()),
            "as_truth": int(errors.as_truth.sum()),
            "candidate_error": largest(errors.candidate.reshape(-1)[closest]),
            "pytorch_error": largest(errors.pytorch[errors.judged]),
            "allowed_error": largest(errors.allowed.reshape(-1)[closest]),
            "meets_strict": errors.meets_strict,
            "meets_loose": errors.meets_loose,
            "constant": errors.constant,
        }
        return Measured(figures, errors.failing)

    def budget_for(self, dtype: torch.dtype) -> ErrorBudget:
        name = str(dtype).removeprefix("torch.")
        slack, strict, loose = (
            table.get(name, min(table.values()))
            for table in (self.budget["slack"], self.budget["strict"], self.budget["loose"])
        )
        tolerance = Tolerance(strict, loose)
        return ErrorBudget(self.budget["factor"], slack, self.budget["untrusted"], tolerance)

    def diagnostics(self, outputs: Mapping[str, torch.Tensor], failing: torch.Tensor) -> dict[str, Any]:
        """Where it fails, and, by the first block that does, what the wrong values look like."""
        where = where_it_fails(failing)
        first = tuple(where["first"])
        every = blocks({**outputs, FAILING: failing})
        block = next(block for block in every if bool(block[FAILING].any()))
        wrong = block.pop(FAILING)
        return {
            **where,
            "values": {side: plain(outputs[side][first]) for side in ("candidate", "pytorch", "truth")},
            "unwritten": int((is_poison(block["candidate"]) & wrong).sum()),
            **what_it_looks_like(block, wrong, self.inputs),
        }


@dataclass(frozen=True)
class Measured:
    """What one block of an output, or all of it, errs."""

    figures: dict[str, Any]
    """For OutputStatistics of validate/error_statistics.py, without the diagnostics."""
    failing: torch.Tensor
    """Bool, of the block's shape."""


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all blocks as those of one output."""
    worst = max(parts, key=lambda part: part["candidate_error"] / max(part["allowed_error"], TINY))
    counts = ("elements", "failing", "unjudged", "unconfirmed", "as_pytorch", "as_truth")
    return {
        **{name: sum(part[name] for part in parts) for name in counts},
        "candidate_error": worst["candidate_error"],
        "pytorch_error": max(part["pytorch_error"] for part in parts),
        "allowed_error": worst["allowed_error"],
        **{name: all(part[name] for part in parts) for name in ("meets_strict", "meets_loose", "constant")},
    }


def closest_to_its_limit(errors: Errors) -> torch.Tensor:
    """The flat index, 1-D, of the element with the largest share of its allowed error; empty if none."""
    return (
        (errors.candidate / errors.allowed.clamp_min(TINY))
        .reshape(-1)
        .topk(min(1, errors.candidate.numel()))
        .indices
    )


def shows_transposed(ours: OutputLeaf, theirs: OutputLeaf) -> bool:
    """A wrong shape may still hold the right values."""
    return ours.tensor is not None and theirs.tensor is not None and is_transposed(real(ours), real(theirs))


def real(output: OutputLeaf) -> torch.Tensor:
    """The values; complex ones as pairs of real numbers."""
    assert output.tensor is not None
    return torch.view_as_real(output.tensor) if output.tensor.is_complex() else output.tensor


def is_poison(values: torch.Tensor) -> torch.Tensor:
    """Which elements still hold what memory held before the candidate ran."""
    pattern = torch.frombuffer(bytearray(poison_bytes(values.dtype, Poison.FIRST)), dtype=torch.uint8)
    rows = storage_bytes(values.contiguous().clone()).view(-1, len(pattern))
    return (rows == pattern.to(values.device)).all(dim=1).reshape(values.shape)


def plain(value: torch.Tensor) -> float | str:
    """A number that JSON can hold; NaN and infinities as text."""
    number = value.item()
    return number if value.isfinite() else str(number)
