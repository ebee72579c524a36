"""What is remarked, and what is not."""

from typing import Any

from pytorch_to_triton.hardware.architectures import architecture
from pytorch_to_triton.inspect.occupancy import occupancy_of
from pytorch_to_triton.inspect.remarks import KernelReading, remarks_on
from pytorch_to_triton.inspect.ttgir import BlockAccess, Dot, Loop, ShortSum
from pytorch_to_triton.schema.compiled import (
    Bound,
    Estimate,
    Instructions,
    MatrixInstruction,
    MemoryInstruction,
)

from .compiled import NOTHING_USED, argument, compiled, resources

MATRIX = MatrixInstruction(name="mma.sync", shape="16x8x16", operands="f16", accumulator="f32", count=1)


def reading(arch: str = "sm_90", **changed: Any) -> KernelReading:
    """A kernel of 4 warps about which there is nothing to say, but for what is changed."""
    gpu = architecture(arch)
    used = resources(**{name: changed[name] for name in NOTHING_USED.keys() & changed.keys()})
    instructions = Instructions(
        accesses=changed.get("accesses", ()),
        matrix=changed.get("matrix", ()),
        tma_loads=changed.get("tma_loads", 0),
        tma_stores=0,
        atomics=0,
        barriers=0,
        local_accesses=0,
    )
    read = {name: changed.get(name, ()) for name in ("blocks", "loops", "dots", "sums", "float_atomics")}
    read["estimate"] = changed.get("estimate")
    kernel = compiled(resources=used, arguments=changed.get("arguments", ()))
    return KernelReading(kernel, used, gpu, instructions, occupancy_of(used, 4, gpu), **read)


def times(binds: Bound | None, **us: float) -> Estimate:
    """An estimate with these microseconds."""
    return Estimate.model_validate(
        {"gpu": "H200", "waves": 1, "least_bytes": 0, "us": us, "binds": binds, "sentence": ""}
    )


def load(bits: int, line: int = 7) -> MemoryInstruction:
    return MemoryInstruction(kind="load", bits=bits, count=1, lines=(line,))


NARROW = {"accesses": (load(32),), "blocks": (BlockAccess("load", 1024, 32, 7),)}
SILENT: list[dict[str, Any]] = [
    {},
    {"accesses": (load(128),), "blocks": (BlockAccess("load", 1024, 32, 7),)},
    {"accesses": (load(32),), "blocks": (BlockAccess("load", 128, 32, 7),)},  # an element a thread
    {"accesses": (load(32),), "blocks": (BlockAccess("load", 16, 32, 7),)},
    {"accesses": (load(32, line=9),), "blocks": (BlockAccess("load", 1024, 32, 7),)},  # of another line
    {"dots": (Dot("f16", "", 7),), "matrix": (MATRIX,)},
    {"loops": (Loop(5, (), 2),)},
    {"loops": (Loop(5, (6,), 0),), "tma_loads": 2},
    {"arch": "gfx942", "loops": (Loop(5, (6,), 0),)},
    {"registers": 128},  # a quarter of the warps
    {"arguments": (argument("n", "i32", 7, divisible=False),)},
    {"sums": (ShortSum("f16", 8, 7),)},  # too few terms to lose much
    {"estimate": times("memory", memory=90, issue=80)},
    {"estimate": times("issue", memory=90, issue=95)},  # about the same
    {"estimate": times("issue", memory=1, issue=3)},  # less than a launch
    {"estimate": times("tensor_cores", memory=10, issue=9, tensor_cores=100)},
    {"estimate": times(None, memory=90)},
]


def test_nothing_is_said_where_nothing_stands_out() -> None:
    for changed in SILENT:
        assert remarks_on(reading(**changed)) == ()


def test_spills_are_reported_in_bytes() -> None:
    (remark,) = remarks_on(reading(spill_store_bytes=572, spill_load_bytes=552))
    assert remark.kind == "spills"
    assert "spills 572 bytes" in remark.message
    assert "reads 552 bytes back" in remark.message


def test_shared_memory_over_the_limit_comes_first_and_with_the_limit() -> None:
    remark = remarks_on(reading(shared_bytes=240 * 1024, spill_store_bytes=4))[0]
    assert remark.kind == "too_much_shared_memory"
    assert "needs 240 KiB of shared memory; sm_90 has 227 KiB" in remark.message


