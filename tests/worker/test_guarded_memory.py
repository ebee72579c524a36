"""Guarded memory behaves like torch's own, and reports writes to where nothing may be written."""

import ctypes
import math
import mmap
import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from pytorch_to_triton.inputs.case import Layout
from pytorch_to_triton.schema.dtype import OF_INPUTS
from pytorch_to_triton.worker.allocation import Poison, Range, poison_bytes, storage_bytes
from pytorch_to_triton.worker.calls.generate import laid_out
from pytorch_to_triton.worker.guarded_memory import GuardedMemory
from pytorch_to_triton.worker.wire.observation import Overrun

DTYPES = [getattr(torch, name) for name in OF_INPUTS]


@pytest.fixture
def memory() -> Iterator[GuardedMemory]:
    memory = GuardedMemory("cpu", Poison.FIRST)
    yield memory
    memory.close()


def write_element(tensor: torch.Tensor, element: int, value: float = 1.0) -> None:
    """Store a float32 at an element counted from the tensor's first, wherever that is."""
    ctypes.c_float.from_address(tensor.data_ptr() + 4 * element).value = value


def raw(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's whole storage."""
    return bytes(storage_bytes(tensor).tolist())


def is_poisoned(tensor: torch.Tensor, which: Poison = Poison.FIRST) -> bool:
    return raw(tensor) == poison_bytes(tensor.dtype, which) * (
        tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
    )


SHAPES = {
    "matrix": lambda: torch.arange(12).view(3, 4),
    "vector": lambda: torch.arange(5),
    "one": lambda: torch.ones(1, dtype=torch.int64),
    "0-dim": lambda: torch.tensor(3),
    "empty": lambda: torch.zeros(0, 3, dtype=torch.int64),
    "inner slice": lambda: torch.arange(60).view(3, 4, 5)[1:, ::2, 2:4],
    "windows": lambda: torch.arange(9).unfold(0, 3, 1),
    "empty slice": lambda: torch.arange(7)[3:3],
}


def test_a_placed_tensor_is_laid_out_as_the_original_was(memory: GuardedMemory) -> None:
    for shape, layout, dtype in product(SHAPES, get_args(Layout), DTYPES):
        base = SHAPES[shape]()
        flat = torch.as_strided(base, (base.untyped_storage().nbytes() // 8,), (1,), 0).to(dtype)
        tensor = laid_out(flat.as_strided(base.shape, base.stride(), base.storage_offset()), layout)
        placed = memory.placed(tensor, "x")
        assert form_of(placed) == form_of(tensor), (shape, layout, dtype)
        assert raw(placed) == raw(tensor), (shape, layout, dtype)
        assert placed.untyped_storage().data_ptr() % 64 == 0
    assert memory.overruns() == []


def form_of(tensor: torch.Tensor) -> tuple[object, ...]:
    """Everything of a tensor but its place and its values."""
    size = tensor.untyped_storage().size()
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), size


def test_rows_of_an_expanded_tensor_are_one_row(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(1, 4).expand(3, 4), "x")
    write_element(placed, 2, 7.0)
    assert placed[:, 2].tolist() == [7, 7, 7]


def test_a_placed_tensor_is_a_copy_without_gradient(memory: GuardedMemory) -> None:
    original = torch.zeros(4, requires_grad=True)
    placed = memory.placed(original, "x")
    placed.add_(1)
    assert original.tolist() == [0, 0, 0, 0]
    assert not placed.requires_grad


def test_a_write_outside_is_found_with_its_offset() -> None:
    for element, side in ((12, "after"), (40, "after"), (-1, "before")):
        memory = GuardedMemory("cpu", Poison.FIRST)
        placed = memory.placed(torch.zeros(3, 4), "x")
        memory.placed(torch.zeros(5), "y")
        write_element(placed, element)
        found = Overrun(tensor="x", side=side, offset=element, elements=1, size=12)
        assert memory.overruns() == [found]


def test_several_writes_on_both_sides_are_counted_and_the_nearest_is_reported(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(12), "x")
    for element in (-9, -3, 14, 15, 16):
        write_element(placed, element)
    assert memory.overruns() == [
        Overrun(tensor="x", side="before", offset=-3, elements=2, size=12),
        Overrun(tensor="x", side="after", offset=14, elements=3, size=12),
    ]


def test_offsets_count_from_the_storage_not_from_the_tensor(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(10)[4:], "x")
    write_element(placed, 6)
    write_element(placed, -5)
    assert [(o.side, o.offset) for o in memory.overruns()] == [("before", -1), ("after", 10)]


def test_one_byte_too_far_is_found_in_every_dtype() -> None:
    for dtype, which in product(DTYPES, Poison):
        memory = GuardedMemory("cpu", which)
        placed = memory.placed(torch.zeros(7, dtype=dtype), "x")
        last = placed.data_ptr() + 8 * dtype.itemsize - 1
        ctypes.c_uint8.from_address(last).value ^= 1
        found = Overrun(tensor="x", side="after", offset=7, elements=1, size=7)
        assert memory.overruns() == [found], (dtype, which)


def test_writes_inside_are_no_overrun(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(1000), "x")
    write_element(placed, 0)
    write_element(placed, 999)
    placed.fill_(3)
    assert memory.overruns() == []


def test_what_lies_beside_a_float_tensor_is_not_a_number(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(4), "x")
    assert math.isnan(ctypes.c_float.from_address(placed.data_ptr() + 16).value)
    assert math.isnan(ctypes.c_float.from_address(placed.data_ptr() - 4).value)


def test_the_two_poisons_differ_and_the_first_is_nan_where_there_is_one() -> None:
    for dtype in (*DTYPES, torch.complex64, torch.complex128, torch.uint32):
        first, second = (
            torch.frombuffer(bytearray(poison_bytes(dtype, which)), dtype=dtype) for which in Poison
        )
        wide = torch.complex128 if dtype.is_complex else torch.float64
        if dtype.is_floating_point or dtype.is_complex:
            assert first.to(wide).isnan().all(), dtype
            assert second.to(wide).isfinite().all(), dtype
        else:
            assert first.item() != second.item(), dtype


ALLOCATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "empty": lambda x: torch.empty(3, 4),
    "empty of sizes": lambda x: torch.empty((3, 4), dtype=torch.int16),
    "empty channels last": lambda x: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last),
    "empty_like": torch.empty_like,
    "empty_like transposed": lambda x: torch.empty_like(x.T, dtype=torch.bfloat16),
    "empty_like contiguous": lambda x: torch.empty_like(x.T, memory_format=torch.contiguous_format),
    "empty_like expanded": lambda x: torch.empty_like(x[:1].expand(6, 4)),
    "empty_strided": lambda x: torch.empty_strided((2, 3), (5, 1), dtype=torch.bool),
    "empty_strided overlapping": lambda x: torch.empty_strided((2, 3), (0, 1)),
    "empty_permuted": lambda x: torch.empty_permuted((2, 3), (1, 0)),
    "new_empty": lambda x: x.new_empty(7, dtype=torch.float8_e4m3fn),
    "new_empty_strided": lambda x: x.new_empty_strided((2, 2), (1, 2)),
    "new_empty 0-dim": lambda x: x.new_empty(()),
    "complex": lambda x: torch.empty(3, dtype=torch.complex128),
    "Tensor of sizes": lambda x: torch.Tensor(3, 4),
    "requires_grad": lambda x: torch.empty(3, requires_grad=True),
}


