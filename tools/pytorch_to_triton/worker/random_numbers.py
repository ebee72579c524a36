"""Torch's random numbers: the same for a reference and its candidate, call by call."""

import zlib
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


class DrawnInLogicalOrder(DispatchMode):
    """Inside, random operators draw for a tensor's elements in their order, whatever its strides.

    PyTorch draws in the order of memory: for x * y, which is laid out as both are, other numbers than for a
    contiguous product, which a kernel writes.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = args, kwargs or {}
        tensors = [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, torch.Tensor)]
        if not draws(func.name()) or all(tensor.is_contiguous() for tensor in tensors):
            return func(*args, **given[1])
        copies = {id(tensor): tensor.contiguous() for tensor in tensors}
        written = {id(copies[id(tensor)]): tensor for tensor in tensors}

        def laid_out(result: torch.Tensor) -> torch.Tensor:
            if id(result) in written:
                argument = written[id(result)]
                return argument if argument is result else argument.copy_(result)
            if result.shape != tensors[0].shape:
                return result
            return torch.empty_like(tensors[0], dtype=result.dtype).copy_(result)

        copied, named = pytree.tree_map_only(torch.Tensor, lambda tensor: copies[id(tensor)], given)
        return pytree.tree_map_only(torch.Tensor, laid_out, func(*copied, **named))
