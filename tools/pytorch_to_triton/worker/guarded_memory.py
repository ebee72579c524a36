"""Guarded memory: each tensor that a candidate gets or makes lies between red zones of its own.

What it allocates without initialising is poisoned, so that memory read before it is written shows.
"""

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .allocation import (
    RED_ZONE_BYTES,
    Block,
    Poison,
    Range,
    copy_storage,
    is_alive,
    poison_over,
    range_of,
    red_zone,
    reference_to,
    storage_behind,
    surround,
)
from .dispatch import AroundOperators
from .wire.observation import Overrun

DEAD_BYTES = 2**30
"""How much memory that no tensor uses any more is kept until its red zones are checked once more."""

UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)
INITIALISED = frozenset(
    {"zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
)


class GuardedMemory:
    """The memory of one run of a candidate on one device.

    A placed or allocated tensor differs from torch's own in one way: its storage cannot be made larger.
    Blocks stay until `close`, so that a temporary that was freed early is checked too; of those that no
    tensor uses any more, the oldest are checked and freed once they hold more than DEAD_BYTES. Red zones of
    0 bytes leave that to a tool that knows where each allocation ends; None stands for what suits the device.
    """

    def __init__(
        self, device: str, poison: Poison, red_zone_bytes: int | None = None, dead_bytes: int = DEAD_BYTES
    ) -> None:
        self._device = torch.empty(0, device=device).device  # "cuda" becomes "cuda:0"
        self._poison = poison
        self._dead_bytes = dead_bytes
        self._red_zone_bytes = RED_ZONE_BYTES[self._device.type] if red_zone_bytes is None else red_zone_bytes
        self._unswept = 0
        self._blocks: dict[int, Block] = {}  # by address
        self._noted: dict[int, tuple[StorageWeakRef, Range]] = {}
        """Storages of torch's own, without red zones, by their identity; their memory is not kept."""
        self._noted_limit = 1024
        self._zones: dict[torch.dtype, torch.Tensor] = {}
        self._past: list[Overrun] = []

    def placed(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """A copy of the tensor in a guarded storage of the same size and bytes, strides and offset kept.

        With large strides (see `has_large_strides`), only the elements are copied. The copy requires no
        gradient.
        """
        source = tensor.detach()
        target = self._like(source, name)
        copy_storage(source, target)
        self._synchronize()
        return target

    def spread(self, values: torch.Tensor, strides: Sequence[int], name: str) -> torch.Tensor:
        """The values in guarded memory at the given strides, in elements; no two may share a place.

        What lies between them is poison, or untouched with large strides (see `has_large_strides`).
        """
        meta = torch.empty_strided(values.shape, tuple(strides), dtype=values.dtype, device="meta")
        target = self._like(meta, name)
        poison_over(target, self._poison)
        target.copy_(values.detach())
        self._synchronize()
        return target

    def intercepting(self) -> AbstractContextManager[Any]:
        """Within it, what torch allocates on this device is guarded, or at least noted.

        Guarded: the results of `empty`, `zeros`, `ones`, `full` and their `_like`, `new_` and strided forms.
        Noted: those of every other operator, and pinned memory. Tensor subclasses are left alone.
        """
        return AroundOperators(self._call, higher_order=True)

    def ranges(self) -> list[Range]:
        """Each storage that a tensor lies in, guarded ones first."""
        guarded = ((block.storage, block.range) for block in self._blocks.values())
        return [place for storage, place in (*guarded, *self._noted.values()) if is_alive(storage)]

    def storages(self) -> list[torch.UntypedStorage]:
        """The same as storages, which these references keep."""
        noted = (storage for storage, _ in self._noted.values())
        known = (*(block.storage for block in self._blocks.values()), *noted)
        return [storage_behind(reference) for reference in known if is_alive(reference)]

    def named(self, tensor: torch.Tensor, name: str) -> None:
        """Give the tensor's storage a better name; one that was not known yet is noted under it."""
        if not self._is_ours(tensor):
            return
        block = self._block_of(tensor)
        if block is not None:
            named = dataclasses.replace(block.range, name=name)
            self._blocks[named.start] = dataclasses.replace(block, range=named)
        else:
            self._note(tensor, name)

    def overruns(self) -> list[Overrun]:
        """Each red zone that is no longer whole.

        Raises RuntimeError where the device has become unusable.
        """
        self._synchronize()
        blocks = list(self._blocks.values())
        damaged = torch.stack([block.damaged() for block in blocks]).tolist() if blocks else []
        hit = (block for block, is_hit in zip(blocks, damaged, strict=True) if is_hit)
        return [*self._past, *(overrun for block in hit for overrun in block.overruns())]

    def close(self) -> None:
        """Free every block; tensors that still lie in one keep it."""
        self._blocks.clear()
        self._noted.clear()
        self._past.clear()

    def _like(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """A guarded tensor with the dtype, shape, strides, offset and storage size of this one, untouched."""
        nbytes = tensor.untyped_storage().nbytes()
        like = torch.empty(0, dtype=tensor.dtype, device=self._device)
        storage = self._guarded(nbytes, tensor.dtype, name) if nbytes else like
        return like.set_(storage.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())

    def _guarded(self, nbytes: int, dtype: torch.dtype, name: str) -> torch.Tensor:
        if dtype not in self._zones:
            self._zones[dtype] = red_zone(dtype, self._poison, self._device, self._red_zone_bytes)
        block, data = surround(nbytes, dtype.itemsize, self._zones[dtype], name)
        self._blocks[block.range.start] = block
        self._unswept += block.held_bytes
        if self._unswept > self._dead_bytes // 4:
            self._sweep()
        return data

    def _sweep(self) -> None:
        """Check and free the oldest dead blocks, until the dead ones hold no more than they may."""
        self._unswept = 0
        dead = [block for block in self._blocks.values() if not is_alive(block.storage)]
        surplus = sum(block.held_bytes for block in dead) - self._dead_bytes
        if surplus > 0:
            self._synchronize()
        for block in dead:
            if surplus <= 0:
                break
            self._past += block.overruns()
            del self._blocks[block.range.start]
            surplus -= block.held_bytes

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operator = func.name().removeprefix("aten::").split(".")[0]
        if "out" in kwargs or kwargs.get("pin_memory"):
            operator += ".out"
        return self._each(operator, func(*args, **kwargs))

    def _each(self, operator: str, result: Any) -> Any:
        if isinstance(result, torch.Tensor):
            return self._made(operator, result)
        if type(result) in (list, tuple):
            return type(result)(self._each(operator, item) for item in result)
        return result

    def _made(self, operator: str, result: torch.Tensor) -> torch.Tensor:
        """What the candidate gets in place of an operator's result."""
        if not self._is_ours(result):
            return result
        name = f"{operator} {tuple(result.shape)}"
        if operator in INITIALISED:
            return self.placed(result, name)
        if operator not in UNINITIALISED:
            if not self._is_known(result):
                self._note(result, name)
            return result
        guarded = self._like(result, name)
        poison_over(guarded, self._poison)
        # The candidate may write to it from another stream, which does not wait for the poison.
        self._synchronize()
        return guarded

    def _note(self, tensor: torch.Tensor, name: str) -> None:
        storage = reference_to(tensor)
        self._noted[storage.cdata] = storage, range_of(tensor, name, tensor.dtype.itemsize)
        if len(self._noted) > self._noted_limit:
            self._noted = {key: noted for key, noted in self._noted.items() if is_alive(noted[0])}
            self._noted_limit = 2 * len(self._noted) + 1024

    def _block_of(self, tensor: torch.Tensor) -> Block | None:
        return self._blocks.get(tensor.untyped_storage().data_ptr())

    def _is_known(self, tensor: torch.Tensor) -> bool:
        storage = tensor.untyped_storage()
        if noted := self._noted.get(storage._cdata):
            _, place = noted
            if place.end - place.start == storage.nbytes():
                return True
        return self._block_of(tensor) is not None

    def _is_ours(self, tensor: torch.Tensor) -> bool:
        """Whether it is a plain tensor with memory on this device."""
        return (
            tensor.device == self._device
            and type(tensor) in (torch.Tensor, torch.nn.Parameter)
            and tensor.layout == torch.strided
            and not tensor.is_quantized
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            and tensor.untyped_storage().nbytes() > 0
        )

    def _synchronize(self) -> None:
        """Wait until the device has done all that it was asked to."""
        if self._device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize(self._device)