def test_what_is_allocated_uninitialised_is_poison() -> None:
    x = torch.zeros(6, 4)
    for name, which in product(ALLOCATIONS, Poison):
        plain = ALLOCATIONS[name](x)
        memory = GuardedMemory("cpu", which)
        with memory.intercepting():
            guarded = ALLOCATIONS[name](x)
        assert is_poisoned(guarded, which), name
        assert form_of(guarded) == form_of(plain), name
        assert (guarded.requires_grad, guarded.is_leaf) == (plain.requires_grad, True), name
        assert not guarded._is_view(), name
        end = guarded.data_ptr() + guarded.untyped_storage().size()
        ctypes.c_uint8.from_address(end).value ^= 1
        assert [o.side for o in memory.overruns()] == ["after"], name


INITIALISED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": lambda x: torch.zeros(3, 4),
    "ones": lambda x: torch.ones(3, dtype=torch.bool),
    "full": lambda x: torch.full((2, 2), -torch.inf),
    "zeros_like": torch.zeros_like,
    "ones_like": lambda x: torch.ones_like(x.T, dtype=torch.int8),
    "full_like": lambda x: torch.full_like(x, 5),
    "new_zeros": lambda x: x.new_zeros(3),
    "new_ones": lambda x: x.new_ones((), requires_grad=True),
    "new_full": lambda x: x.new_full((3,), 2.5),
}


