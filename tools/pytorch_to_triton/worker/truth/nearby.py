"""Samples near a case, its inputs and arithmetic moved by one rounding error, and the farthest of them.

The arithmetic is moved operator by operator: Monte Carlo arithmetic (Parker, UCLA CSD-970002, 1997) with one
sample. Moving the inputs alone shows nothing of a value that is clamped and then meets its own mean, where
every kernel still rounds the mean.
"""

import contextlib
import dataclasses
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..calls.exchange import CallInputs, map_tensors
from ..calls.tensors import OutputLeaf, Outputs
from ..dispatch import DispatchMode
from ..random_numbers import seed_random_numbers
from .blocks import pieces
from .budget import CHAIN, REPRESENTABLE, TERMS
from .declared_tensor import is_floating
from .error import own_size

EXACT = frozenset(
    {
        "abs", "alias", "amax", "amin", "any", "arange", "argmax", "argmin", "as_strided",
        "bitwise_and", "bitwise_not", "bitwise_or", "cat", "ceil", "clamp", "clamp_max", "clamp_min",
        "clone", "copy_", "detach", "empty", "empty_like", "eq", "expand", "fill_", "flip", "floor",
        "full", "full_like", "gather", "ge", "gt", "hardtanh", "index", "index_select", "le",
        "lift_fresh", "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "max", "maximum",
        "min", "minimum", "ne", "neg", "new_empty", "new_full", "new_ones", "new_zeros", "ones",
        "ones_like", "permute", "relu", "repeat", "round", "select", "sign", "slice", "sort", "split",
        "split_with_sizes", "squeeze", "stack", "t", "threshold", "topk", "transpose", "tril", "triu",
        "trunc", "unbind", "unfold", "unsqueeze", "view", "where", "zeros", "zeros_like",
        "_local_scalar_dense", "_reshape_alias", "_to_copy", "_unsafe_view",
    }
)  # fmt: skip
"""Operators that pick, move or compare values and so round nothing."""
SUMS = frozenset({"sum", "mean"})
NORMALIZATIONS = {
    "native_layer_norm": 2, "native_group_norm": 1, "native_batch_norm": 1, "_native_batch_norm_legit": 1,
    "_batch_norm_with_update": 1, "cudnn_batch_norm": 1,
}  # fmt: skip
"""Operators that return (result, mean, reciprocal of the deviation), and the position of their weight."""
FIRST_FACTOR = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "linear": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}
"""Products of matrices and vectors, and the position of the factor whose last dimension is summed over."""


