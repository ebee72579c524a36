"""Torch's random numbers: the same for a reference and its candidate, call by call."""

import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .dispatch import DispatchMode
from .runtime import interpreting
from .wire.random_operators import draws


def seed_random_numbers(seed: int) -> None:
    """As `torch.manual_seed`; under the interpreter, where every tensor lies on the CPU, only there.

    For each kind of device that does not run yet, torch keeps the seed together with a stack trace, which
    takes longer than most calls.
    """
    if interpreting():
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def seed_call(call_id: str) -> None:
    """Seed torch's generators for a call: whoever makes it draws the same numbers, and others in the next."""
    seed_random_numbers(zlib.crc32(call_id.encode()))


def has_drawn(call_id: str) -> bool:
    """Whether random numbers were drawn since `seed_call(call_id)`; seeds for that call again."""
    after = generator_states()
    seed_call(call_id)
    return after != generator_states()


def generator_states() -> list[bytes]:
    """Those of the CPU's generator and the current GPU's."""
    states = [torch.get_rng_state()]
    if not interpreting() and torch.cuda.is_available():
        states.append(torch.cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]


MASK = 0xFFFFFFFF


def uniform(x: torch.Tensor) -> torch.Tensor:
    """float32 numbers in [0, 1) of x's shape, contiguous: element i is tl.rand(seed, i) for a seed by torch.

    Philox 4x32-10: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC11).
    """
    seed = torch.randint(2**62, (), device=x.device)
    place = torch.arange(x.numel(), device=x.device)
    zero = torch.zeros_like(place)
    c0, c1, c2, c3 = place & MASK, place >> 32, zero, zero
    k0, k1 = seed & MASK, seed >> 32
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32 & MASK) ^ c1 ^ k0, b & MASK, (a >> 32 & MASK) ^ c3 ^ k1, a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    size = torch.where(c0 > MASK >> 1, MASK - c0, c0)
    return (size.float() * 4.6566127342e-10).view(x.shape)


class DrawnByElement(DispatchMode):
    """Inside, a random operator draws for each element by its place in row-major order.

    Dropout and what is uniform draw as `uniform` does, so that a kernel can draw the same numbers: PyTorch's
    own depend on dtypes and launches. Others draw as for contiguous tensors: PyTorch draws in the order of
    memory, for x * y others than for the contiguous product that a kernel writes.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not draws(func.name()):
            return func(*args, **kwargs)
        if drawn := DRAWN.get(str(func)):
            return drawn(func, args, kwargs)
        return drawn_in_order(func, args, kwargs)


def drawn_in_order(func: Any, args: Any, kwargs: Any) -> Any:
    """Any random operator, as for contiguous tensors; what it returns is laid out as ever."""
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if all(tensor.is_contiguous() for tensor in tensors):
        return func(*args, **kwargs)
    copies = {id(tensor): tensor.contiguous() for tensor in tensors}
    written = {id(copies[id(tensor)]): tensor for tensor in tensors}

    def laid_out(result: torch.Tensor) -> torch.Tensor:
        if id(result) in written:
            argument = written[id(result)]
            return argument if argument is result else argument.copy_(result)
        if result.shape != tensors[0].shape:
            return result
        return torch.empty_like(tensors[0], dtype=result.dtype).copy_(result)

    copied, named = pytree.tree_map_only(torch.Tensor, lambda tensor: copies[id(tensor)], (args, kwargs))
    return pytree.tree_map_only(torch.Tensor, laid_out, func(*copied, **named))


def drop_out(func: Any, args: Any, kwargs: Any) -> Any:
    """`native_dropout(x, p, train)`"""
    x, p, train = args
    if not train or not 0 < p < 1:
        return drawn_in_order(func, args, kwargs)
    keep = uniform(x) > p
    return x * keep * (1 / (1 - p)), keep


def bernoulli(func: Any, args: Any, kwargs: Any) -> Any:
    """`bernoulli(x, p)` and `bernoulli_(x, p)`, p a number."""
    x, p = args if len(args) > 1 else (*args, kwargs.get("p", 0.5))
    if not 0 <= p <= 1 or kwargs.get("generator") is not None:
        return drawn_in_order(func, args, kwargs)
    written = x if func._schema.is_mutable else torch.empty_like(x)
    return written.fill_(p) if p in (0, 1) else written.copy_(uniform(x) > 1 - p)


def rand(func: Any, args: Any, kwargs: Any) -> Any:
    """`rand(size)` and `rand_like(x)`"""
    make = torch.empty if func is torch.ops.aten.rand.default else torch.empty_like
    result = make(*args, **kwargs)
    return result.copy_(uniform(result)) if result.dtype == torch.float32 else func(*args, **kwargs)


DRAWN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "aten.native_dropout.default": drop_out,
    "aten.bernoulli.p": bernoulli,
    "aten.bernoulli_.float": bernoulli,
    "aten.rand.default": rand,
    "aten.rand_like.default": rand,
}
"""Random operators of which a kernel can draw the numbers."""
