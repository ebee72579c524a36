"""The inputs of timed calls: each call finds other values, at addresses that are not the last call's."""

import dataclasses
from collections.abc import Sequence

import torch

from ..allocation import INTEGERS
from ..calls.exchange import CallInputs, map_tensors


class Pool:
    """Several sets of inputs in device memory, each refilled before it is used.

    There are as many as were needed at once so far, and they stay where they are: code that goes by
    addresses finds known ones with other values.
    """

    def __init__(self, bases: Sequence[CallInputs]) -> None:
        self.bases = bases
        self._slots: list[CallInputs] = []

    def filled(self, slot: int, offset: int) -> CallInputs:
        """The slot with the values of `variant(bases, offset)`; neither addresses nor versions change."""
        while slot >= len(self._slots):
            self._slots.append(fresh(self.bases[0]))
        call = self._slots[slot]
        values = variant(self.bases, offset).tensors()
        for name, tensor in call.tensors().items():
            tensor.data.copy_(values[name])
        return call


def fresh(call: CallInputs) -> CallInputs:
    """The call with its tensors in memory of their own."""
    copied = map_tensors(
        call, lambda name, tensor: tensor.detach().clone(memory_format=torch.preserve_format)
    )
    return dataclasses.replace(
        copied, cotangents={path: tensor.clone() for path, tensor in call.cotangents.items()}
    )


def variant(bases: Sequence[CallInputs], offset: int) -> CallInputs:
    """Other inputs of the same kind: one of several sets, or the only set with its floating values moved on.

    A tensor that was generated element by element stays as likely when its elements rotate by `offset`.
    Integers stay where they are: they may be offsets, which must rise. Inputs that a target's own file
    makes may mean more than their elements, so there are several sets of them and none is changed.
    """
    if len(bases) > 1:
        return bases[offset % len(bases)]
    return map_tensors(bases[0], lambda name, tensor: roll(tensor, offset))


def roll(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """The tensor with its elements, in flattened order, rotated by `offset`."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return tensor
    # As integers, since torch cannot roll float8.
    bits = tensor.detach().contiguous().view(-1).view(INTEGERS[tensor.dtype.itemsize])
    return bits.roll(offset % tensor.numel()).view(tensor.dtype).view(tensor.shape)
