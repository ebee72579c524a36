"""Which elements of a result are beyond the error budget, in four steps. The numbers are in budget.py.

1. The unit: the rounding error that nobody can avoid at an element (`unit_of`).
2. PyTorch's own error in units: the measure of the candidate's, unless PyTorch errs too much to be trusted.
3. The allowance: a factor times what PyTorch errs in the element's row or in most rows, and a slack.
4. The verdict on each element: a `Judgement`.

A row is the last dimension; where that is short, the whole output.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import torch

from .blocks import pieces
from .budget import (
    FACTOR,
    FEW,
    MOST_ROWS,
    NOTHING,
    ORDINARY,
    ROUNDING,
    SLACK,
    UNTRUSTED,
    for_dtype,
)

QUANTILE_ELEMENTS = 2**24
"""torch.quantile takes no more."""


class Judgement(IntEnum):
    """The verdict on one element. From the third on, PyTorch's own element is no measure for it."""

    RIGHT = 0
    FAILING = 1
    """Beyond its allowance; or NaN or infinite and should not be, or the reverse."""
    AS_PYTORCH = 2
    """PyTorch and the truth are finite and far apart, and the candidate rounds as PyTorch does."""
    AS_TRUTH = 3
    """The same, and the candidate is right by the truth."""
    UNCONFIRMED = 4
    """The same, and it is neither."""
    UNJUDGED = 5
    """PyTorch or the truth alone is finite. Of whole numbers: rounding chooses, and could choose this one."""


@dataclass(frozen=True)
class Errors:
    """All elements of one output, in its shape; errors are float64 and 0 where nothing is compared."""

    judgement: torch.Tensor
    """A Judgement each, int8."""
    candidate: torch.Tensor
    """In units, as are the next two."""
    pytorch: torch.Tensor
    allowed: torch.Tensor
    """What the candidate may err."""
    deviation: float
    """The largest |candidate - truth| / (1 + |truth|), infinite where one of them alone is finite. It decides
    nothing: fixed tolerances are reported."""

    @property
    def failing(self) -> torch.Tensor:
        """Bool."""
        return self.judgement == Judgement.FAILING


def float_errors(outputs: Mapping[str, torch.Tensor], inputs_rms: float) -> Errors:
    """Errors of floating outputs: `candidate`, `pytorch`, `truth` and `nearby`, all of one shape.

    `rounded`, where it is given, is the truth with PyTorch's largest error at neighboring inputs.
    """
    dtype = outputs["pytorch"].dtype
    limits, slack = torch.finfo(dtype), for_dtype(SLACK, dtype)
    sides = {name: tensor.double() for name, tensor in outputs.items()}
    candidate, pytorch, truth = sides["candidate"], sides["pytorch"], sides["truth"]

    # 1. The unit
    cancelled = cancelled_size(truth, pytorch, inputs_rms)
    unit = unit_of(truth, sides["nearby"], limits, inputs_rms).clamp_min(limits.eps * cancelled)

    # 2. PyTorch's own error
    theirs = in_units(pytorch, truth, unit)
    is_rounding = theirs <= min(ROUNDING, UNTRUSTED / limits.eps)
    is_part_of_row = own_size(pytorch - truth) <= UNTRUSTED * own_size(truth).clamp_min(cancelled)
    trusted = same_kind(pytorch, truth) & (is_rounding | is_part_of_row)
    theirs = torch.where(trusted, theirs, 0.0)

    # 3. The allowance, from what PyTorch errs here and, where it was asked, at neighboring inputs
    in_row = usual_or_own(theirs)
    if "rounded" in sides:
        there = in_units(sides["rounded"], truth, unit)
        there = torch.where(trusted & (there * limits.eps <= UNTRUSTED), there, 0.0)
        in_row = torch.maximum(in_row, usual_in_row(there))
    allowed = FACTOR * in_row + slack

    # 4. The verdict
    ours = torch.where(trusted, in_units(candidate, truth, unit), 0.0)
    # Next to the largest number of the dtype, one rounding more is infinity.
    overflow = candidate.isinf() & (candidate * truth > 0) & (truth.abs() + allowed * unit > limits.max)
    wrong_kind = trusted & ~same_kind(candidate, truth) & ~overflow
    judgement = torch.where(trusted, Judgement.RIGHT, Judgement.UNJUDGED).to(torch.int8)
    judgement[wrong_kind | (ours > allowed)] = Judgement.FAILING
    apart = ~trusted & pytorch.isfinite() & truth.isfinite()
    if bool(apart.any()):
        near_truth = in_units(candidate, truth, unit) <= slack
        coarse = torch.maximum(unit, limits.eps * typical_size(pytorch))
        near_pytorch = in_units(candidate, pytorch, coarse) <= slack
        judgement[apart] = Judgement.UNCONFIRMED
        judgement[apart & candidate.isfinite() & near_truth] = Judgement.AS_TRUTH
        judgement[apart & candidate.isfinite() & near_pytorch] = Judgement.AS_PYTORCH
    compared = trusted & ~wrong_kind & truth.isfinite()
    relative = (candidate - truth).abs()[compared] / (1 + truth.abs()[compared])
    deviation = math.inf if bool(wrong_kind.any()) else largest(relative)
    return Errors(judgement, ours, theirs, allowed, deviation)


