"""Races between the programs of a launch are reported; programs on separate elements do not race."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from pytorch_to_triton.worker.interpreter import races
from pytorch_to_triton.worker.interpreter.launching import Order
from pytorch_to_triton.worker.interpreter.memory_guard import MemoryGuard
from pytorch_to_triton.worker.wire.observation import MemoryFault


def faults(launch: Callable[..., Any], *args: Any, **options: Any) -> list[MemoryFault]:
    guard = MemoryGuard(list)
    with guard.watching():
        launch(*args, **options)
    return guard.faults


def only(found: list[MemoryFault]) -> MemoryFault:
    assert len(found) == 1, found
    assert found[0].kind == "race"
    return found[0]


@triton.jit
def rolled(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (i + 1) % n)
    tl.store(x_ptr + i, x)


def rolling_in_place_reads_what_other_programs_write() -> None:
    x = torch.randn(64)
    late, early = sorted(faults(rolled[(4,)], x, 64, 16), key=lambda fault: fault.line)
    assert (late.source, late.tensor, late.offset) == (
        "x = tl.load(x_ptr + (i + 1) % n)",
        "x_ptr",
        0,
    )
    assert (late.program, late.count) == ((3, 0, 0), 1)
    assert late.detail == "reads what program 0 wrote in the same launch"
    assert (early.source, early.offset, early.count) == ("tl.store(x_ptr + i, x)", 16, 3)
    assert early.detail == "writes what program 0 read in the same launch"
    assert early.line == inspect.getsourcelines(rolled.fn)[1] + 4
    assert faults(rolled[(1,)], x, 64, 64) == []


@triton.jit
def accumulated(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(1) * 2 + tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK)))
    tl.store(out_ptr + 1, tl.load(out_ptr + 1) + total)


def adding_without_atomics_leaves_different_values() -> None:
    x, out = torch.ones(64), torch.zeros(2)
    fault = only(faults(accumulated[(2, 2)], x, out, 16))
    assert (fault.tensor, fault.offset, fault.elements, fault.count) == ("out_ptr", 1, 2, 3)
    assert fault.detail == "programs (0, 0, 0) and (0, 1, 0) write different values"
    assert fault.program == (0, 1, 0)


@triton.jit
def halved_places(x_ptr, out_ptr, SHARED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (i // 2 if SHARED else i))
    tl.store(out_ptr + i // 2, x)


def lanes_of_one_store_may_meet_only_with_one_value() -> None:
    x, out = torch.randn(16), torch.zeros(8)
    x[:2] = float("nan")
    fault = only(faults(halved_places[(1,)], x, out, False, 16))
    assert (fault.offset, fault.count) == (1, 7)
    assert fault.detail == "lanes of one store write different values to this element"
    assert faults(halved_places[(1,)], x, out, True, 16) == []


@triton.jit
def same_for_all(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros([BLOCK], tl.float32))
    tl.store(out_ptr + i, tl.load(x_ptr + i) / 0.0)
    tl.store(out_ptr + BLOCK + i, tl.load(out_ptr + i))


def programs_that_leave_the_same_values_do_not_race() -> None:
    out = torch.zeros(32)
    assert faults(same_for_all[(3,)], torch.arange(-8.0, 8.0), out, 16) == []


@triton.jit
def low_bytes(x_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i)
    tl.store(x_ptr.to(tl.pointer_type(tl.int8)) + i * 4, tl.zeros([BLOCK], tl.int8))


def elements_of_several_sizes_in_one_storage_are_not_compared() -> None:
    x = torch.zeros(64, dtype=torch.int32)
    assert faults(low_bytes[(4,)], x, 16) == []
    assert (x == 0).all()


@triton.jit
def neighbours(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x_ptr + i, x + right, mask=i < n)


def a_stencil_in_place_is_reported_however_many_loads_there_are() -> None:
    x, limit = torch.randn(1000), races.LOGGED_LANES
    expected = only(faults(neighbours[(8,)], x, 1000, 128))
    assert (expected.count, expected.offset, expected.program) == (7, 128, (1, 0, 0))
    try:
        races.LOGGED_LANES = 300
        assert only(faults(neighbours[(8,)], x, 1000, 128)) == expected
    finally:
        races.LOGGED_LANES = limit


def a_storage_of_too_many_elements_is_not_followed() -> None:
    x, limit = torch.randn(1000), races.FOLLOWED_ELEMENTS
    try:
        races.FOLLOWED_ELEMENTS = 1000
        assert faults(neighbours[(8,)], x, 1000, 128) == []
    finally:
        races.FOLLOWED_ELEMENTS = limit


@triton.jit
def added_by_the_last(
    x_ptr, part_ptr, count_ptr, out_ptr, SEM: tl.constexpr, WAITS: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.arange(0, BLOCK)
    own = tl.program_id(0) * BLOCK + i
    tl.store(part_ptr + own, tl.load(x_ptr + own) * 2)
    if WAITS:
        tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem=SEM) == tl.num_programs(0) - 1:
        total = tl.zeros([BLOCK], tl.float32)
        for program in range(tl.num_programs(0)):
            total += tl.load(part_ptr + program * BLOCK + i)
        tl.store(out_ptr + i, total)


def parts_added(sem: str, *, waits: bool, order: Order = "forward") -> tuple[list[MemoryFault], bool]:
    x, part, out = torch.randn(64), torch.zeros(64), torch.zeros(16)
    count = torch.zeros(1, dtype=torch.int32)
    guard = MemoryGuard(list, order)
    with guard.watching():
        added_by_the_last[(4,)](x, part, count, out, sem, waits, 16)
    return guard.faults, torch.allclose(out, x.view(4, 16).sum(0) * 2)


def a_value_of_another_program_is_seen_through_an_acquire_of_what_it_released() -> None:
    assert parts_added("acq_rel", waits=True) == ([], True)
    assert parts_added("acq_rel", waits=True, order="reversed") == ([], True)
    assert parts_added("acq_rel", waits=True, order="shuffled") == ([], True)
    for sem, why in (
        ("relaxed", "is no release"),
        ("acquire", "is no release"),
        ("release", "is no acquire"),
    ):
        found, _ = parts_added(sem, waits=True)
        fault = only(found)
        assert fault.source == "total += tl.load(part_ptr + program * BLOCK + i)"
        assert fault.detail.startswith("reads what program 0 stored in line ")
        assert fault.detail.endswith(why)


def a_block_is_released_behind_a_barrier() -> None:
    found, right = parts_added("acq_rel", waits=False)
    assert right
    assert "no barrier stands between that and the atomic operation" in only(found).detail


@triton.jit
def overwritten(x_ptr, out_ptr, count_ptr, RELEASES: tl.constexpr):
    program = tl.program_id(0)
    if program < 2:
        tl.store(out_ptr + program, tl.load(x_ptr))
        if program < RELEASES:
            tl.atomic_add(count_ptr, 1, sem="release")
    elif tl.atomic_add(count_ptr, 0, sem="acquire") == RELEASES:
        tl.store(x_ptr, 0.0)


def a_value_is_overwritten_behind_an_acquire_of_what_every_reader_released() -> None:
    x, out, count = torch.ones(1), torch.zeros(2), torch.zeros(2, dtype=torch.int32)
    assert faults(overwritten[(3,)], x, out, count, 2) == []
    assert (x.tolist(), out.tolist()) == ([0], [1, 1])
    fault = only(faults(overwritten[(3,)], x, out, count[1:], 1))
    assert fault.source == "tl.store(x_ptr, 0.0)"
    assert fault.detail.startswith("writes what program 1 read in line ")
    assert fault.detail.endswith("is no release")


@triton.jit
def moved(x_ptr, scratch_ptr, out_ptr, SHIFT: tl.constexpr, WAITS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(2):
        y = tl.load(scratch_ptr + (i + SHIFT) % BLOCK)
        if WAITS:
            tl.debug_barrier()
        tl.store(scratch_ptr + i, tl.load(x_ptr + i) + y)
        if WAITS:
            tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(scratch_ptr + i))


def what_other_lanes_stored_is_loaded_behind_a_barrier() -> None:
    x, scratch, out = torch.randn(64), torch.zeros(64), torch.zeros(64)
    (fault,) = faults(moved[(1,)], x, scratch, out, 1, False, 64)
    lines, first = inspect.getsourcelines(moved.fn)
    load, store = (next(i for i, line in enumerate(lines) if text in line) for text in ("y = tl", "tl.store"))
    assert (fault.kind, fault.line, fault.count) == ("missing_barrier", first + load, 64)
    assert fault.detail == (f"reads in other lanes what line {first + store} stored, with no barrier between")
    assert faults(moved[(1,)], x, scratch, out, 1, True, 64) == []
    assert faults(moved[(1,)], x, scratch, out, 0, False, 64) == []


def one_warp_needs_no_barrier() -> None:
    x, scratch, out = torch.randn(32), torch.zeros(32), torch.zeros(32)
    assert faults(moved[(1,)], x, scratch, out, 1, False, 32, num_warps=1) == []


@triton.jit
def numbered(out_ptr, count_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.atomic_add(count_ptr, 1))


def programs_run_in_the_order_that_is_asked_for() -> None:
    def places(order: Order) -> list[int]:
        out, count = torch.zeros(6, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        with MemoryGuard(list, order).watching():
            numbered[(6,)](out, count)
        places: list[int] = out.tolist()
        return places

    assert places("forward") == [0, 1, 2, 3, 4, 5]
    assert places("reversed") == [5, 4, 3, 2, 1, 0]
    assert places("shuffled") == places("shuffled")
    assert sorted(places("shuffled")) == places("forward") != places("shuffled")
