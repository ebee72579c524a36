"""How far a result is from the truth, in units of the rounding error that the problem allows.

The unit of an element is the largest of
  - the output dtype's eps times the element's size in the truth, its row's root mean square, or the typical
    row's: a sum of large terms that happens to be small is not expected to be right to its last bit,
  - how far the truth itself moves when the inputs move by one rounding error (its conditioning), likewise for
    the element, its row and the typical row,
  - eps times the inputs' root mean square, in an output of a few elements, too few to show what is typical,
    and where everything cancels but PyTorch keeps some rounding,
  - the spacing of numbers around zero.
A row is the last dimension; where that is short, the whole output.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from .blocks import pieces

FINITE, NAN, POSITIVE_INF, NEGATIVE_INF = range(4)
FEW = 16
"""Fewer elements than this do not show what size is typical."""
ORDINARY = 1e3
"""Root mean square up to which inputs show how large the terms of a cancellation were."""
CLEARLY_OFF = 100.0
"""Units from which on an error of PyTorch's is more than rounding of something small."""
USUAL = 0.9
"""In all rows a candidate may err as much as PyTorch errs at most in this share of its rows."""
NOTHING = 2.0**-40
"""Of the inputs' size: what float64 leaves of it, times the reciprocal of something small."""
QUANTILE_ELEMENTS = 2**24
"""torch.quantile takes no more."""


@dataclass(frozen=True)
class Tolerance:
    """Fixed tolerances, absolute and relative alike: they are reported, the budget decides."""

    strict: float
    loose: float


@dataclass(frozen=True)
class ErrorBudget:
    """What a candidate may err: `factor` times what PyTorch errs, plus `slack` units."""

    factor: float
    slack: float
    untrusted: float
    """Relative error, in sizes instead of units, from which on PyTorch's own element is not trusted: both in
    typical sizes and, where that is more than rounding, in its own row's."""
    tolerance: Tolerance


@dataclass(frozen=True)
class Errors:
    """Element by element: errors of the candidate and of PyTorch, in units; what is allowed, what is judged.

    All tensors have the output's shape; `candidate` and `pytorch` are float64, zero where not compared.
    """

    candidate: torch.Tensor
    pytorch: torch.Tensor
    judged: torch.Tensor
    """False where PyTorch's own element cannot be trusted: NaN or infinite where the truth is not, or the
    reverse, or as far off as `ErrorBudget.untrusted`; of integers, another value."""
    failing: torch.Tensor
    as_pytorch: torch.Tensor
    """Not judged, finite in PyTorch and in the truth, and the candidate rounds as PyTorch does."""
    as_truth: torch.Tensor
    """The same where the candidate is right by the truth, and not as PyTorch."""
    unconfirmed: torch.Tensor
    """The same where it is neither."""
    allowed: torch.Tensor
    """What the candidate may err, float64."""
    meets_strict: bool
    meets_loose: bool
    constant: bool
    """All of PyTorch's elements have one value: a kernel that computes nothing may seem right."""


def float_errors(outputs: Mapping[str, torch.Tensor], inputs_rms: float, budget: ErrorBudget) -> Errors:
    """Errors of floating outputs: `candidate`, `pytorch`, `truth` and `nearby`, all of one shape.

    `rounded`, where it is given, is the truth with PyTorch's largest error at neighboring inputs. An element
    fails beyond the budget, and where it is NaN or infinite but should not be, or the reverse.
    """
    dtype = outputs["pytorch"].dtype
    wide = {name: tensor.double() for name, tensor in outputs.items()}
    kinds = {name: kind_of(tensor) for name, tensor in wide.items()}
    size = unit(wide["truth"], wide["nearby"], torch.finfo(dtype), inputs_rms)
    cancelled = cancelled_size(wide["truth"], wide["pytorch"], inputs_rms)
    size = size.clamp_min(torch.finfo(dtype).eps * cancelled)
    agreed = kinds["truth"] == kinds["pytorch"]
    pytorch = in_units(wide["pytorch"], wide["truth"], size, agreed & (kinds["truth"] == FINITE))
    judged = agreed & (pytorch * torch.finfo(dtype).eps <= budget.untrusted)
    # Where the row as a whole is wrong, an element that happens to be near proves nothing either.
    off = own_size(torch.where(agreed, wide["pytorch"] - wide["truth"], 0.0))
    judged &= ~(
        (pytorch > CLEARLY_OFF) & (off > budget.untrusted * own_size(wide["truth"]).clamp_min(cancelled))
    )
    finite = judged & (kinds["truth"] == FINITE) & (kinds["candidate"] == FINITE)
    candidate = in_units(wide["candidate"], wide["truth"], size, finite)
    theirs = usual_or_own(torch.where(judged, pytorch, 0.0))
    if "rounded" in outputs:
        rounded = in_units(wide["rounded"], wide["truth"], size, judged & (kinds["rounded"] == FINITE))
        trusted = rounded * torch.finfo(dtype).eps <= budget.untrusted
        # One element that falls to the other side of a step excuses no row: only what is in all of it does.
        theirs = torch.maximum(theirs, rms_of_row(torch.where(trusted, rounded, 0.0)))
    allowed = budget.factor * theirs + budget.slack
    wrong_kind = judged & (kinds["candidate"] != kinds["truth"])
    failing = wrong_kind | (candidate > allowed)
    unsettled = ~judged & agreed & (kinds["truth"] == FINITE)
    own = torch.maximum(size, torch.finfo(dtype).eps * typical_size(wide["pytorch"]))
    ours = unsettled & (kinds["candidate"] == FINITE)
    as_pytorch = ours & (in_units(wide["candidate"], wide["pytorch"], own, ours) <= budget.slack)
    as_truth = ours & ~as_pytorch & (in_units(wide["candidate"], wide["truth"], size, ours) <= budget.slack)
    strict, loose = (
        not bool(wrong_kind.any()) and within(wide["candidate"], wide["truth"], tolerance, finite)
        for tolerance in (budget.tolerance.strict, budget.tolerance.loose)
    )
    return Errors(
        candidate=candidate,
        pytorch=pytorch,
        judged=judged,
        failing=failing,
        as_pytorch=as_pytorch,
        as_truth=as_truth,
        unconfirmed=unsettled & ~as_pytorch & ~as_truth,
        allowed=allowed,
        meets_strict=strict,
        meets_loose=loose,
        constant=is_one_value(wide["pytorch"]),
    )