def test_what_is_allocated_with_values_keeps_them_and_is_guarded() -> None:
    x = torch.arange(12.0).view(3, 4)
    for name, make in INITIALISED.items():
        memory = GuardedMemory("cpu", Poison.FIRST)
        with memory.intercepting():
            guarded = make(x)
        plain = make(x)
        assert torch.equal(guarded, plain), name
        assert (form_of(guarded), guarded.requires_grad) == (form_of(plain), plain.requires_grad), name
        ctypes.c_uint8.from_address(guarded.data_ptr() - 1).value ^= 1
        assert [(o.side, o.offset) for o in memory.overruns()] == [("before", -1)], name


def test_empty_meta_and_subclass_tensors_are_left_alone(memory: GuardedMemory) -> None:
    class Tagged(torch.Tensor):
        pass

    with memory.intercepting():
        nothing = torch.empty(0, 5)
        meta = torch.empty(3, device="meta")
        tagged = torch.empty_like(torch.zeros(3).as_subclass(Tagged))
    assert (nothing.shape, nothing.untyped_storage().size()) == ((0, 5), 0)
    assert meta.is_meta
    assert type(tagged) is Tagged
    nothing.resize_(4).fill_(1)
    assert nothing.tolist() == [1, 1, 1, 1]


def test_an_out_argument_stays_the_tensor_that_was_given(memory: GuardedMemory) -> None:
    with memory.intercepting():
        out = torch.empty(3)
        assert torch.zeros(3, out=out) is out
        fresh = torch.empty(0)
        torch.add(out, 1, out=fresh)
    assert out.tolist() == [0, 0, 0]
    assert fresh.tolist() == [1, 1, 1]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        out.copy_(x * 2)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (out,) = ctx.saved_tensors
        result = out.new_empty(out.shape)
        return result.copy_(gradients[0] * 2)


def test_modules_and_autograd_functions_work_on_guarded_memory(memory: GuardedMemory) -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(4, 3), torch.randn(4), torch.randn(5, 3)
    with memory.intercepting():
        linear = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.BatchNorm1d(4))
        linear[0].load_state_dict({"weight": weight, "bias": bias})
        given = memory.placed(x, "x").requires_grad_()
        Doubled.apply(linear(given)).square().sum().backward()
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.BatchNorm1d(4))
    plain[0].load_state_dict({"weight": weight, "bias": bias})
    expected = x.clone().requires_grad_()
    (plain(expected) * 2).square().sum().backward()
    torch.testing.assert_close(given.grad, expected.grad)
    assert memory.overruns() == []


def test_inference_mode_and_vmap_work_on_guarded_memory(memory: GuardedMemory) -> None:
    with memory.intercepting():
        with torch.inference_mode():
            out = torch.empty(3).fill_(2)
        mapped = torch.func.vmap(lambda row: row + torch.zeros(4))(torch.ones(3, 4))
    assert out.tolist() == [2, 2, 2]
    assert torch.equal(mapped, torch.ones(3, 4))


def test_ranges_hold_what_lives_and_nothing_else(memory: GuardedMemory) -> None:
    placed = memory.placed(torch.zeros(3, 4), "x")
    with memory.intercepting():
        kept = torch.empty(5, dtype=torch.float16)
        cloned = placed.clone()
        part = placed.to(torch.float64)[1:]
        torch.ones(9)
        torch.zeros(9).clone()
    start = cloned.data_ptr()
    whole = part.data_ptr() - 4 * 8
    assert memory.ranges() == [
        Range(placed.data_ptr(), placed.data_ptr() + 48, "x", 4),
        Range(kept.data_ptr(), kept.data_ptr() + 10, "empty (5,)", 2),
        Range(start, start + 48, "clone (3, 4)", 4),
        Range(whole, whole + 96, "_to_copy (3, 4)", 8),
    ]


def test_a_storage_that_grew_is_known_at_its_new_size(memory: GuardedMemory) -> None:
    with memory.intercepting():
        grown = torch.arange(3).clone()
        grown.resize_(1000)
    assert [place.end - place.start for place in memory.ranges()] == [8000]


def test_a_temporary_that_turns_out_to_be_the_output_is_reported_by_that_name(memory: GuardedMemory) -> None:
    with memory.intercepting():
        out = torch.empty(4)
        write_element(out, 4)
    memory.named(out.view(2, 2), "out")
    assert [o.tensor for o in memory.overruns()] == ["out"]


def test_a_tensor_that_was_never_seen_can_be_named(memory: GuardedMemory) -> None:
    foreign = torch.zeros(3)
    memory.named(foreign, "table")
    memory.named(foreign, "weights")
    start = foreign.data_ptr()
    assert memory.ranges() == [Range(start, start + 12, "weights", 4)]


