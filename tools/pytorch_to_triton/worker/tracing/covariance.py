"""torch.cov and torch.corrcoef without a look at values: PyTorch's own warn of a divisor of 0 or less."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

Tensor = torch.Tensor


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of the rows of `input`, [V, N] or [N]; weights are [N]. Gives [V, V], or a number.

    What weights may not be is not asked.
    """
    rows = input[None] if input.dim() < 2 else input
    given = [w for w in (fweights, aweights) if w is not None]
    if not given:
        centered = rows - rows.mean(1, keepdim=True)
        freedom: Any = torch.sym_max(rows.shape[1] - correction, 0)  # type: ignore[no-untyped-call]
        found: Tensor = centered @ centered.T / freedom
        return found.squeeze()
    weights = given[0] * given[1] if len(given) == 2 else given[0]
    total = weights.sum()
    centered = rows - (rows * weights).sum(1, keepdim=True) / total
    each = 1.0 if aweights is None else (weights * aweights).sum() / total
    divisor = (total - correction * each).clamp(min=0)
    weighted: Tensor = centered @ (centered * weights).T / divisor
    return weighted.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows of `input`, [V, N] or [N]: [V, V], or a number."""
    found = cov(input)
    if not found.dim():
        return found / found
    deviations = found.diagonal().sqrt()
    return (found / deviations[:, None] / deviations).clamp(-1, 1)


WITHOUT_VALUES: Mapping[Any, Callable[..., Tensor]] = MappingProxyType(
    {torch.cov: cov, Tensor.cov: cov, torch.corrcoef: corrcoef, Tensor.corrcoef: corrcoef}
)
"""What stands in for a function that looks at values, by the function."""
