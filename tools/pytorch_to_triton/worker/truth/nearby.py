"""Samples near a case, its inputs and arithmetic moved by one rounding error, and the farthest of them."""

import contextlib
import dataclasses
import random
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..calls.exchange import CallInputs, map_tensors
from ..calls.tensors import OutputLeaf, Outputs
from ..device import seed_random_numbers
from .blocks import pieces
from .declared_tensor import is_floating
from .rounding import Rounding


def move_by_eps(call: CallInputs, eps: Mapping[str, float], seed: int, sample: int) -> CallInputs:
    """The call with every element of the tensors in `eps` moved by up to so much of itself.

    Sample 0 is the call as it is.
    """
    if not sample:
        return call
    seed_random_numbers(seed_of(seed, sample))

    def move(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name not in eps:
            return tensor
        parts = [step(piece, eps[name]) for piece in pieces(tensor)]
        return parts[0] if len(parts) == 1 else torch.cat(parts).view(tensor.shape)

    def step(tensor: torch.Tensor, eps: float) -> torch.Tensor:
        steps = 2 * torch.rand(tensor.shape, device=tensor.device) - 1
        return (tensor.double() * (1 + eps * steps.double())).to(tensor.dtype)

    return map_tensors(call, move)


def own_eps(call: CallInputs) -> dict[str, float]:
    """One rounding error of each floating tensor's own dtype, by name."""
    return {n: torch.finfo(t.dtype).eps for n, t in call.tensors().items() if t.is_floating_point()}


def good_eps(call: CallInputs) -> dict[str, float]:
    """One rounding error of what good kernels compute in: float32 where a tensor is of it or shorter."""
    float32 = torch.finfo(torch.float32).eps
    return {name: min(eps, float32) for name, eps in own_eps(call).items()}


def rounding(call: CallInputs, seed: int, sample: int) -> contextlib.AbstractContextManager[Any]:
    """Inside, arithmetic is moved by one rounding error; not for sample 0."""
    if not sample:
        return contextlib.nullcontext()
    coarsest = max(good_eps(call).values(), default=torch.finfo(torch.float32).eps)
    return Rounding(coarsest, seed_of(seed, sample), operand_dtype(call))


def operand_dtype(call: CallInputs) -> torch.dtype | None:
    """The dtype of all floating inputs, where it is shorter than float32: what products' operands have."""
    dtypes = {t.dtype for t in call.tensors().values() if t.is_floating_point()}
    return next(iter(dtypes)) if len(dtypes) == 1 and max(d.itemsize for d in dtypes) < 4 else None


def seed_of(seed: int, sample: int) -> int:
    """Samples of one case take other random numbers, each time the same ones."""
    return random.Random(f"{seed} {sample}").getrandbits(62)


def farthest(precise: Outputs, first: Outputs, others: Iterable[Outputs]) -> Outputs:
    """Of several samples, the first among them, what lies farthest from the precise outputs."""
    for sample in others:
        first = {path: farther(exact, first[path], sample[path]) for path, exact in precise.items()}
    return first


def farther(exact: OutputLeaf, first: OutputLeaf, other: OutputLeaf) -> OutputLeaf:
    """Element by element, the sample farther from the exact value; the first one where it has no values."""
    if exact.tensor is None or first.tensor is None or other.tensor is None:
        return first
    if is_floating(exact.tensor):
        moved_more = (other.tensor - exact.tensor).abs() > (first.tensor - exact.tensor).abs()
    else:
        moved_more = first.tensor == exact.tensor
    return dataclasses.replace(first, tensor=torch.where(moved_more, other.tensor, first.tensor))


def comparable(nearby: Outputs, precise: Outputs) -> Outputs:
    """`nearby`, but the precise output where its traits differ: a shape may depend on values."""
    return {
        path: nearby[path] if path in nearby and traits_of(nearby[path]) == traits_of(output) else output
        for path, output in precise.items()
    }


def traits_of(output: OutputLeaf) -> tuple[Any, ...]:
    """Type, dtype and shape; None for those that it lacks."""
    return tuple(output.traits.get(trait) for trait in ("type", "dtype", "shape"))
