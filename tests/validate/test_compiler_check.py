"""What the interpreter runs and Triton's compiler does not take, found without a GPU."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Violation
from pytorch_to_triton.validate.compiler_check import check_compiler

from ..kernels.mutations.write import Change
from .kernel_files import corpus_file, double_file
from .trials import trial_of
from .verdicts import Judge

pytestmark = pytest.mark.anyio
STORE = "    tl.store(out_ptr + index, x * 2, mask=mask)\n"
MASK = "    mask = index < n\n"
LAUNCH = "double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)"
WRONG: dict[str, tuple[Change, ...]] = {
    "break": ((STORE, f"    while True:\n        break\n{STORE}"),),
    "tl.store(out_ptr + index, late, mask=mask)": (
        (STORE, "    if n > 0:\n        late = x * 2\n    tl.store(out_ptr + index, late, mask=mask)\n"),
    ),
    "if n > 3:": ((STORE, f"    if n > 3:\n        y = x\n    else:\n        y = n\n{STORE}"),),
    "y = x * SCALE": (("BLOCK = 8", "BLOCK = 8\nSCALE = 1.0"), (STORE, f"    y = x * SCALE\n{STORE}")),
    "index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)": (("BLOCK: tl.constexpr", "BLOCK"),),
}
"""Changes to DOUBLE, by the line that the compiler names; interpreted, all values stay right."""
CONFIGS = "[triton.Config({'BLOCK': 4}), triton.Config({'BLOCK': 8})]"
RIGHT: dict[str, tuple[Change, ...]] = {
    "as it is": (),
    "a launch that depends on what a kernel computed": (
        (LAUNCH, f"{LAUNCH}\n        {LAUNCH.replace('=BLOCK', '=8 if out.equal(x * 2) else 7')}"),
    ),
    "a wrapper that fails before it launches": (("x = x.contiguous()", "x = x.contiguous().unknown"),),
    "a configuration that is asserted away": (
        ("@triton.jit", f"@triton.autotune({CONFIGS}, key=['n'])\n@triton.jit"),
        (MASK, f"{MASK}    tl.static_assert(BLOCK > 4)\n"),
        (LAUNCH, "double_kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, out, x.numel())"),
    ),
}
"""Changes to DOUBLE of which the compiler has nothing to say, by what they are."""


async def refused(worker: WorkerClient, path: Path, runtime: Runtime) -> Sequence[Violation]:
    found: list[Violation] = []
    async with trial_of(worker, Target(path=path), runtime) as (trial, case):
        await trial.reference.stage(trial.candidate.target, trial.candidate.name)
        await check_compiler(trial, [case], found)
    return found


async def test_a_kernel_that_does_not_compile_is_refused_with_the_compilers_line_and_words(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    for line, changes in WRONG.items():
        path = double_file(tmp_path, *changes)
        (violation,) = await refused(worker, path, interpreter)
        assert (violation.kind, violation.file) == ("does_not_compile", str(path))
        assert violation.line is not None
        assert path.read_text().splitlines()[violation.line - 1].strip() == line
        assert violation.message.startswith("double_kernel does not compile (Triton ")
        assert f"line {violation.line} `{line}`: " in violation.message


async def test_what_compiles_and_what_cannot_be_known_without_a_gpu_is_not_refused(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    for what, changes in RIGHT.items():
        assert await refused(worker, double_file(tmp_path, *changes), interpreter) == [], what


async def test_right_values_of_a_kernel_that_does_not_compile_are_no_pass(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = await judge(corpus_file(tmp_path, "wrong/leaves_its_loop_by_break"), limit_elements=2**12)
    assert verdict.verdict == "failed"
    assert all(case.status == "passed" for case in verdict.cases)
    (violation,) = verdict.violations
    assert "`break`: unsupported AST node type: Break" in violation.message
    assert violation.message in verdict.summary