class Rounding(DispatchMode):
    """Inside, floating results of all other operators are moved by up to `eps` of themselves.

    What a product is given is moved as far as rounding to `operand` moves it, where that is a dtype: tensor
    cores take such operands, and an attention kernel multiplies probabilities that are rounded to it.
    """

    def __init__(self, eps: float, seed: int, operand: torch.dtype | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.eps = eps
        self.random = random.Random(seed)
        self.operand = operand

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in FIRST_FACTOR and self.operand:
            first = FIRST_FACTOR[name]
            args = (*args[:first], *map(self.as_operand, args[first : first + 2]), *args[first + 2 :])
        result = func(*args, **(kwargs or {}))
        returns_arguments = any(each.alias_info is not None for each in func._schema.returns)
        if name in EXACT or returns_arguments:  # or views of them
            return result
        if name in SUMS and args[0].is_floating_point():
            # A sum errs with its terms, which may be far larger than what is left of them.
            terms = func(args[0].abs(), *args[1:], **(kwargs or {}))
            return self.moved(result) + self.moved(terms / TERMS) - terms / TERMS
        if name in NORMALIZATIONS and result[1].numel():
            off = off_with_mean(name, args, self.error_of_mean(*result[1:3]))
            return (self.moved(result[0] + off.to(result[0].dtype)), *map(self.moved, result[1:]))
        results = result if isinstance(result, tuple) else (result,)
        terms = terms_of(name, args, results)
        changed = tuple(map(self.chained, results, terms)) + results[len(terms) :]
        return changed if isinstance(result, tuple) else changed[0]

    def chained(self, value: Any, terms: int) -> Any:
        """A result moved as far as sums of so many terms err one after the other."""
        if terms == 1 or not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return self.moved(value)
        errors = own_size(value) * (math.sqrt(terms) / CHAIN)
        return self.moved(value) + self.moved(errors) - errors

    def error_of_mean(self, mean: torch.Tensor, rstd: torch.Tensor) -> torch.Tensor:
        """How far a mean of terms of both signs errs, in deviations; 0 where that is no number."""
        size = (mean.square() + rstd.square().reciprocal()).sqrt()
        error: torch.Tensor = (self.moved(size) - size) * rstd
        return error.nan_to_num(0.0, 0.0, 0.0)

    def as_operand(self, value: torch.Tensor) -> torch.Tensor:
        """The value moved by up to the operand dtype's eps; as it is where rounding to it changes little."""
        assert self.operand
        off = (value.to(self.operand).to(value.dtype) - value).abs()
        moved = self.moved(value, torch.finfo(self.operand).eps)
        return torch.where(off > REPRESENTABLE * self.eps * value.abs(), moved, value)

    def moved(self, value: Any, eps: float | None = None) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        # Half of the error is the same for the whole tensor: an approximate division errs one way.
        lean = self.random.choice((-0.5, 0.5))
        generator = torch.Generator(device=value.device).manual_seed(self.random.getrandbits(62))
        steps = torch.rand(value.shape, generator=generator, device=value.device, dtype=torch.float64)
        return value * (1 + (eps or self.eps) * (lean + steps - 0.5)).to(value.dtype)


def off_with_mean(name: str, args: Sequence[Any], error: torch.Tensor) -> torch.Tensor:
    """How far a normalization's result is off where its mean is: in a row's sum, that does not cancel."""
    values, weight = args[0], args[NORMALIZATIONS[name]]
    if name == "native_layer_norm":
        return error if weight is None else error * weight
    channels = (-1, values.shape[1], *[1] * (values.ndim - 2))
    if name == "native_group_norm":
        error = error.repeat_interleave(values.shape[1] // error.shape[1], dim=1)
    return error.view(channels) if weight is None else error.view(channels) * weight.view(channels)


def terms_of(name: str, args: Sequence[Any], results: Sequence[Any]) -> list[int]:
    """How many terms an operator's results add up, the first results' alone where the others round nothing.

    A convolution's are those of its weight, or all positions of its input [N, C, *sizes] for the gradients of
    weight and bias; other backward operators add up whatever is missing in the shape of a gradient.
    """
    if name in FIRST_FACTOR:
        return [args[FIRST_FACTOR[name]].shape[-1]]
    if name == "convolution":
        return [window_of(args[1], args[8], transposed=args[6])]
    if name == "convolution_backward":
        positions = args[0].numel() // max(args[0].shape[1], 1)
        return [window_of(args[2], args[9], transposed=not args[7]), positions, positions]
    if name.endswith("_backward"):
        elements = args[0].numel()
        others = [elements // max(r.numel(), 1) if isinstance(r, torch.Tensor) else 1 for r in results[1:]]
        return [1, *others]
    return [1]


def window_of(weight: torch.Tensor, groups: int, *, transposed: bool) -> int:
    """The weights that meet in one element of a convolution's result."""
    window = weight.numel() // max(weight.shape[0], 1)
    return window * weight.shape[0] // (weight.shape[1] * groups) if transposed else window


def move_by_eps(
    call: CallInputs, eps: Mapping[str, float], seed: int, sample: int, exact: Sequence[float] = ()
) -> CallInputs:
    """The call with every element of the tensors in `eps` moved by up to so much of itself, but for those
    that are `exact`: where a function compares its input with such a number, no rounding excuses a kernel.

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
        wide = tensor.double()
        fixed = torch.isin(wide, wide.new_tensor(exact))
        return torch.where(fixed, wide, wide * (1 + eps * steps.double())).to(tensor.dtype)

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
