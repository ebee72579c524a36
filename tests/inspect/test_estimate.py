"""What a launch takes at least: its instructions, as counted in compiled kernels, against its bytes."""

from pathlib import Path

import pytest

from pytorch_to_triton.hardware.architectures import architecture
from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.inspect.estimate import sheet_of
from pytorch_to_triton.inspect.executed_ptx import Ran
from pytorch_to_triton.inspect.executed_sections import executed_sections
from pytorch_to_triton.inspect.sass import CodeSection
from pytorch_to_triton.places import shipped
from pytorch_to_triton.schema.compiled import Estimate, InspectedKernel

from .conftest import Inspecting

pytestmark = pytest.mark.anyio
KERNELS = Path(__file__).with_name("kernels") / "instructions.py"
M, N = 8192, 4096
MATRIX_BYTES = 4 * M * N


def estimate_of(kernel: InspectedKernel) -> Estimate:
    assert kernel.estimate is not None
    return kernel.estimate


def kinds_of(kernel: InspectedKernel) -> set[str]:
    return {remark.kind for remark in kernel.remarks}


async def test_a_copy_is_bound_by_memory_and_takes_its_bytes_at_full_bandwidth(
    inspecting: Inspecting,
) -> None:
    (kernel,) = (await inspecting(KERNELS, "H200", "copies")).kernels
    estimate = estimate_of(kernel)
    assert (estimate.gpu, estimate.binds, estimate.least_bytes) == ("H200", "memory", 2 * MATRIX_BYTES)
    assert estimate.us["memory"] == pytest.approx(2 * MATRIX_BYTES / 4800e9 * 1e6, rel=1e-3)
    assert estimate.waves == pytest.approx(M * N / 1024 / (132 * 16), rel=1e-3)
    assert estimate.sentence.startswith("estimated for H200: memory 55.9 us, instructions")
    assert estimate.sentence.endswith("bound by memory")
    assert "instruction_bound" not in kinds_of(kernel)


