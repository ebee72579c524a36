"""Arguments, grids, autotuning, heuristics, asserts, descriptors and the interpreter's driver."""

import threading
import types
import warnings
from typing import Any

import torch
import triton
import triton.language as tl
from run_checks import refusal
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from pytorch_to_triton.worker.interpreter.autotuning import InterpreterDriver, make_room_to_wait


@triton.jit
def scalars(out_ptr, eps, flag, small, wide, nothing):
    tl.store(out_ptr, eps.to(tl.float32) * 2)
    tl.store(out_ptr + 1, tl.where(flag, 1.0, 0.0))
    tl.store(out_ptr + 2, (small * small).to(tl.float32))
    tl.store(out_ptr + 3, (wide >> 40).to(tl.float32))
    tl.static_assert(eps.dtype == tl.float32)
    tl.static_assert(flag.dtype == tl.int1)
    tl.static_assert(small.dtype == tl.int32)
    tl.static_assert(wide.dtype == tl.int64)
    tl.static_assert(nothing is None)


def python_scalars_get_the_dtypes_that_the_compiler_gives_them() -> None:
    out = torch.empty(4)
    scalars[(1,)](out, 1e-5, True, 7, 3 << 40, None)
    torch.testing.assert_close(out, torch.tensor([2e-5, 1.0, 49.0, 3.0]))


@triton.jit
def scaled_copy(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * scale, mask=i < n)


def a_grid_function_sees_the_call_as_it_was_made() -> None:
    x = torch.randn(1000)
    out = torch.empty_like(x)
    scaled_copy[lambda meta: (triton.cdiv(meta["x_ptr"].numel(), meta["BLOCK"]),)](
        x, out, 1000, 0.5, BLOCK=256
    )
    assert torch.equal(out, x * 0.5)


def a_grid_of_four_dimensions_is_refused() -> None:
    x = torch.zeros(16)
    assert "at most 3 dimensions" in refusal(scaled_copy[(1, 1, 1, 1)], x, x, 16, 1.0, 16)


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (64, 128, 256)], key=["n"])
@triton.jit
def tuned_copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def autotune_takes_the_first_configuration_and_remembers_it() -> None:
    x = torch.randn(1000)
    out = torch.empty_like(x)
    tuned_copy[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, out, 1000)
    assert torch.equal(out, x)
    assert tuned_copy.best_config.kwargs == {"BLOCK": 64}
    assert list(tuned_copy.cache.values()) == [tuned_copy.best_config]


def larger_blocks_only(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] > 64 and named_args["n"]]


def note_hook(arguments):
    arguments["seen_ptr"].fill_(arguments["BLOCK"])


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, pre_hook=note_hook) for size in (64, 128)],
    key=["n"],
    reset_to_zero=["sum_ptr"],
    restore_value=["x_ptr"],
    prune_configs_by={"early_config_prune": larger_blocks_only},
)
@triton.jit
def tuned_increment(x_ptr, sum_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(x_ptr + i, x + 1, mask=i < n)
    tl.atomic_add(sum_ptr, tl.sum(x))


def autotune_honours_pruning_hooks_and_restored_values() -> None:
    x, total, seen = torch.ones(100), torch.zeros(1), torch.zeros(1)
    tuned_increment[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, total, seen, 100)
    assert torch.equal(x, torch.full((100,), 2.0))
    assert total.item() == 100
    assert seen.item() == 128


@triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["n"])})
@triton.jit
def heuristic_copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def heuristics_choose_from_the_arguments() -> None:
    x = torch.randn(100)
    out = torch.empty_like(x)
    heuristic_copy[(1,)](x, out, 100)
    assert torch.equal(out, x)


def the_driver_says_that_there_are_three_processors_and_no_gpu() -> None:
    active = driver.active
    assert active.get_active_torch_device() == torch.device("cpu")
    assert active.get_current_target().backend == "cpu"
    assert processors_of(active) == 3


def processors_of(active: Any) -> int:
    return int(active.utils.get_device_properties(active.get_current_device())["multiprocessor_count"])


