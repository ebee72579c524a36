"""Diagnostics of a wrong output, as plain JSON: where its failing elements lie, and what they look like."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from .error import rms

FEW_ROUNDED = 4
"""Fewer values than this may be round by chance."""
FEW_ON_A_DIAGONAL = 3
"""Fewer failing elements than this lie on some diagonal by chance."""
SHORT = (torch.float8_e4m3fn, torch.bfloat16, torch.float16)
ALIKE = 1e-3
"""Largest relative deviation at which two tensors count as the same values."""


def where_it_fails(failing: torch.Tensor) -> dict[str, Any]:
    """The first failing index, and the failing indices along each dimension and in flattened order."""
    flat = failing.reshape(-1)
    along = [
        spread(failing.any(dim=[d for d in range(failing.ndim) if d != dim]) if failing.ndim > 1 else failing)
        for dim in range(failing.ndim)
    ]
    first = int(flat.nonzero()[0])
    return {
        "first": [int(i) for i in torch.unravel_index(torch.tensor(first), failing.shape)],
        "along": along,
        "flat": spread(flat),
        "diagonal": diagonal_of(failing),
        "share_of_box": int(flat.sum()) / max(math.prod(axis["count"] for axis in along), 1),
    }


def diagonal_of(failing: torch.Tensor) -> int | None:
    """Column minus row of the failing elements, where it is the same for all, and there are three or more."""
    if failing.ndim < 2 or int(failing.sum()) < FEW_ON_A_DIAGONAL:
        return None
    *_, rows, columns = failing.nonzero(as_tuple=True)
    offset = int(columns[0] - rows[0])
    several = int(rows.max() - rows.min()) >= FEW_ON_A_DIAGONAL - 1
    return offset if several and bool((columns - rows == offset).all()) else None


def spread(failing: torch.Tensor) -> dict[str, int]:
    """Of a 1-D mask: its size, how many are set, the first and last of them, and the greatest common step."""
    places = failing.nonzero().reshape(-1)
    steps = set(places.diff().tolist())
    return {
        "size": failing.numel(),
        "count": places.numel(),
        "first": int(places[0]),
        "last": int(places[-1]),
        "step": math.gcd(*steps) if steps else 1,
    }


def what_it_looks_like(
    outputs: Mapping[str, torch.Tensor], failing: torch.Tensor, inputs: Mapping[str, torch.Tensor]
) -> dict[str, Any]:
    """What the candidate's failing elements, and the candidate as a whole, have in common."""
    candidate, truth = outputs["candidate"].double(), outputs["truth"].double()
    wrong, right = candidate[failing], truth[failing]
    finite = wrong.isfinite() & right.isfinite()
    return {
        "failing_nan": int(wrong.isnan().sum()),
        "failing_inf": int(wrong.isinf().sum()),
        "failing_zero": int((wrong == 0).sum()),
        "truth_not_finite": int((~right.isfinite()).sum()),
        "constant": is_constant(candidate) and not is_constant(truth),
        "transposed": is_transposed(candidate, truth),
        "equals_input": next((n for n, t in inputs.items() if alike(candidate, t)), None),
        "relative_error": relative_error(wrong[finite], right[finite]),
        "rounded_to": rounded_to(outputs["candidate"], outputs["truth"]),
        **fits(wrong[finite], right[finite]),
    }


def fits(wrong: torch.Tensor, right: torch.Tensor) -> dict[str, float | None]:
    """The best constant factor and offset from truth to candidate, each with the share of error it leaves.

    None where fewer than three elements determine them.
    """
    fit: dict[str, float | None] = dict.fromkeys(("factor", "factor_leaves", "offset", "offset_leaves"))
    error, size = rms([wrong - right]), float(right.square().sum())
    if wrong.numel() < 3 or not error:
        return fit
    offset = float((wrong - right).mean())
    fit |= {"offset": offset, "offset_leaves": rms([wrong - right - offset]) / error}
    if size:
        factor = float((wrong * right).sum()) / size
        fit |= {"factor": factor, "factor_leaves": rms([wrong - factor * right]) / error}
    return {name: None if value is None else finite_or_none(value) for name, value in fit.items()}


def finite_or_none(value: float) -> float | None:
    """The value, None where it overflowed or is undefined."""
    return value if math.isfinite(value) else None


def is_constant(values: torch.Tensor) -> bool:
    return bool((values == values.reshape(-1)[0]).all())


def is_transposed(candidate: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether the candidate holds the truth with its last two dimensions swapped in memory."""
    if truth.ndim < 2 or 1 in truth.shape[-2:] or truth.numel() != candidate.numel():
        return False
    swapped = truth.mT.contiguous()
    return alike(candidate.reshape(swapped.shape), swapped) and not alike(
        candidate.reshape(truth.shape), truth
    )


def alike(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal in shape and, but for rounding, in values; empty tensors are like nothing."""
    if left.shape != right.shape or left.numel() == 0 or not right.any():
        return False
    return torch.allclose(
        left.double(), right.double(), rtol=ALIKE, atol=ALIKE * rms([right]), equal_nan=True
    )


def relative_error(wrong: torch.Tensor, right: torch.Tensor) -> float | None:
    """Root mean square of the error over that of the truth."""
    scale = rms([right])
    return finite_or_none(rms([wrong - right]) / scale) if scale else None


def rounded_to(candidate: torch.Tensor, truth: torch.Tensor) -> str | None:
    """The shorter dtype that holds every candidate value but not every true one, if there is one."""
    if candidate.numel() < FEW_ROUNDED:
        return None
    shorter = (dtype for dtype in SHORT if dtype.itemsize < candidate.dtype.itemsize)
    holding = (d for d in shorter if same_when(candidate, d) and not same_when(truth, d))
    return next((str(dtype).removeprefix("torch.") for dtype in holding), None)


def same_when(values: torch.Tensor, dtype: torch.dtype) -> bool:
    wide = values.double()
    return bool(((wide.to(dtype).double() == wide) | wide.isnan()).all())
