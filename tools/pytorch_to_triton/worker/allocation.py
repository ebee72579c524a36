"""One storage between two red zones, and the bytes that mark memory as not written."""

import mmap
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.dlpack import from_dlpack, to_dlpack  # type: ignore[attr-defined]

from .wire.observation import Overrun

RED_ZONE_BYTES = {"cpu": 4096, "cuda": 64 * 1024}
"""Bytes on either side of a storage, by device type; multiples of what the device's allocator aligns to."""

SCATTERED_BYTES = 64 * 2**20
SCATTERED_RATIO = 8
"""A storage above SCATTERED_BYTES, and above SCATTERED_RATIO times what its tensor's elements take, is too
large to be touched as a whole."""

MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Linux: the kernel reserves no memory for the mapping. Python has the name from 3.13 on."""

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's whole storage as a flat uint8 tensor that shares it."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


class Poison(StrEnum):
    """The pattern that uninitialised memory holds; a result that differs between the two has read it."""

    FIRST = "first"
    """Floating dtypes: a NaN with a sign or payload that no arithmetic produces. Others: 0x5A repeated."""
    SECOND = "second"
    """Floating dtypes: a finite number around -1000 (float8: -208, -1792 or 2048). bool: False. Integers:
    0xA5 repeated."""


FLOATS = {
    torch.float64: (0x7FF8_DEAD_5A5A_BEEF, 0xC08E_A3A7_5B1D_3E5F),
    torch.float32: (0x7FC0_DEAD, 0xC475_1D3B),
    torch.float16: (0x7EAD, 0xE3A7),
    torch.bfloat16: (0x7FDE, 0xC475),
    torch.float8_e4m3fn: (0xFF, 0xF5),
    torch.float8_e5m2: (0xFE, 0xE7),
    torch.float8_e4m3fnuz: (0x80, 0xF5),
    torch.float8_e5m2fnuz: (0x80, 0xE7),
    torch.float8_e8m0fnu: (0xFF, 0x8A),
}
"""The two patterns' bits by floating dtype."""


def poison_bytes(dtype: torch.dtype, which: Poison) -> bytes:
    """One poisoned element as it lies in memory; of a complex dtype, both parts are poisoned."""
    if dtype.is_complex:
        return poison_bytes(dtype.to_real(), which) * 2
    second = which is Poison.SECOND
    if dtype in FLOATS:
        return FLOATS[dtype][second].to_bytes(dtype.itemsize, sys.byteorder)
    if dtype == torch.bool:
        # Two true values would be the same poison.
        return b"\x00" if second else b"\x5a"
    return (b"\xa5" if second else b"\x5a") * dtype.itemsize