async def test_exponentials_are_special_functions_a_copy_has_none(inspecting: Inspecting) -> None:
    (copy,) = (await inspecting(KERNELS, "H200", "copies")).kernels
    (exponential,) = (await inspecting(KERNELS, "H200", "exponentials")).kernels
    counts = [kernel.sections[0].counts for kernel in (copy, exponential)]
    # 1024 elements on 128 threads: 8 a thread.
    assert [count.get("special_functions", 0) for count in counts] == [0, 8]
    assert "special_functions" not in estimate_of(copy).us
    clocks = 8 * 4 * -(-M * N // 1024 // 132) * 32 / 16
    assert estimate_of(exponential).us["special_functions"] == pytest.approx(clocks / 1980, rel=2e-3)


async def test_a_loop_turns_as_often_as_the_launch_says(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS, "H200", "softcapped", what_if=({"BLOCK": 512},))
    line = KERNELS.read_text().splitlines().index("    for start in range(0, n_cols, BLOCK):") + 1
    assert [[(s.line, s.turns) for s in k.sections] for k in inspection.kernels] == [
        [(None, 1), (line, N // 1024)],
        [(None, 1), (line, N // 512)],
    ]
    made = inspection.kernels[0]
    estimate = estimate_of(made)
    assert estimate.binds == "issue"
    assert estimate.us["issue"] > estimate.us["memory"]
    assert "instruction_bound" in kinds_of(made)
    assert "+ 4 x " in inspection.lines[0]
    assert "+ 8 x " in inspection.lines[1]


async def test_turns_that_differ_by_program_are_those_of_all_programs(inspecting: Inspecting) -> None:
    (kernel,) = (await inspecting(KERNELS, "sm_90", "triangle")).kernels
    # The assembler makes one turn of four, and a second loop of the rest.
    _, loop, rest = (section.turns for section in kernel.sections)
    assert loop is not None
    assert rest is not None
    assert 4 * loop + rest == (1 + 32) / 2


async def test_a_loop_that_ends_by_what_it_computes_has_no_time(inspecting: Inspecting) -> None:
    (kernel,) = (await inspecting(KERNELS, "sm_90", "until")).kernels
    estimate = estimate_of(kernel)
    assert {section.turns for section in kernel.sections} == {None}
    assert (estimate.binds, estimate.us.keys()) == (None, {"memory"})
    assert estimate.sentence.endswith("instructions not timed: how often its loops turn is not known")


async def test_of_a_table_that_is_looked_up_only_the_rows_count(inspecting: Inspecting) -> None:
    (kernel,) = (await inspecting(KERNELS, "sm_90", "looked_up")).kernels
    rows = 16 * N * 4
    assert 2 * rows <= estimate_of(kernel).least_bytes < 3 * rows < MATRIX_BYTES


async def test_a_product_is_bound_by_tensor_cores_in_whichever_order_its_tiles_come(
    inspecting: Inspecting,
) -> None:
    file = shipped("reference_kernels") / "persistent_matmul.py"
    size = "2048"
    half = {"x": "bfloat16[M,K]", "w": "bfloat16[K,N]"}
    options = Options(inputs=half, dims={"M": size, "N": size, "K": size})
    inspection = await inspecting(file, "H200", options=options, most_configurations=1)
    estimate = estimate_of(inspection.kernels[0])
    # The tiles do not come out even on 132 SMs: the last turn of some has nothing to do.
    least = 2 * 2048**3 / 989.4e12 * 1e6
    assert least <= estimate.us["tensor_cores"] <= 1.3 * least


async def test_machine_code_of_more_than_4096_instructions_is_counted_whole(inspecting: Inspecting) -> None:
    (kernel,) = (await inspecting(KERNELS, "sm_90", "long")).kernels
    (section,) = kernel.sections
    assert sum(section.counts.values()) > 4096
    # An exponential and a reciprocal for each of 8 elements a thread, 24 times.
    assert section.counts["special_functions"] == 2 * 8 * 24
    assert "EXIT" in kernel.compiled.texts["sass"].read_text()


async def test_amds_gpus_have_a_time_for_memory_alone(inspecting: Inspecting) -> None:
    (kernel,) = (await inspecting(KERNELS, "gfx942", "copies")).kernels
    assert kernel.sections == ()
    assert estimate_of(kernel).us.keys() == {"memory"}
    assert "counted for NVIDIA's GPUs alone" in estimate_of(kernel).sentence


def section(depth: int, *marks: int) -> CodeSection:
    return CodeSection(depth=depth, marks=marks, counts={"memory": 1}, bits=32, flops={})


def ran(depth: int, *marks: int, turns: float = 4) -> Ran:
    return Ran(line=7, depth=depth, marks=marks, turns=turns, share=1.0, share_of={})


def turns_of(machine: tuple[CodeSection, ...], ptx: tuple[Ran, ...]) -> list[float | None]:
    return [each.ran.turns if each.ran else None for each in executed_sections(machine, ptx)]


def test_loops_of_machine_code_are_known_by_what_they_hold_or_not_at_all() -> None:
    body = section(0, 2)
    two = (ran(0, 3), ran(1, 2), ran(1, 1, turns=9))
    assert turns_of((body, section(1, 1), section(1, 2)), two) == [4, 9, 4]
    one = (ran(0, 1), ran(1, 1, turns=11))
    for order, turns in (((1, 4), [4, 3, 2]), ((4, 1), [4, 2, 3]), ((4,), [4, 2])):
        assert turns_of((body, *(section(1, mark) for mark in order)), one) == turns
    for machine, ptx in (
        ((body, section(1, 1), section(1, 2), section(1, 8)), two),  # turns of either
        ((body,), one),  # all turns in a row
        ((body, section(2, 1)), one),
        ((body, section(1, 1), section(1, 1)), one),
        ((body, section(1, 0)), (ran(0, 0), ran(1, 0))),  # nothing to know it by
        ((body, section(1, 1)), ()),
    ):
        assert turns_of(machine, ptx) == [None] * len(machine)


def test_the_data_sheet_is_that_of_the_gpu_that_was_named_else_of_the_architectures_part() -> None:
    hopper = architecture("sm_90")
    for names, sheet in (
        (["H200"], "H200"),
        (["sm_90"], "H100 SXM"),
        (["H100"], "H100 SXM"),
        ([None], "H100 SXM"),
    ):
        known = sheet_of(names, hopper)
        assert known is not None
        assert known.name == sheet
    assert sheet_of([None], architecture("gfx1100")) is None
    a100 = sheet_of([], architecture("sm_80"))
    assert a100 is not None
    assert a100.name == "A100 80GB SXM"