@triton.jit
def neighbours_word(words_ptr, out_ptr, DISTANCE: tl.constexpr):
    """Each program waits for what another one sends, which may start later."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    tl.atomic_xchg(words_ptr + program, program + 1)
    word = 0
    while word == 0:
        word = tl.atomic_add(words_ptr + (program + DISTANCE) % programs, 0)
    tl.store(out_ptr + program, word * 10 + tl.program_id(0))


def a_file_whose_kernels_wait_finds_room_for_their_programs() -> None:
    file = types.ModuleType("file")
    vars(file)["copy"] = heuristic_copy.fn
    make_room_to_wait(file)
    assert processors_of(driver.active) == 3
    vars(file)["wait"] = neighbours_word
    try:
        make_room_to_wait(file)
        assert processors_of(driver.active) > 3
    finally:
        InterpreterDriver.multiprocessors = 3


def programs_may_wait_for_earlier_and_later_ones() -> None:
    for distance in (1, 4):
        words, out = torch.zeros(5, dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
        neighbours_word[(5,)](words, out, distance)
        assert out.tolist() == [((i + distance) % 5 + 1) * 10 + i for i in range(5)]


@triton.jit
def failing_neighbour(words_ptr, out_ptr, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    tl.device_assert(program < PROGRAMS - 1, "the last program fails")
    while tl.atomic_add(words_ptr, 0) == 0:
        pass
    tl.store(out_ptr, 1.0)


def a_program_that_fails_ends_those_that_wait_for_it() -> None:
    threads, out = threading.active_count(), torch.zeros(1)
    words = torch.zeros(1, dtype=torch.int32)
    assert "the last program fails" in refusal(failing_neighbour[(3,)], words, out, 3)
    assert out.item() == 0.0
    assert threading.active_count() == threads


def nothing_can_be_timed() -> None:
    assert "cannot time" in refusal(driver.active.get_benchmarker)


@triton.jit
def asserting(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-1.0)
    tl.device_assert(x >= 0, "x is negative", mask=i < n)


def device_assert_fires_on_active_lanes_only() -> None:
    asserting[(1,)](torch.ones(6), 6, 8)
    assert "x is negative" in refusal(asserting[(1,)], torch.tensor([1.0, -1.0, 1.0]), 3, 4)


@triton.jit
def singular(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, 1.0 / x + tl.log(x) + tl.exp(x * 1e4) + tl.sqrt(x))


def singular_values_raise_no_warning() -> None:
    x = torch.tensor([0.0, -1.0, float("inf"), float("nan")])
    out = torch.empty_like(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        singular[(1,)](x, out, 4)
    torch.testing.assert_close(out, 1 / x + x.log() + (x * 1e4).exp() + x.sqrt(), equal_nan=True)


@triton.jit
def tiled_by_descriptor(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    for j in range(tl.cdiv(N, COLUMNS)):
        out.store([0, j * COLUMNS], x.load([0, j * COLUMNS]) * 2)


def descriptors_made_in_the_kernel_load_and_store_tiles() -> None:
    x = torch.randn(10, 48).bfloat16()
    out = torch.zeros_like(x)
    tiled_by_descriptor[(1,)](x, out, 10, 48, 16, 16)
    assert torch.equal(out, x * 2)


@triton.jit
def doubled_by_descriptor(x, out):
    out.store([0, 0], x.load([0, 0]) * 2)


def descriptors_made_by_the_host_load_and_store_tiles() -> None:
    x = torch.randn(16, 16)
    out = torch.zeros_like(x)
    doubled_by_descriptor[(1,)](
        TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(out, [16, 16])
    )
    assert torch.equal(out, x * 2)


@triton.jit
def tiled_by_block_pointer(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    for _ in range(tl.cdiv(N, COLUMNS)):
        tl.store(out, tl.load(x, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))
        x = tl.advance(x, (0, COLUMNS))
        out = tl.advance(out, (0, COLUMNS))


def block_pointers_work_where_triton_still_has_them() -> None:
    if not hasattr(tl, "advance"):
        return
    x = torch.randn(10, 50)
    out = torch.zeros_like(x)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="tl.make_block_ptr is deprecated")
        tiled_by_block_pointer[(1,)](x, out, 10, 50, 16, 16)
    assert torch.equal(out, x * 2)
