"""The guard: what leaves a tensor is reported, with its line, and does not happen."""

import contextlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

from pytorch_to_triton.worker.allocation import Poison, Range
from pytorch_to_triton.worker.guarded_memory import GuardedMemory
from pytorch_to_triton.worker.interpreter.guarded_launch import KEPT_FAULTS
from pytorch_to_triton.worker.interpreter.memory_guard import MemoryGuard
from pytorch_to_triton.worker.wire.observation import MemoryFault, Overrun

ZONE = 1 << 16


class Zones:
    """Places tensors with ZONE bytes before and after them that belong to nothing."""

    def __init__(self) -> None:
        self.ranges: list[Range] = []
        self.arenas: list[Tensor] = []
        """Kept: the memory of one that is gone would still be in `ranges`."""
        self.guard = MemoryGuard(lambda: self.ranges)

    def place(self, tensor: Tensor) -> Tensor:
        size = tensor.numel() * tensor.element_size()
        arena = torch.zeros(size + 2 * ZONE, dtype=torch.uint8)
        self.arenas.append(arena)
        placed = arena[ZONE : ZONE + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)
        self.ranges.append(
            Range(placed.data_ptr(), placed.data_ptr() + size, "placed", tensor.element_size())
        )
        return placed

    def faults(self, launch: Callable[..., Any], *args: Any) -> list[MemoryFault]:
        self.guard.clear()
        with self.guard.watching():
            launch(*args)
        return self.guard.faults


def only(faults: list[MemoryFault]) -> MemoryFault:
    assert len(faults) == 1, faults
    return faults[0]


