"""What Triton's interpreter lacks, or is too slow for, leaves a verdict open: the kernel is not at fault."""

from pathlib import Path

import pytest

from ..kernels.mutations.write import Change
from .kernel_files import body, double_file
from .verdicts import Judge

pytestmark = pytest.mark.anyio
ASSEMBLY = 'tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)'
WARM_UP = "compiled = double_kernel.warmup(x, x, x.numel(), BLOCK=BLOCK, grid=(1,))"
ON_A_GPU = "Validate on a GPU, with --device cuda"


def asking(what: str) -> Change:
    return body(WARM_UP, "compiled._init_handles()", f"assert {what}", "return double(x)")


async def test_inline_assembly_and_what_a_compiler_made_are_not_judged_without_a_gpu(
    judge: Judge, tmp_path: Path
) -> None:
    lacking = {
        "inline assembly": ("x * 2, mask=mask", f"{ASSEMBLY}, mask=mask"),
        "`asm` of a compiled kernel": asking('"ptx" in compiled.asm'),
        "function `y0f` of libdevice": ("x * 2, mask=mask", "libdevice.y0(x), mask=mask"),
    }
    imported = ("import triton\n", "import triton\nfrom triton.language.extra import libdevice\n")
    for what, change in lacking.items():
        verdict = await judge(double_file(tmp_path, imported, change), cases=("N=4", "N=9"))
        assert verdict.verdict == "undecided", what
        assert {(case.status, case.reason) for case in verdict.cases} == {("skipped", "not_interpreted")}
        assert f": the interpreter has no {what}" in verdict.summary
        assert verdict.next_step.startswith(ON_A_GPU)


async def test_what_was_seen_before_the_interpreter_had_to_give_up_is_held_against_the_kernel(
    judge: Judge, tmp_path: Path
) -> None:
    path = double_file(
        tmp_path,
        ("index < n\n", "index < n + 1\n"),
        ("x * 2, mask=mask", f"{ASSEMBLY}, mask=mask"),
    )
    verdict = await judge(path, cases=("N=4",))
    assert verdict.verdict == "failed"
    (case,) = verdict.cases
    assert (case.status, case.violations[0].kind) == ("failed", "load_outside")


async def test_a_wrapper_finds_registers_to_choose_its_grid_by_and_may_launch_what_it_warmed_up(
    judge: Judge, tmp_path: Path
) -> None:
    chosen = "programs = 65536 // (compiled.n_regs * 32) + 1000 // compiled.metadata.shared"
    launch = "compiled[(max(programs, -(-x.numel() // BLOCK)),)](x, out, x.numel(), BLOCK)"
    path = double_file(
        tmp_path,
        body("x = x.contiguous()", "out = torch.empty_like(x)", WARM_UP, chosen, launch, "return out"),
    )
    verdict = await judge(path, cases=("N=4", "N=9"))
    assert verdict.verdict == "passed", verdict.summary


async def test_more_programs_than_the_interpreter_ends_in_time_are_not_judged(
    judge: Judge, tmp_path: Path
) -> None:
    path = double_file(tmp_path, ("[4, 9]", "[4, 1_000_000]"), ("BLOCK = 8", "BLOCK = 1"))
    verdict = await judge(path, cases=("N=1000000",), seconds=10)
    assert verdict.verdict == "undecided"
    (case,) = verdict.cases
    assert case.reason == "not_interpreted"
    assert case.why.startswith("cannot be run within 10 s: the interpreter was through ")
    assert case.why.endswith(" of 1000000 programs of double_kernel")
    assert verdict.next_step.startswith(ON_A_GPU)
