"""Real kernels, compiled for GPUs that are not here."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.hardware.architectures import ARCHITECTURES, architecture
from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.inspect.compiling import alternative
from pytorch_to_triton.inspect.pages import PAGE_LINES
from pytorch_to_triton.places import shipped
from pytorch_to_triton.schema.compiled import InspectedKernel, Inspection

from ..validate.kernel_files import corpus_file
from .conftest import Inspecting

pytestmark = pytest.mark.anyio
KERNELS = Path(__file__).with_name("kernels")
HONEST = Path(__file__).parents[1] / "kernels" / "honest"
SOFTMAX = shipped("reference_kernels") / "softmax.py"
SMALL = Options(dims={"M": "8", "N": "1024"})


def only(inspection: Inspection) -> InspectedKernel:
    (kernel,) = inspection.kernels
    return kernel


def kinds(kernel: InspectedKernel) -> set[str]:
    return {remark.kind for remark in kernel.remarks}


@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.corpora), "sm_90", "gfx942"])
async def test_a_reference_kernel_compiles_for_a_gpu_that_is_not_here(
    inspecting: Inspecting, arch: str
) -> None:
    inspection = await inspecting(SOFTMAX, arch, options=SMALL)
    kernel = only(inspection)
    assert kernel.compiled.resources is not None
    assert kernel.instructions is not None
    assert kernel.occupancy is not None
    assert inspection.verdict == "compiled"
    assert inspection.dims == {"M": 8, "N": 1024}
    assert kernel.compiled.file == SOFTMAX
    assert SOFTMAX.read_text().splitlines()[kernel.compiled.line - 1].startswith("def softmax")
    assert 8 <= kernel.compiled.resources.registers <= 255
    assert kernel.compiled.resources.spill_store_bytes == 0
    assert {(access.kind, access.bits) for access in kernel.instructions.accesses} == {
        ("load", 128),
        ("store", 128),
    }
    assert 0 < kernel.occupancy.share <= 1
    assert "compiled: by Triton" in inspection.provenance
    assert kernel.compiled.texts["ttgir"].read_text().startswith("#")


async def test_amds_own_assembler_agrees_on_what_registers_allow(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS / "asks_the_gpu.py", "gfx942")
    for kernel in inspection.kernels:
        said = re.search(r"; Occupancy: (\d+)", kernel.compiled.texts["amdgcn"].read_text())
        assert said is not None
        assert kernel.occupancy is not None
        warps = kernel.occupancy.blocks_by["registers"] * kernel.compiled.num_warps
        assert warps == int(said[1]) * architecture("gfx942").schedulers


async def test_each_configuration_of_an_autotuned_kernel_is_compiled(inspecting: Inspecting) -> None:
    inspection = await inspecting(HONEST / "autotuned_swiglu.py", "sm_90")
    assert [kernel.label for kernel in inspection.kernels] == [f"swiglu_kernel#{n}" for n in (1, 2, 3)]
    assert [kernel.compiled.configuration for kernel in inspection.kernels] == [
        "BLOCK_M=1 BLOCK_N=128 num_warps=2 num_stages=3",
        "BLOCK_M=4 BLOCK_N=64 num_warps=4 num_stages=3",
        "BLOCK_M=8 BLOCK_N=128 num_warps=8 num_stages=3",
    ]
    assert [kernel.compiled.grid for kernel in inspection.kernels] == [(40, 3), (10, 5), (5, 3)]
    assert inspection.notes == ("Also declared: bfloat16 for gate, up: name one with --input.",)


async def test_a_launch_with_other_options_stands_beside_the_one_that_is_made(
    inspecting: Inspecting,
) -> None:
    inspection = await inspecting(SOFTMAX, "sm_90", options=SMALL, what_if=({"num_warps": 16},))
    made, other = inspection.kernels
    assert (made.compiled.what_if, other.compiled.what_if) == ({}, {"num_warps": 16})
    assert made.compiled.num_warps != other.compiled.num_warps == 16
    assert made.instructions != other.instructions
    assert "what if num_warps=16: " in inspection.lines[1]
    assert "1 kernel compiled" in inspection.summary


async def test_every_configuration_is_compiled_with_another_block(inspecting: Inspecting) -> None:
    block = {"BLOCK_N": 2048}
    inspection = await inspecting(HONEST / "autotuned_swiglu.py", "sm_90", what_if=(block,))
    others = [kernel.compiled for kernel in inspection.kernels if kernel.compiled.what_if]
    assert len(others) == len(inspection.kernels) / 2 == 3
    for kernel in others:
        assert {a.value for a in kernel.arguments if a.name == "BLOCK_N"} == {2048}
        assert kernel.grid is None or kernel.grid[-1] == 1


async def test_options_that_no_launch_takes_are_refused(inspecting: Inspecting) -> None:
    with pytest.raises(BadInput, match="No kernel of this call takes WARPS"):
        await inspecting(SOFTMAX, "sm_90", options=SMALL, what_if=({"WARPS": 4},))
    for text in ("num_warps", "num_warps=x", "num_warps=4,num_warps=8", ""):
        with pytest.raises(BadInput, match="is not an option with a value"):
            alternative(text)


async def test_the_kernels_of_a_backward_pass_are_compiled_where_it_is_asked_for(
    inspecting: Inspecting, tmp_path: Path
) -> None:
    text = (HONEST / "autograd_function_silu.py").read_text(encoding="utf-8")
    file = tmp_path / "silu.py"
    file.write_text(f"{text}\n\ndef silu(x):\n    return TritonSilu.apply(x)\n", encoding="utf-8")
    options = Options(inputs={"x": "float32[M, N]"}, dims={"M": "4", "N": "64"})
    names = {
        backward: [
            kernel.compiled.name
            for kernel in (
                await inspecting(file, "sm_90", "silu", options=options, backward=backward)
            ).kernels
        ]
        for backward in (False, True)
    }
    assert names == {False: ["silu_kernel"], True: ["silu_kernel", "silu_backward_kernel"]}


async def test_configurations_over_the_limit_are_counted_in_a_note(inspecting: Inspecting) -> None:
    inspection = await inspecting(HONEST / "autotuned_swiglu.py", "sm_90", most_configurations=2)
    assert len(inspection.kernels) == 2
    assert inspection.notes[-1] == "1 of 3 autotuner configurations were not compiled."


async def test_tensor_cores_spills_and_too_much_shared_memory_are_reported(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS / "too_large.py", "sm_86")
    product, cramped = inspection.kernels
    assert product.instructions is not None
    assert product.occupancy is not None
    (matrix,) = product.instructions.matrix
    assert (matrix.name, matrix.shape, matrix.operands, matrix.accumulator) == (
        "mma.sync", "16x8x16", "f16", "f32",
    )  # fmt: skip
    assert any(access.kind == "async_copy" for access in product.instructions.accesses)
    assert product.occupancy.blocks == 0
    assert product.remarks[0].kind == "too_much_shared_memory"
    assert "sm_86 has 99 KiB" in product.remarks[0].message
    assert cramped.compiled.resources is not None
    assert cramped.compiled.resources.registers == 32
    assert cramped.compiled.resources.spill_store_bytes > 0
    assert f"spills {cramped.compiled.resources.spill_store_bytes} bytes" in cramped.remarks[0].message


async def test_a_refused_kernel_is_a_result_with_its_line_and_the_others_are_compiled(
    inspecting: Inspecting,
) -> None:
    path = KERNELS / "refused.py"
    inspection = await inspecting(path, "sm_80")
    refused, copied = inspection.kernels
    assert inspection.verdict == "refused"
    assert refused.compiled.failure is not None
    assert (refused.compiled.failure.file, refused.compiled.failure.line) == (str(path), 14)
    assert "relu_of" in refused.compiled.failure.message
    assert kinds(refused) == {"refused"}
    assert inspection.next_step == f"Fix activation_kernel at line 14 of {path}."
    assert copied.compiled.resources is not None
    assert copied.compiled.grid == (4,)


async def test_a_text_is_that_of_the_first_kernel_that_has_one(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS / "refused.py", "sm_80", text="ttir")
    assert inspection.page is not None
    assert inspection.page.kernel == "copy_kernel"
    with pytest.raises(BadInput, match=r"no ttir of activation_kernel.*relu_of"):
        await inspecting(KERNELS / "refused.py", "sm_80", text="ttir", kernel="activation_kernel")


async def test_a_call_that_raises_after_a_launch_keeps_what_was_launched(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS / "refused.py", "sm_80", "stops_after_a_launch")
    assert only(inspection).compiled.name == "copy_kernel"
    assert "RuntimeError: not converged (line 40)" in inspection.notes[0]


async def test_a_call_without_a_kernel_is_refused_with_the_reason(inspecting: Inspecting) -> None:
    for name, why in (
        ("launches_nothing", "launches no Triton kernel at N=1024"),
        ("launches_wrongly", r"missing 1 required positional argument: 'BLOCK' \(line 48\)"),
    ):
        with pytest.raises(TargetBroken, match=why):
            await inspecting(KERNELS / "refused.py", "sm_80", name)


async def test_an_address_that_is_not_aligned_makes_narrow_accesses_which_are_reported(
    inspecting: Inspecting,
) -> None:
    kernel = only(await inspecting(KERNELS / "refused.py", "sm_90", "unaligned"))
    pointer = kernel.compiled.arguments[0]
    assert (pointer.name, pointer.type, pointer.divisible_by_16) == ("x_ptr", "*fp32", False)
    assert kernel.compiled.arguments[1].divisible_by_16
    narrow = next(remark for remark in kernel.remarks if remark.kind == "narrow_access")
    assert narrow.lines == (26,)
    assert "32 bits per thread and instruction; the block of 1,024 elements would allow 128" in narrow.message
    alignment = next(remark for remark in kernel.remarks if remark.kind == "alignment_unknown")
    assert "the address x_ptr" in alignment.message


async def test_code_that_asks_for_the_gpu_is_reported_of_the_one_that_is_compiled_for(
    inspecting: Inspecting,
) -> None:
    for arch in ("sm_80", "sm_90"):
        inspection = await inspecting(KERNELS / "asks_the_gpu.py", arch)
        grids = [kernel.compiled.grid for kernel in inspection.kernels]
        assert grids[-1] == ((ARCHITECTURES[arch].sms,) if arch == "sm_90" else (1,))


async def test_a_call_without_elements_is_said_to_be_empty_before_all_else(inspecting: Inspecting) -> None:
    with pytest.raises(TargetBroken) as refusal:
        await inspecting(SOFTMAX, "sm_90", options=Options(dims={"M": "8", "N": "0"}))
    first, rest = refusal.value.message.split(". ", 1)
    assert first == "The call is empty at M=8 N=0: x holds no elements"
    assert "launches no Triton kernel" in rest


async def test_further_dtypes_are_reported_and_are_not_where_one_was_named(inspecting: Inspecting) -> None:
    inspection = await inspecting(SOFTMAX, "sm_90", options=SMALL)
    assert inspection.notes == ("Also declared: bfloat16, float16 for x: name one with --input.",)
    named = Options(dims=SMALL.dims, inputs={"x": "bfloat16[M, N]"})
    inspection = await inspecting(SOFTMAX, "sm_90", options=named)
    assert inspection.notes == ()
    assert {a.type for a in only(inspection).compiled.arguments if a.type.startswith("*")} == {"*bf16"}


async def test_a_text_that_a_gpu_does_not_have_is_refused(inspecting: Inspecting) -> None:
    for arch, kind in (("gfx942", "ptx"), ("gfx942", "sass"), ("sm_90", "amdgcn")):
        with pytest.raises(BadInput, match=f"{arch} has no {kind}"):
            await inspecting(SOFTMAX, arch, text=kind)


async def test_a_page_of_a_text_comes_with_the_result(inspecting: Inspecting) -> None:
    rows = Options(dims={"M": "8", "N": "8192"})
    inspection = await inspecting(SOFTMAX, "sm_90", options=rows, text="sass", page=2)
    assert inspection.page is not None
    assert (inspection.page.page, inspection.page.first_line) == (2, PAGE_LINES + 1)
    text = only(inspection).compiled.texts["sass"].read_text()
    assert "LDG.E.128" in text
    assert inspection.page.text == "\n".join(text.splitlines()[PAGE_LINES : 2 * PAGE_LINES])


async def test_only_the_named_kernel_and_a_known_arch_are_reported_of(inspecting: Inspecting) -> None:
    inspection = await inspecting(KERNELS / "refused.py", "sm_80", kernel="copy_kernel")
    assert only(inspection).label == "copy_kernel"
    assert inspection.verdict == "compiled"
    with pytest.raises(BadInput) as refusal:
        await inspecting(KERNELS / "refused.py", "sm_80", kernel="other")
    assert refusal.value.hint == "It launches activation_kernel, copy_kernel."
    with pytest.raises(BadInput) as refusal:
        await inspecting(SOFTMAX, "sm_77")
    assert "sm_77" in refusal.value.message
    assert "sm_90" in refusal.value.hint
    assert "gfx942" in refusal.value.hint


async def test_an_operator_of_torch_library_finds_its_tensors_on_the_gpu(
    inspecting: Inspecting, tmp_path: Path
) -> None:
    kernel = only(await inspecting(corpus_file(tmp_path, "honest/registered_operator"), "sm_90"))
    given = {argument.name: argument.value for argument in kernel.compiled.arguments}
    assert given["ON_GPU"] is True


PACKED = """

square, squared = reference, run
INPUTS = {"given": INPUTS}


def reference(given):
    return square(given["x"])


def run(given):
    return squared(given["x"])
"""


async def test_a_kernel_whose_inputs_come_in_a_dict_is_compiled(
    inspecting: Inspecting, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text((HONEST / "square.py").read_text() + PACKED)
    assert only(await inspecting(path, "sm_90")).compiled.failure is None


async def test_a_kernel_that_was_launched_during_the_import_is_compiled_all_the_same(
    inspecting: Inspecting,
) -> None:
    kernel = only(await inspecting(KERNELS / "launches_at_import.py", "sm_90"))
    assert kernel.compiled.name == "double_kernel"
    assert kernel.compiled.resources is not None
