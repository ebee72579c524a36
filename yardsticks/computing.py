"""Does a problem compute something that can be compared? It is a job of the worker, which takes this file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any

import torch


def work(report: Any, path: str) -> dict[str, str]:
    """`why` it is no problem; empty where it is one. What its module raises is raised.

    It takes tensors, runs in training, as it is converted, and in eval() returns the same finite numbers in
    each call, of which some are floating-point.
    """
    return {"why": why_not(path)}


def why_not(path: str) -> str:
    spec = importlib.util.spec_from_file_location("problem", path)
    assert spec is not None
    assert spec.loader is not None
    problem = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problem)
    torch.manual_seed(0)
    model = problem.Model()
    inputs = problem.get_inputs()
    if not inputs or not all(isinstance(value, torch.Tensor) for value in inputs):
        return "it takes something besides tensors"
    with torch.no_grad():
        model(*(value.clone() for value in inputs))
        model.eval()
        once, again = (list(tensors_of(model(*(value.clone() for value in inputs)))) for _ in range(2))
    if not any(tensor.is_floating_point() for tensor in once):
        return "it returns no floating-point tensor"
    if not all(same_and_finite(*both) for both in zip(once, again, strict=True)):
        return "its results are empty, random or not finite"
    return ""


def same_and_finite(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.numel() > 0 and bool(torch.isfinite(one).all()) and torch.equal(one, other)


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a nested result."""
    match value:
        case torch.Tensor():
            yield value
        case Mapping():
            yield from tensors_of(list(value.values()))
        case list() | tuple():
            for item in value:
                yield from tensors_of(item)