def test_a_temporary_freed_early_is_still_checked(memory: GuardedMemory) -> None:
    with memory.intercepting():
        write_element(torch.empty(4), 5)
    assert [(o.tensor, o.offset) for o in memory.overruns()] == [("empty (4,)", 5)]


def test_dead_memory_is_bounded_and_its_damage_remembered() -> None:
    memory = GuardedMemory("cpu", Poison.FIRST, dead_bytes=1_000_000)
    with memory.intercepting():
        kept = torch.zeros(4)
        write_element(torch.empty(4), 4)
        before = resident()
        for _ in range(100):
            torch.empty(1_000_000)
    assert resident() - before < 40_000_000
    assert [o.offset for o in memory.overruns()] == [4]
    write_element(kept, -1)
    assert [o.tensor for o in memory.overruns()] == ["empty (4,)", "zeros (4,)"]


def resident() -> int:
    """Bytes of memory that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_outlives_close_where_a_tensor_needs_it() -> None:
    memory = GuardedMemory("cpu", Poison.FIRST)
    placed = memory.placed(torch.arange(100_000), "x")
    memory.close()
    assert memory.ranges() == []
    assert torch.equal(placed, torch.arange(100_000))


def test_values_spread_over_eight_gigabytes_are_placed_at_once(memory: GuardedMemory) -> None:
    values = torch.arange(6.0).view(3, 2)
    before = resident()
    far = memory.spread(values, (2**30, 7), "x")
    again = memory.placed(far, "y")
    wide = memory.placed(far[:, :1].expand(3, 5), "z")
    assert resident() - before < 100_000_000
    assert far.untyped_storage().size() == 4 * (2**31 + 7 + 1) == again.untyped_storage().size()
    assert far.stride() == again.stride() == (2**30, 7)
    assert torch.equal(far, values)
    assert torch.equal(again, values)
    assert torch.equal(wide, values[:, :1].expand(3, 5))
    with memory.intercepting():
        out = torch.empty_strided(far.shape, far.stride())
    assert out.isnan().all()
    write_element(far, 2**31 + 8)
    assert [(o.tensor, o.offset) for o in memory.overruns()] == [("x", 2**31 + 8)]


def test_values_spread_nearby_have_poison_between_them(memory: GuardedMemory) -> None:
    near = memory.spread(torch.ones(2, 2), (4, 2), "x")
    assert near.tolist() == [[1, 1], [1, 1]]
    assert near.untyped_storage().size() == 4 * 7
    assert near.as_strided((7,), (1,)).isnan().tolist() == [False, True] * 3 + [False]
    assert memory.spread(torch.ones(0, 2), (2, 1), "y").shape == (0, 2)


@pytest.fixture
def bare() -> Iterator[GuardedMemory]:
    memory = GuardedMemory("cpu", Poison.FIRST, 0)
    yield memory
    memory.close()


def test_without_red_zones_a_tensor_begins_with_its_allocation(bare: GuardedMemory) -> None:
    for dtype in DTYPES:
        original = torch.arange(15).to(dtype).view(3, 5)
        placed = bare.placed(original.T[1:], "x")
        with bare.intercepting():
            made = torch.empty(7, dtype=dtype)
        assert placed.untyped_storage().data_ptr() % mmap.PAGESIZE == 0
        assert made.data_ptr() % mmap.PAGESIZE == 0
        assert raw(placed) == raw(original)
        assert (placed.stride(), placed.storage_offset()) == ((1, 5), 1)
        assert is_poisoned(made)


def test_without_red_zones_nothing_is_an_overrun_and_ranges_are_known(bare: GuardedMemory) -> None:
    placed = bare.placed(torch.zeros(3, 4), "x")
    write_element(placed, 12)  # within the page
    with bare.intercepting():
        del placed
        made = torch.zeros(5)
    assert bare.overruns() == []
    assert bare.ranges() == [Range(made.data_ptr(), made.data_ptr() + 20, "zeros (5,)", 4)]


def test_red_zones_are_as_wide_as_asked() -> None:
    memory = GuardedMemory("cpu", Poison.FIRST, 512)
    placed = memory.placed(torch.zeros(4), "x")
    write_element(placed, 4 + 127)
    write_element(placed, -128)
    assert [(o.side, o.offset) for o in memory.overruns()] == [("before", -128), ("after", 131)]
    memory.close()