def exact_errors(outputs: Mapping[str, torch.Tensor]) -> Errors:
    """Errors of integer and bool outputs: 1 where the candidate has neither PyTorch's value nor the truth.

    Where rounding decides among many values, as it does among the indices of numbers that are almost alike,
    any of them is as right as another.
    """
    as_pytorch = outputs["candidate"] == outputs["pytorch"]
    as_truth = outputs["candidate"] == outputs["truth"]
    judgement = torch.full(as_truth.shape, Judgement.FAILING, dtype=torch.int8, device=as_truth.device)
    judgement[any_choice(outputs)] = Judgement.UNJUDGED
    judgement[as_truth] = Judgement.AS_TRUTH
    judgement[as_pytorch] = Judgement.AS_PYTORCH
    judgement[as_truth & as_pytorch] = Judgement.RIGHT
    failing = (judgement == Judgement.FAILING).double()
    none = torch.zeros_like(failing)
    return Errors(judgement, failing, none, none, math.inf if bool(failing.any()) else 0.0)


def any_choice(outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Where the candidate's value is one of those among which rounding chooses; bool.

    Only where PyTorch's own rounding shows in this output, too: exact ties have a rule. Where values lie no
    further apart than rounding to whole numbers puts them, it chooses between the two of this element alone.
    """
    truth, pytorch, nearby, candidate = (outputs[k] for k in ("truth", "pytorch", "nearby", "candidate"))
    nowhere = torch.zeros_like(truth, dtype=torch.bool)
    if truth.dtype == torch.bool or truth.numel() == 0 or bool((truth == pytorch).all()):
        return nowhere
    apart = max(int((other.long() - truth.long()).abs().max()) for other in (pytorch, nearby))
    if apart < 2:
        return (nearby != truth) & (candidate == nearby)
    moved = (nearby != truth) | (pytorch != truth)
    if moved.double().mean() > 0.5:
        moved = ~nowhere  # where few samples show it of most elements, it is so of the others
    choices = torch.stack([side[moved].long() for side in (truth, pytorch, nearby)])
    return moved & (candidate >= choices.min()) & (candidate <= choices.max())


def unit_of(
    truth: torch.Tensor, nearby: torch.Tensor, limits: torch.finfo, inputs_rms: float
) -> torch.Tensor:
    """The rounding error that nobody can avoid at each element: of the outputs' shape, float64.

    It is the largest of
      - eps times the typical size: a sum of large terms that happens to be small is not expected to be right
        to its last bit,
      - eps times the inputs' size, where the elements are too few to show what is typical,
      - how far the truth itself moves when inputs and arithmetic move by one rounding error,
      - the spacing of numbers around zero.
    """
    size = typical_size(truth)
    if truth.numel() < FEW:
        size = size.clamp_min(inputs_rms)
    # GPUs may flush float32's subnormal numbers to zero.
    spacing = max(limits.eps * limits.tiny, torch.finfo(torch.float32).tiny)
    if limits.bits < 64:
        # The float64 truth rounds too: below this, 0 and the rest of a cancellation look the same.
        spacing = max(spacing, torch.finfo(torch.float64).eps * min(inputs_rms, ORDINARY))
    return torch.maximum(limits.eps * size, typical_size(nearby - truth)).clamp_min(spacing)


def cancelled_size(truth: torch.Tensor, pytorch: torch.Tensor, inputs_rms: float) -> float:
    """How large what cancels is, where everything does, as in a gradient by what has no influence; else 0.

    Only where PyTorch itself keeps more rounding of it than the truth is large: small results of small inputs
    are no cancellation.
    """
    if truth.numel() == 0 or not bool(truth.isfinite().all()):
        return 0.0
    size, left = min(inputs_rms, ORDINARY), float(truth.abs().max())
    noise = float((pytorch - truth).abs().nan_to_num(nan=0.0).max())
    return size if left <= NOTHING * size and noise > left else 0.0


def usual_or_own(errors: torch.Tensor) -> torch.Tensor:
    """What each element's row errs at most, or what almost all rows stay below; the largest of few rows.

    Where PyTorch is far off in a row or two, that excuses no other row.
    """
    if errors.numel() == 0:
        return errors
    rows = rows_of(errors).amax(-1, keepdim=True)
    usual = rows.quantile(MOST_ROWS) if FEW <= rows.numel() <= QUANTILE_ELEMENTS else rows.max()
    return torch.maximum(rows, usual).expand_as(rows_of(errors)).reshape(errors.shape)


def usual_in_row(errors: torch.Tensor) -> torch.Tensor:
    """For each element twice the median of its row: what falls to the other side of a step loosens no row's
    allowance, only what is in most of the row does."""
    rows = rows_of(errors)
    usual = 2 * rows.median(-1, keepdim=True).values if rows.numel() else rows
    return usual.expand_as(rows).reshape(errors.shape)


def typical_size(values: torch.Tensor) -> torch.Tensor:
    """The largest of an element's size, its row's root mean square, the median row's; only what is finite."""
    size, rows = sizes(values)
    return torch.maximum(size, rows.median()) if values.numel() else size


def own_size(values: torch.Tensor) -> torch.Tensor:
    """An element's size or, where it is larger, its row's root mean square; only what is finite."""
    return sizes(values)[0]


def sizes(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each element's own size, of the values' shape, and each row's root mean square."""
    rows = rows_of(torch.where(values.isfinite(), values, 0.0))
    by_row = rows.square().mean(-1, keepdim=True).sqrt()
    return torch.maximum(rows.abs(), by_row).reshape(values.shape), by_row


def rows_of(values: torch.Tensor) -> torch.Tensor:
    """The values as rows of the last dimension; where that is short, as a single row."""
    return values if values.ndim and values.shape[-1] >= FEW else values.reshape(1, -1)


def same_kind(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Where both are finite, both NaN, or the same infinity; bool."""
    return (left == right) | (left.isfinite() & right.isfinite()) | (left.isnan() & right.isnan())


def in_units(values: torch.Tensor, truth: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """|values - truth| / unit; 0 where they are not both finite."""
    return torch.where(values.isfinite() & truth.isfinite(), (values - truth).abs() / unit, 0.0)


def rms(tensors: Iterable[torch.Tensor]) -> float:
    """Root mean square over the finite elements of all floating tensors; 0 where there are none."""
    total, count = 0.0, 0
    for piece in (piece for t in tensors if t.is_floating_point() for piece in pieces(t)):
        wide = piece.double()
        finite = wide[wide.isfinite()]
        total, count = total + float(finite.square().sum()), count + finite.numel()
    return math.sqrt(total / max(count, 1))


def largest(values: torch.Tensor) -> float:
    """The maximum, 0 of nothing; finite, as JSON wants it."""
    return min(float(values.max()), sys.float_info.max) if values.numel() else 0.0
