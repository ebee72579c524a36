"""A candidate's outputs compared with the truth: its errors as statistics, in JSON.

No case is judged here: what is beyond the error budget is counted and described.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, get_args

import torch

from ..allocation import Poison, poison_bytes, storage_bytes
from ..calls.exchange import AFTER_THE_CALL, CallInputs, Exchange
from ..calls.gradients import GRADIENT_OF
from ..calls.tensors import OutputLeaf, Outputs, output_of, read_values
from ..wire.statistics import Run
from .blocks import blocks
from .budget import AS_ELSEWHERE, LITTLE, LOOSER, LOOSEST, NEAR_TIES, SAMPLES_OF_TIES, STRICT, for_dtype
from .diagnostics import is_constant, is_transposed, what_it_looks_like, where_it_fails
from .error import Errors, Judgement, exact_errors, float_errors, largest, rms
from .oracle import Truth
from .order import in_one_order

TINY = 1e-300
TRAITS = ("type", "dtype", "shape", "device")
COUNTS = {
    "failing": Judgement.FAILING,
    "as_pytorch": Judgement.AS_PYTORCH,
    "as_truth": Judgement.AS_TRUTH,
    "unconfirmed": Judgement.UNCONFIRMED,
}
Statistics = dict[str, Any]


def compare(exchange: Exchange, case_id: str, side: str, truth: Truth, device: str) -> Statistics:
    """Statistics of the candidate's outputs of a case, or of a further run's where those are worse."""
    call = exchange.call(case_id, device)
    runs = {run: exchange.outputs(side, case_id, run) for run in get_args(Run)}
    each = {
        run: statistics_of(read_values(folder, device), truth, call)
        for run, folder in runs.items()
        if folder.exists()
    }
    worst = max(each, key=lambda run: wrong_in(each[run]))
    return {**each[worst], "run": worst, "right_at_first": wrong_in(each["first"]) == 0}


def statistics_of(candidate: Outputs, truth: Truth, call: CallInputs) -> Statistics:
    """The statistics of one run.

    Where it fails, the truth follows what the candidate chose among equals. Where it fails by little, more
    samples show how far rounding moves the truth, then how much PyTorch errs: a single one moves an element
    of millions too little by chance. A few whole numbers may be near a tie.
    """

    def by(truth: Truth) -> Statistics:
        return Comparison(candidate, truth, call).statistics()

    statistics = by(truth)
    if wrong_in(statistics) and (following := truth.following(candidate)):
        statistics = by(truth := following)
    if fails_by_little(statistics):
        statistics = by(truth := truth.with_more_samples())
    if fails_by_little(statistics):
        failing = [output for output in statistics["outputs"] if output["failing"]]
        if any(map(is_floating, failing)):
            return by(truth.with_more_roundings())
        if all(output["failing"] <= NEAR_TIES * output["elements"] for output in failing):
            return by(truth.with_more_samples(SAMPLES_OF_TIES))
    return statistics


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


class Comparison:
    """The outputs of one case, side by side."""

    def __init__(self, candidate: Outputs, truth: Truth, call: CallInputs) -> None:
        self.truth = truth
        self.inputs = call.tensors()
        self.inputs_rms = rms(self.inputs.values())
        self.arguments = {f"{name}{AFTER_THE_CALL}": name for name in self.inputs}
        """The names of arguments by the paths that they have as outputs."""
        passed_over = {f"{name}{AFTER_THE_CALL}" for name in truth.run.updated}
        returned = {path: output for path, output in candidate.items() if path not in passed_over}
        # Arguments that the reference writes to, as they were before the call.
        unwritten = {path: name for path, name in self.arguments.items() if path in truth.pytorch}
        before = {path: output_of(self.inputs[name]) for path, name in unwritten.items()}
        self.candidate = in_one_order({**before, **returned}, truth.oracle.unordered)

    def statistics(self) -> dict[str, Any]:
        """For CaseStatistics of wire/statistics.py."""
        ours, theirs = self.candidate, self.truth.pytorch
        extra = [path for path in ours if path not in theirs]
        return {
            "missing": [path for path in theirs if path not in ours],
            "extra": [path for path in extra if path not in self.arguments],
            "mutated": {path: self.arguments[path] for path in extra if path in self.arguments},
            "outputs": [self.output(path) for path in theirs if path in ours],
        }

    def output(self, path: str) -> Statistics:
        """What both sides returned at `path`, and, where type, dtype, shape and device agree, the errors."""
        ours, theirs = self.candidate[path], self.truth.pytorch[path]
        differs = next((t for t in TRAITS if ours.traits.get(t) != theirs.traits.get(t)), None)
        about = {
            "path": path,
            "differs": differs,
            "candidate": {trait: ours.traits.get(trait) for trait in TRAITS},
            "pytorch": {trait: theirs.traits.get(trait) for trait in TRAITS},
            "elements": 0,
            "failing": 0,
        }
        if differs:
            values = [real(leaf) for leaf in (ours, theirs) if leaf.tensor is not None]
            transposed = differs == "shape" and len(values) == 2 and is_transposed(*values)
            right = differs == "dtype" and self.is_right_but_for_dtype(path)
            return {**about, "transposed": transposed, "right_values": right}
        if theirs.tensor is None:
            return about
        if not self.has_truth(path):
            elements = theirs.tensor.numel()
            return {**about, "elements": elements, "unjudged": elements, "unconfirmed": elements}
        return {**about, **self.errors(path, self.sides(path))}

    def has_truth(self, path: str) -> bool:
        """Whether the truth has values there, of the shape that both sides have."""
        leaves = [outputs.get(path) for outputs in (self.candidate, self.truth.pytorch, self.truth.precise)]
        return len({leaf and leaf.tensor is not None and leaf.tensor.shape for leaf in leaves}) == 1

    def sides(self, path: str) -> dict[str, torch.Tensor]:
        """The output as each side has it."""
        truth = self.truth
        outputs = {
            "candidate": self.candidate,
            "pytorch": truth.pytorch,
            "truth": truth.precise,
            "nearby": truth.nearby,
            "rounded": truth.rounded,
        }
        return {side: real(leaves[path]) for side, leaves in outputs.items() if path in leaves}

    def is_right_but_for_dtype(self, path: str) -> bool:
        """Whether floating values of the right shape are right for the shorter of both sides' dtypes."""
        sides = self.sides(path) if self.has_truth(path) else {}
        both = {side: values for side, values in sides.items() if side in ("candidate", "pytorch")}
        if not both or not all(values.is_floating_point() for values in both.values()):
            return False
        shorter = min((values.dtype for values in both.values()), key=lambda dtype: torch.finfo(dtype).bits)
        shortened = {side: values.to(shorter) for side, values in both.items()}
        errors = self.errors(path, {**sides, **shortened})
        return not errors["failing"] and not errors["unconfirmed"]

    def errors(self, path: str, sides: Mapping[str, torch.Tensor]) -> Statistics:
        """Errors in units of the allowed rounding error, and diagnostics of the failing elements."""
        sides = {**sides, "candidate": self.excused(path, sides)}
        pytorch = sides["pytorch"]
        is_float = pytorch.is_floating_point()
        parts = [float_errors(b, self.inputs_rms) if is_float else exact_errors(b) for b in blocks(sides)]
        total = merge([figures_of(part) for part in parts])
        failing = torch.cat([part.failing.reshape(-1) for part in parts]).view(pytorch.shape)
        strict, deviation = for_dtype(STRICT, pytorch.dtype), total.pop("deviation")
        return {
            **total,
            "meets_strict": deviation <= strict,
            "meets_loose": deviation <= min(LOOSER * strict, LOOSEST),
            "constant": pytorch.numel() > 1 and is_constant(pytorch),
            "diagnostics": self.diagnostics(sides, failing) if total["failing"] else None,
        }

    def excused(self, path: str, sides: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The candidate, with the truth where that is not finite and right kernels may have another value."""
        candidate, truth = sides["candidate"], sides["truth"]
        if not candidate.is_floating_point():
            wrong = (candidate != truth) & (candidate != sides["pytorch"])
            return self.as_gpus_do(path, candidate, truth) if bool(wrong.any()) else candidate
        gradient = path.startswith(GRADIENT_OF)
        if not (candidate.is_floating_point() and (gradient or self.has_infinities_alone)):
            return candidate
        ours = candidate.double()
        as_good = torch.zeros_like(truth, dtype=torch.bool)
        if gradient:
            # NaN or infinite: that follows from the order of its sums. PyTorch's own kernels for CPUs and for
            # GPUs differ.
            as_good |= ~(ours.isfinite() | truth.isfinite())
            if any(values.numel() == 0 for values in self.inputs.values()):
                # The gradient of a weight that met no element is zero; PyTorch's own group norm divides by
                # their count.
                as_good |= (ours == 0) & truth.isnan()
        if self.has_infinities_alone:
            # Whether an infinite input meets its opposite follows from the order of operations: an infinite
            # w does in group norm's x * (rstd * w) + (b - mean * rstd * w), in (x - mean) * rstd * w + b not.
            as_good |= ours.isinf() & truth.isnan()
            if bool((ours.isfinite() & truth.isnan() & ~as_good).any()) and path in self.elsewhere:
                # A row of attention whose scores are all -inf is zeros in some of PyTorch's kernels and NaN
                # in others.
                there = real(self.elsewhere[path]).to(ours)
                as_good |= torch.isclose(ours, there, rtol=AS_ELSEWHERE, atol=0.0) & truth.isnan()
            other = truth.isinf() & ~ours.isfinite() & (ours != truth)
            if not gradient and bool(other.any()):
                as_good |= other & self.changes_nearby(path)
        return torch.where(as_good, truth.to(candidate.dtype), candidate)

    def changes_nearby(self, path: str) -> torch.Tensor:
        """Where PyTorch returns another infinity, or NaN, at neighboring inputs.

        An infinite weight of what is zero but for rounding, as of x - mean, has the sign of a rounding error.
        """
        pytorch = real(self.truth.pytorch[path])
        changes = torch.zeros_like(pytorch, dtype=torch.bool)
        for outputs in self.at_neighbors:
            if path in outputs and real(outputs[path]).shape == pytorch.shape:
                changes |= real(outputs[path]) != pytorch
        return changes

    @cached_property
    def at_neighbors(self) -> list[Outputs]:
        return self.truth.at_neighbors()

    def as_gpus_do(self, path: str, candidate: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Integers, with the truth where they are what PyTorch makes of the same values on a GPU."""
        there = self.on_gpus.get(path)
        if there is None or there.tensor is None or there.tensor.shape != candidate.shape:
            return candidate
        return torch.where(candidate == real(there).to(candidate), truth.to(candidate.dtype), candidate)

    @cached_property
    def on_gpus(self) -> Outputs:
        return self.truth.on_gpus()

    @cached_property
    def elsewhere(self) -> Outputs:
        """What PyTorch's kernels for CPUs return, of the candidate's shapes."""
        shapes = {path: output.traits.get("shape") for path, output in self.candidate.items()}
        return {
            path: output
            for path, output in self.truth.elsewhere().items()
            if output.tensor is not None and output.traits["shape"] == shapes.get(path)
        }

    @cached_property
    def has_infinities_alone(self) -> bool:
        """Whether an input is infinite somewhere, and none is NaN."""
        floats = [values.float() for values in self.inputs.values() if values.is_floating_point()]
        has_infinity, has_nan = (any(bool(f(v).any()) for v in floats) for f in (torch.isinf, torch.isnan))
        return has_infinity and not has_nan

    def diagnostics(self, sides: Mapping[str, torch.Tensor], failing: torch.Tensor) -> Statistics:
        """Where it fails, and, by the first block that does, what the wrong values look like."""
        where = where_it_fails(failing)
        first = tuple(where["first"])
        every = blocks({**sides, "failing": failing})
        block = next(block for block in every if bool(block["failing"].any()))
        wrong = block.pop("failing")
        return {
            **where,
            "values": {side: plain(sides[side][first]) for side in ("candidate", "pytorch", "truth")},
            "unwritten": int((is_poison(block["candidate"]) & wrong).sum()),
            **what_it_looks_like(block, wrong, self.inputs),
        }


def figures_of(errors: Errors) -> Statistics:
    """What an output errs, or one block of it: most of OutputStatistics of wire/statistics.py."""
    share = (errors.candidate / errors.allowed.clamp_min(TINY)).reshape(-1)
    closest = share.topk(min(1, share.numel())).indices
    return {
        "elements": share.numel(),
        **{name: int((errors.judgement == kind).sum()) for name, kind in COUNTS.items()},
        "unjudged": int((errors.judgement > Judgement.FAILING).sum()),
        "candidate_error": largest(errors.candidate.reshape(-1)[closest]),
        "allowed_error": largest(errors.allowed.reshape(-1)[closest]),
        "pytorch_error": largest(errors.pytorch),
        "deviation": errors.deviation,
    }


def merge(parts: Sequence[Statistics]) -> Statistics:
    """The figures of all blocks as those of one output."""
    worst = max(parts, key=lambda part: part["candidate_error"] / max(part["allowed_error"], TINY))
    sums = ("elements", "unjudged", *COUNTS)
    return {
        **worst,
        **{name: sum(part[name] for part in parts) for name in sums},
        **{name: max(part[name] for part in parts) for name in ("pytorch_error", "deviation")},
    }


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
    return number if math.isfinite(number) else str(number)