def line_of(kernel: Any, source: str) -> int:
    """The line of this file on which `kernel` says `source`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if source in line)


@triton.jit
def copy(x_ptr, out_ptr, shift, loaded, stored, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + i + shift,
        mask=i < loaded,
    )
    tl.store(out_ptr + i, x, mask=i < stored)


def a_load_past_the_end_names_line_tensor_and_offset() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(100)), zones.place(torch.zeros(100))
    fault = only(zones.faults(copy[(4,)], x, out, 0, 128, 100, 32))
    assert fault == MemoryFault(
        kind="load_outside",
        kernel="copy",
        file=__file__,
        line=line_of(copy, "x = tl.load("),
        source="x = tl.load(",
        tensor="x_ptr",
        offset=100,
        elements=100,
        count=28,
        program=(3, 0, 0),
        detail="reads element 100 of 100",
    )
    assert torch.equal(out, x)


@triton.jit
def strided_copy(x_ptr, out_ptr, row_stride, col_stride, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * row_stride + tl.arange(0, N)[None, :] * col_stride
    tl.store(out_ptr + at, tl.load(x_ptr + at))


def an_address_by_another_arguments_strides_names_that_argument() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(4, 8))[:, ::2], zones.place(torch.zeros(4, 4))
    fault = only(zones.faults(strided_copy[(1,)], x, out, *x.stride(), 4, 4))
    assert (fault.kind, fault.tensor, fault.strides_of) == ("store_outside", "out_ptr", "x_ptr")


def a_store_past_the_end_names_line_and_offset_and_is_dropped() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(128)), zones.place(torch.zeros(100, dtype=torch.float32))
    fault = only(zones.faults(copy[(4,)], x, out, 0, 128, 128, 32))
    assert (fault.kind, fault.tensor, fault.offset, fault.count) == (
        "store_outside",
        "out_ptr",
        100,
        28,
    )
    assert fault.line == line_of(copy, "tl.store(out_ptr")
    assert fault.source == "tl.store(out_ptr + i, x, mask=i < stored)"
    assert fault.detail == "writes element 100 of 100"
    assert torch.equal(out, x[:100])
    assert not torch.empty(0, dtype=torch.uint8).set_(out.untyped_storage())[ZONE + 400 :].any()


def a_load_before_the_first_element_has_a_negative_offset_and_reads_nan() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(64)), zones.place(torch.zeros(64))
    fault = only(zones.faults(copy[(2,)], x, out, -3, 64, 64, 32))
    assert (fault.kind, fault.offset, fault.count) == ("load_outside", -3, 3)
    assert out[:3].isnan().all()
    assert torch.equal(out[3:], x[:-3])


def what_cannot_be_read_is_a_large_odd_integer_and_not_zero() -> None:
    zones = Zones()
    for dtype in (torch.int8, torch.int32, torch.int64, torch.uint8):
        x, out = zones.place(torch.zeros(8, dtype=dtype)), zones.place(torch.zeros(16, dtype=dtype))
        assert only(zones.faults(copy[(1,)], x, out, 0, 16, 16, 16)).elements == 8
        assert (out[8:] % 2 == 1).all()
        assert (out[8:] > 40).all()
    half = zones.place(torch.zeros(8, dtype=torch.bfloat16)), zones.place(torch.zeros(16).bfloat16())
    assert only(zones.faults(copy[(1,)], *half, 0, 16, 16, 16)).detail == "reads element 8 of 8"
    assert half[1][8:].isnan().all()


@triton.jit
def column(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i * stride))


def a_product_that_wraps_around_int32_lands_before_the_tensor() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(64)), zones.place(torch.zeros(4))
    fault = only(zones.faults(column[(1,)], x, out, 1 << 30, 4))
    assert (fault.tensor, fault.offset, fault.count) == ("x_ptr", 1 << 30, 3)
    fault = only(zones.faults(column[(1,)], x, out, (1 << 31) - 8, 4))
    assert fault.count == 3
    fault = only(zones.faults(column[(1,)], x, out, -(1 << 31), 2))
    assert (fault.offset, fault.detail) == (-(1 << 31), f"reads element {-(1 << 31)} of 64")


def an_address_far_away_belongs_to_the_argument_it_was_computed_from() -> None:
    zones = Zones()
    tensors = [zones.place(torch.randn(64)) for _ in range(2)]
    for x, out in (tensors, tensors[::-1]):
        fault = only(zones.faults(copy[(1,)], x, out, 1 << 33, 64, 0, 64))
        assert (fault.tensor, fault.offset, fault.count) == ("x_ptr", 1 << 33, 64)


def a_view_may_reach_the_rest_of_its_storage() -> None:
    x, out = torch.randn(100), torch.zeros(100)
    zones = Zones()
    assert zones.faults(copy[(1,)], x[50:60], out, -50, 100, 100, 128) == []
    assert torch.equal(out, x)
    fault = only(zones.faults(copy[(1,)], zones.place(x)[50:60], out, -51, 100, 0, 128))
    assert (fault.offset, fault.elements) == (-51, 50)


def a_tensor_without_elements_holds_none() -> None:
    zones = Zones()
    empty, out = torch.zeros(0), zones.place(torch.zeros(8))
    assert zones.faults(copy[(1,)], empty, out, 0, 0, 0, 8) == []
    fault = only(zones.faults(copy[(1,)], empty, out, 0, 8, 0, 8))
    assert (fault.tensor, fault.detail) == ("x_ptr", "reads element 0 of 0")


@triton.jit
def first_of_each(pointers_ptr, out_ptr, COUNT: tl.constexpr):
    addresses = tl.load(pointers_ptr + tl.arange(0, COUNT))
    tl.store(out_ptr + tl.arange(0, COUNT), tl.load(addresses.to(tl.pointer_type(tl.float32))))


def addresses_loaded_from_memory_may_reach_any_known_tensor() -> None:
    zones = Zones()
    parts = [zones.place(torch.full((5,), float(k))) for k in range(4)]
    out = zones.place(torch.zeros(4))
    pointers = zones.place(torch.tensor([part.data_ptr() for part in parts]))
    assert zones.faults(first_of_each[(1,)], pointers, out, 4) == []
    assert out.tolist() == [0.0, 1.0, 2.0, 3.0]
    pointers[3] += 20
    fault = only(zones.faults(first_of_each[(1,)], pointers, out, 4))
    assert fault.count == 1


@triton.jit
def tile_doubled(x_ptr, out_ptr, rows, columns, CHECKED: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (start, 0), (BLOCK, 16), (1, 0))
    out = tl.make_block_ptr(out_ptr, (rows, columns), (columns, 1), (start, 0), (BLOCK, 16), (1, 0))
    if CHECKED:
        tl.store(out, tl.load(x, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))
    else:
        tl.store(out, tl.load(x) * 2, boundary_check=(0, 1))


def block_pointers_are_checked_where_they_do_not_check_themselves() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(10, 16)), zones.place(torch.zeros(10, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Newer Triton discourages block pointers.
        assert zones.faults(tile_doubled[(2,)], x, out, 10, 16, True, 8) == []
        assert torch.equal(out, x * 2)
        fault = only(zones.faults(tile_doubled[(2,)], x, out, 10, 16, False, 8))
    assert (fault.kind, fault.tensor, fault.detail) == (
        "load_outside",
        "x_ptr",
        "reads element 160 of 160",
    )


@triton.jit
def described_copy(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]))


def tensor_descriptors_may_reach_their_tensor_and_no_more() -> None:
    zones = Zones()
    x, out = zones.place(torch.randn(12, 16)), zones.place(torch.zeros(12, 16))
    tiles = [TensorDescriptor.from_tensor(tensor, [8, 16]) for tensor in (x, out)]
    assert zones.faults(described_copy[(2,)], *tiles, 8) == []
    assert torch.equal(out, x)
    too_long = TensorDescriptor(x, [13, 16], [16, 1], [8, 16])
    fault = only(zones.faults(described_copy[(2,)], too_long, tiles[1], 8))
    assert (fault.tensor, fault.offset, fault.count) == ("x", 192, 16)


@triton.jit
def counted(x_ptr, out_ptr, bins, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.load(x_ptr + i) % bins, 1.0)


def atomics_are_clean_and_checked() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        zones = Zones()
        x, out = zones.place(torch.arange(64)), zones.place(torch.zeros(8, dtype=dtype))
        assert zones.faults(counted[(4,)], x, out, 8, 16) == []
        assert out.tolist() == [8.0] * 8
        assert zones.guard.launches_with_atomics == {"counted"}
        fault = only(zones.faults(counted[(4,)], x, out, 9, 16))
        assert (fault.kind, fault.detail, fault.count) == (
            "store_outside",
            "updates element 8 of 8",
            7,
        )
        zones.guard.clear()
        assert zones.guard.launches_with_atomics == set()


@triton.jit
def exchanged(out_ptr, seen_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(seen_ptr + i, tl.atomic_cas(out_ptr + i, tl.zeros([BLOCK], tl.int32), i + 5))


def compare_and_swap_outside_is_reported_and_the_rest_runs() -> None:
    zones = Zones()
    out, seen = (zones.place(torch.zeros(n, dtype=torch.int32)) for n in (6, 8))
    fault = only(zones.faults(exchanged[(1,)], out, seen, 8))
    assert (fault.kind, fault.offset, fault.count) == ("store_outside", 6, 2)
    assert out.tolist() == [5, 6, 7, 8, 9, 10]
    assert (seen[6:] > 1000).all()


@triton.jit
def reached(x_ptr, offset):
    return tl.load(x_ptr + offset)


@triton.jit
def through_a_function(pair, out_ptr):
    tl.store(out_ptr, reached(pair[1], 7))


def the_line_is_that_of_the_function_which_loads() -> None:
    zones = Zones()
    x, y, out = (zones.place(torch.zeros(n)) for n in (8, 4, 1))
    fault = only(zones.faults(through_a_function[(1,)], (x, y), out))
    assert (fault.kernel, fault.line) == ("through_a_function", line_of(reached, "tl.load"))
    assert (fault.tensor, fault.offset) == ("pair[1]", 7)


@triton.jit
def failing(x_ptr):
    tl.store(x_ptr + 9, 1.0)
    tl.device_assert(tl.load(x_ptr) > 0)


def faults_outlive_a_kernel_that_raises_and_the_guard_ends() -> None:
    zones = Zones()
    x = zones.place(torch.zeros(8))
    with contextlib.suppress(InterpreterError):
        zones.faults(failing[(1,)], x)
    assert only(zones.guard.faults).offset == 9
    zones.guard.clear()
    copy[(1,)](x, x, 1, 8, 0, 8)
    assert zones.guard.faults == []


@triton.jit
def tuple_of_many(tensors, WHICH: tl.constexpr):
    tl.store(tensors[WHICH] + 8, 0.0)


def faults_of_one_place_are_counted_and_places_are_capped() -> None:
    zones = Zones()
    x, out = zones.place(torch.zeros(8)), zones.place(torch.zeros(8))
    zones.guard.clear()
    with zones.guard.watching():
        for _ in range(5):
            copy[(3,)](x, out, 0, 24, 8, 8)
        assert only(zones.guard.faults).count == 5 * 16
        for k in range(2 * KEPT_FAULTS):
            tuple_of_many[(1,)]((*([x] * k), x, *([out] * (2 * KEPT_FAULTS - k))), k)
    assert len(zones.guard.faults) == KEPT_FAULTS


@triton.jit
def doubled(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i.to(tl.int64) * stride, mask=i < n)
    tl.store(out_ptr + i.to(tl.int64) * stride, x * 2, mask=i < n)


def an_element_too_many_in_guarded_memory_is_found_without_the_guard() -> None:
    memory = GuardedMemory("cpu", Poison.FIRST)
    x = memory.placed(torch.arange(6.0), "x")
    far = memory.spread(torch.arange(3.0), (2**30,), "far")
    with memory.intercepting():
        honest, out = torch.empty_like(x), torch.empty_strided((3,), (2**30,))
        doubled[(1,)](x, honest, 6, 1, BLOCK=8)
        doubled[(1,)](far, out, 3, 2**30, BLOCK=4)
        assert (honest.tolist(), out.tolist()) == ([0, 2, 4, 6, 8, 10], [0, 2, 4])
        assert memory.overruns() == []
        broken = torch.empty(5)
        doubled[(1,)](x, broken, 6, 1, BLOCK=8)
    memory.named(broken, "out")
    found = Overrun(tensor="out", side="after", offset=5, elements=1, size=5)
    assert memory.overruns() == [found]