def usual_or_own(errors: torch.Tensor) -> torch.Tensor:
    """What each element's row errs at most, or what almost all rows stay below; the largest of few rows.

    Where PyTorch is far off in a row or two, that excuses no other row.
    """
    if errors.numel() == 0:
        return errors
    rows = rows_of(errors).amax(-1, keepdim=True)
    usual = rows.quantile(USUAL) if FEW <= rows.numel() <= QUANTILE_ELEMENTS else rows.max()
    return torch.maximum(rows, usual).expand_as(rows_of(errors)).reshape(errors.shape)


def rms_of_row(errors: torch.Tensor) -> torch.Tensor:
    """For each element the root mean square of its row; of the errors' shape."""
    rows = rows_of(errors)
    return rows.square().mean(-1, keepdim=True).sqrt().expand_as(rows).reshape(errors.shape)


def within(values: torch.Tensor, truth: torch.Tensor, tolerance: float, where: torch.Tensor) -> bool:
    """|value - truth| <= tolerance * (1 + |truth|), everywhere."""
    return bool(((values - truth).abs()[where] <= tolerance * (1 + truth.abs()[where])).all())


def is_one_value(values: torch.Tensor) -> bool:
    """Several elements, all alike."""
    return values.numel() > 1 and bool((values == values.reshape(-1)[0]).all())


def exact_errors(outputs: Mapping[str, torch.Tensor]) -> Errors:
    """Errors of integer and bool outputs: 1 where the candidate has neither PyTorch's value nor the truth.

    Where rounding decides among many values, as it does among the indices of numbers that are almost alike,
    any of them is as right as another.
    """
    judged = outputs["truth"] == outputs["pytorch"]
    failing = (outputs["candidate"] != outputs["pytorch"]) & (outputs["candidate"] != outputs["truth"])
    excused = failing & any_choice(outputs)
    judged, failing = judged & ~excused, failing & ~excused
    none = torch.zeros_like(failing, dtype=torch.float64)
    right = not bool(failing.any())
    return Errors(
        candidate=failing.double(),
        pytorch=none,
        judged=judged,
        failing=failing,
        as_pytorch=~judged & (outputs["candidate"] == outputs["pytorch"]),
        as_truth=~judged & (outputs["candidate"] == outputs["truth"]),
        unconfirmed=torch.zeros_like(failing),
        allowed=none,
        meets_strict=right,
        meets_loose=right,
        constant=is_one_value(outputs["pytorch"]),
    )


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
    seen = torch.stack([side[moved].long() for side in (truth, pytorch, nearby)])
    return moved & (candidate >= seen.min()) & (candidate <= seen.max())


def kind_of(values: torch.Tensor) -> torch.Tensor:
    """FINITE, NAN, POSITIVE_INF or NEGATIVE_INF for each element, int8."""
    kinds = torch.zeros_like(values, dtype=torch.int8)
    kinds[values.isnan()] = NAN
    kinds[values.isposinf()] = POSITIVE_INF
    kinds[values.isneginf()] = NEGATIVE_INF
    return kinds


def unit(truth: torch.Tensor, nearby: torch.Tensor, limits: torch.finfo, inputs_rms: float) -> torch.Tensor:
    size = typical_size(truth)
    if truth.numel() < FEW:
        size = size.clamp_min(inputs_rms)
    # GPUs may flush float32's subnormal numbers to zero.
    spacing = max(limits.eps * limits.tiny, torch.finfo(torch.float32).tiny)
    if limits.bits < 64:
        # The float64 truth rounds too: below this, 0 and the rest of a cancellation look the same.
        # For huge inputs, which may well be normalized, `nearby` shows it.
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


def typical_size(values: torch.Tensor) -> torch.Tensor:
    """The largest of an element's size, its row's root mean square, the median row's; only what is finite."""
    own, rows = sizes(values)
    return torch.maximum(own, rows.median()) if values.numel() else own


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


def rms(tensors: Iterable[torch.Tensor]) -> float:
    """Root mean square over the finite elements of all floating tensors; 0 where there are none."""
    total, count = 0.0, 0
    for piece in (piece for t in tensors if t.is_floating_point() for piece in pieces(t)):
        wide = piece.double()
        finite = wide[wide.isfinite()]
        total, count = total + float(finite.square().sum()), count + finite.numel()
    return math.sqrt(total / max(count, 1))


def in_units(
    values: torch.Tensor, truth: torch.Tensor, size: torch.Tensor, where: torch.Tensor
) -> torch.Tensor:
    return torch.where(where, (values - truth).abs() / size, 0.0)


def largest(values: torch.Tensor) -> float:
    """The maximum, 0 of nothing; finite, as JSON wants it."""
    return min(float(values.max()), sys.float_info.max) if values.numel() else 0.0