def poison_over(tensor: torch.Tensor, which: Poison) -> None:
    """Poison the whole storage, a multiple of the item size; with large strides, only the elements."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if not has_large_strides(real):
        real = real.as_strided((real.untyped_storage().nbytes() // real.dtype.itemsize,), (1,), 0)
    word = INTEGERS[real.dtype.itemsize]
    pattern = poison_bytes(real.dtype, which)
    bits = int.from_bytes(pattern, sys.byteorder, signed=word.is_signed)
    distinct(real).view(word).fill_(bits)


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with each dimension of stride 0 cut to its first index, so that it may be written to."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided([n if stride else min(n, 1) for n, stride in pairs], tensor.stride())


def has_large_strides(tensor: torch.Tensor) -> bool:
    """Whether the tensor lies scattered over a storage that is too large to be touched as a whole."""
    storage = tensor.untyped_storage().nbytes()
    return storage > SCATTERED_BYTES and storage > SCATTERED_RATIO * tensor.numel() * tensor.dtype.itemsize


@cache
def red_zone(dtype: torch.dtype, which: Poison, device: torch.device, nbytes: int) -> torch.Tensor:
    """What a red zone of `nbytes` beside elements of `dtype` holds: flat uint8 on `device`."""
    pattern = poison_bytes(dtype, which)
    return torch.tensor(list(pattern), dtype=torch.uint8, device=device).repeat(nbytes // len(pattern))


@dataclass(frozen=True)
class Range:
    """Bytes [start, end) that kernels may touch: one storage, of elements of `itemsize` bytes."""

    start: int
    end: int
    name: str
    itemsize: int


@dataclass(frozen=True)
class Block:
    """A storage's place and red zones; holding it keeps the memory."""

    range: Range
    storage: StorageWeakRef
    zones: torch.Tensor
    """uint8 of (2, red zone bytes): before and after, as they are now."""
    whole: torch.Tensor
    """uint8 of (red zone bytes,): what either zone holds unless something wrote there."""

    @property
    def held_bytes(self) -> int:
        """What the block occupies, red zones included."""
        return self.range.end - self.range.start + self.zones.numel()

    def damaged(self) -> torch.Tensor:
        """Whether either zone was written to: a 0-dimensional bool on the block's device."""
        return (self.zones != self.whole).any()

    def overruns(self) -> Iterator[Overrun]:
        """One for each damaged zone."""
        itemsize, nbytes = self.range.itemsize, self.range.end - self.range.start
        damage = (self.zones != self.whole).cpu()
        sides = (("before", -damage.shape[1]), ("after", nbytes))
        for zone, (side, first) in zip(damage, sides, strict=True):
            places = (zone.nonzero().flatten() + first).div(itemsize, rounding_mode="floor").unique().tolist()
            if places:
                yield Overrun(
                    tensor=self.range.name,
                    side=side,
                    offset=places[0] if side == "after" else places[-1],
                    elements=len(places),
                    size=nbytes // itemsize,
                )


def surround(nbytes: int, itemsize: int, whole: torch.Tensor, name: str) -> tuple[Block, torch.Tensor]:
    """A block of `nbytes` > 0 between two red zones like `whole`, on its device.

    Its storage comes as a flat uint8 tensor of exactly that size; what it holds was not touched.
    """
    margin = whole.numel()
    arena = untouched_memory(margin + nbytes + margin, whole.device)
    # A slice would share the arena's storage. Through DLPack the same memory gets a storage that begins and
    # ends with the slice and keeps the arena; the capsule's form waits for no stream.
    data: torch.Tensor = from_dlpack(to_dlpack(arena[margin : margin + nbytes]))
    zones = arena.as_strided((2, margin), (margin + nbytes, 1))
    zones.copy_(whole)
    return Block(range_of(data, name, itemsize), reference_to(data), zones, whole), data


def range_of(tensor: torch.Tensor, name: str, itemsize: int) -> Range:
    """That of the tensor's storage."""
    start = tensor.untyped_storage().data_ptr()
    return Range(start, start + tensor.untyped_storage().nbytes(), name, itemsize)


def reference_to(tensor: torch.Tensor) -> StorageWeakRef:
    """The tensor's storage, not kept: its memory goes with the last tensor in it."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def storage_behind(reference: StorageWeakRef) -> torch.UntypedStorage:
    """The storage itself, of one that is alive."""
    return torch.UntypedStorage._new_with_weak_ptr(reference.cdata)


def is_alive(storage: StorageWeakRef) -> bool:
    """Whether any tensor still lies in the storage."""
    return not storage.expired()  # type: ignore[no-untyped-call]


def untouched_memory(size: int, device: torch.device) -> torch.Tensor:
    """Memory of `size` bytes as flat uint8; on the CPU a page costs nothing until it is written to."""
    if device.type != "cpu":
        return torch.empty(size, dtype=torch.uint8, device=device)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=torch.uint8)


def copy_storage(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy the storage to `target`, laid out like `source`; with large strides, only the elements."""
    if has_large_strides(source):
        distinct(target).copy_(distinct(source))
    else:
        storage_bytes(target).copy_(storage_bytes(source))
