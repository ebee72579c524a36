"""Does a problem compute something that can be compared? It is a job of the worker, which takes this file."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

check: Any = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "kernelbench" / "check.py")))
"""A job is no member of a package."""


def work(report: Any, path: str) -> dict[str, str]:
    """`why` it is no problem; empty where it is one. What its module raises is raised.

    It takes tensors, runs in training, as it is converted, and in eval() returns the same finite numbers in
    each call, of which some are floating-point.
    """
    return {"why": why_not(path)}


def why_not(path: str) -> str:
    problem = check.loaded(path)
    torch.manual_seed(0)
    model = problem.Model()
    inputs = problem.get_inputs()
    if not inputs or not all(isinstance(value, torch.Tensor) for value in inputs):
        return "it takes something besides tensors"
    with torch.no_grad():
        model(*(value.clone() for value in inputs))
        model.eval()
        once, again = (list(check.leaves(model(*(value.clone() for value in inputs)))) for _ in range(2))
    if not any(tensor.is_floating_point() for tensor in once):
        return "it returns no floating-point tensor"
    if not all(same_and_finite(*both) for both in zip(once, again, strict=True)):
        return "its results are empty, random or not finite"
    return ""


def same_and_finite(once: torch.Tensor, again: torch.Tensor) -> bool:
    return once.numel() > 0 and bool(torch.isfinite(once).all()) and torch.equal(once, again)