def test_low_occupancy_is_reported_with_all_that_bind() -> None:
    (remark,) = remarks_on(reading(registers=255))
    assert remark.kind == "low_occupancy"
    assert "12.5 %: 8 of 64 warps per SM, 2 blocks at a time" in remark.message
    assert "limited by 255 registers per thread" in remark.message
    (remark,) = remarks_on(reading(registers=255, shared_bytes=100 * 1024))
    assert "limited by 255 registers per thread and 100 KiB of shared memory per block." in remark.message


def test_a_narrow_access_is_reported_with_what_would_be_possible_and_unknown_alignments() -> None:
    (remark,) = remarks_on(reading(**NARROW))
    assert remark.kind == "narrow_access"
    assert remark.lines == (7,)
    assert remark.figures == {"bits": 32, "possible": 128}
    assert "loads 32 bits per thread and instruction" in remark.message
    assert "would allow 128" in remark.message
    store = MemoryInstruction(kind="store", bits=16, count=1, lines=(7,))
    both = {"accesses": (load(32), store), "blocks": (*NARROW["blocks"], BlockAccess("store", 1024, 32, 7))}
    of_load, of_store = remarks_on(reading(**both))
    assert of_load == remark
    assert "Line 7 stores 16 bits" in of_store.message
    arguments = (
        argument("x_ptr", "*fp32", None, divisible=False),
        argument("out_ptr", "*fp32", None, divisible=True),
        argument("n", "i32", 1001, divisible=False),
        argument("stride", "i32", 1024, divisible=True),
        argument("BLOCK", "constexpr", 1000, divisible=False),
    )
    narrow, alignment = remarks_on(reading(arguments=arguments, **NARROW))
    assert (narrow.kind, alignment.kind) == ("narrow_access", "alignment_unknown")
    assert "multiples of 16: the address x_ptr, n (1001)." in alignment.message


def test_a_float32_dot_without_tensor_cores_is_reported_with_what_would_have_them() -> None:
    (remark,) = remarks_on(reading(dots=(Dot("f32", "", 7), Dot("f32", "", 9))))
    assert remark.kind == "dot_without_tensor_cores"
    assert remark.lines == (7, 9)
    assert 'input_precision="ieee"' in remark.message
    assert '"tf32"' in remark.message


def test_a_loop_that_waits_for_its_loads_is_reported_with_both_lines() -> None:
    (remark,) = remarks_on(reading(loops=(Loop(5, (6,), 0),)))
    assert remark.kind == "loop_without_async_copies"
    assert remark.lines == (5, 6)
    assert "The loop at line 5 has 1 load and no asynchronous copies" in remark.message
    assert "The launch's num_stages does not apply to a loop without tl.dot; tl.range" in remark.message
    (remark,) = remarks_on(reading(loops=(Loop(5, (6,), 0, dots=1),)))
    assert "num_stages does not apply" not in remark.message


def test_sums_in_short_types_are_reported_with_their_terms() -> None:
    product = {"dots": (Dot("f16", "", 9, "f16"),), "matrix": (MATRIX,)}
    total, dot = remarks_on(reading(sums=(ShortSum("bf16", 64, 7),), **product))
    assert (total.kind, total.precision, total.lines) == ("low_precision_sum", "bf16", (7,))
    assert "64 terms are added in bf16" in total.message
    assert (dot.kind, dot.precision, dot.lines) == ("low_precision_sum", "f16", (9,))


def test_float32_products_in_tf32_are_reported_once() -> None:
    dots = (Dot("f32", "tf32", 7), Dot("f32", "tf32", 9), Dot("f16", "tf32", 11))
    (remark,) = remarks_on(reading(dots=dots, matrix=(MATRIX,)))
    assert (remark.kind, remark.lines) == ("tf32_product", (7, 9))
    assert "2 tl.dots of float32 operands in TF32" in remark.message


def test_float_atomics_are_reported_with_their_lines() -> None:
    (remark,) = remarks_on(reading(float_atomics=(7, 9)))
    assert (remark.kind, remark.lines) == ("float_atomics", (7, 9))
    assert "2 atomic additions of floats" in remark.message


def test_instructions_that_take_longer_than_the_memory_traffic_are_reported_with_both_times() -> None:
    (remark,) = remarks_on(reading(estimate=times("special_functions", memory=94, special_functions=120)))
    assert remark.kind == "instruction_bound"
    assert "instructions take 120 us, its memory traffic 94 us (estimated for H200)" in remark.message
    assert "bound by special functions. Have fewer" in remark.message
