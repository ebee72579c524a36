"""Right values are not enough: what a kernel does to memory, and leaves to PyTorch, is in the verdict."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .kernel_files import Change, body, double_file, plain_file
from .listeners import WhileRunning
from .verdicts import ANY, Judge, case, most_wrong, statuses, violations

pytestmark = pytest.mark.anyio

CASE = ("N=9",)
LOAD = "    x = tl.load(x_ptr + index, mask=mask)"
STORE = "    tl.store(out_ptr + index, x * 2, mask=mask)"
ALLOCATION = "    out = torch.empty_like(x)\n"
HEAD = "BLOCK = 8\n"


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ((LOAD, "    x = tl.load(x_ptr + index)"), "load_outside", "loads from memory outside x_ptr"),
        ((STORE, "    tl.store(out_ptr + index, x * 2)"), "store_outside", "stores to memory outside out"),
    ],
    ids=["load", "store"],
)  # fmt: skip
async def test_an_access_past_the_end_names_line_and_offset(
    change: Change, kind: str, text: str, judge: Judge, tmp_path: Path
) -> None:
    path = double_file(tmp_path, change)
    verdict = await judge(path, cases=CASE)
    assert verdict.verdict == "failed"
    found = violations(verdict)[kind]
    assert verdict.summary.startswith(f"1 of 1 case breaks the rules. For example, N=9: double_kernel {text}")
    line = path.read_text().splitlines().index(change[1]) + 1
    assert (found.file, found.line) == (str(path), line)
    assert f"line {line} `{change[1].strip()}`" in found.message
    assert "element 9 of 9 (7 lanes, first in program [1, 0, 0])" in found.message
    assert verdict.next_step.startswith("Fix: Mask the access")
    assert case(verdict, "N=9").mismatches == ()


async def test_elements_that_no_program_stores_are_unwritten(judge: Judge, tmp_path: Path) -> None:
    rounds_down = ("triton.cdiv(x.numel(), BLOCK)", "x.numel() // BLOCK")
    verdict = await judge(double_file(tmp_path, rounds_down), cases=CASE)
    _, mismatch = most_wrong(verdict)
    assert mismatch.kind == "unwritten"
    assert "in the single element [8]: never written" in verdict.summary
    assert "depends on what uninitialised memory held" in violations(verdict)["reads_uninitialised"].message


async def test_outputs_share_memory_only_where_those_of_pytorch_do(judge: Judge, tmp_path: Path) -> None:
    apart = ("return x * 2\n\n\n@", "return x * 2, (x * 2)[:1]\n\n\n@")
    together = ("return x * 2\n\n\n@", "y = x * 2\n    return y, y[:1]\n\n\n@")
    shares = body("out = double(x)", "return out, out[:1]")
    verdict = await judge(double_file(tmp_path, apart, shares), cases=CASE)
    assert verdict.verdict == "failed"
    assert violations(verdict).keys() == {"shares_memory"}
    assert "out[1] shares memory with out[0]" in verdict.summary
    assert verdict.next_step.startswith("Fix: Return out[1] in memory of its own")
    assert (await judge(double_file(tmp_path, together, shares), cases=CASE)).verdict == "passed"


# From run to run

COUNTER: tuple[Change, ...] = (
    (HEAD, f"{HEAD}calls = []\n"),
    ("x.numel(), BLOCK=BLOCK)", "x.numel(), 2 + 2.0**-21 * (len(calls) % 2), BLOCK=BLOCK)"),
    ("n, BLOCK: tl.constexpr", "n, factor, BLOCK: tl.constexpr"),
    body("calls.append(1)", "return double(x)"),
)
"""The last bits of each second call differ, within the error budget."""


async def test_bits_that_vary_without_atomics_are_refused(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(
        double_file(tmp_path, *COUNTER, (STORE, STORE.replace("x * 2", "x * factor"))), cases=CASE
    )
    assert verdict.verdict == "failed"
    assert violations(verdict).keys() == {"not_reproducible"}
    assert "out differs from run to run" in verdict.summary


async def test_bits_that_vary_with_atomics_are_noted(judge: Judge, tmp_path: Path) -> None:
    atomic = (STORE, "    tl.atomic_add(out_ptr + index, x * factor, mask=mask)")
    zeros = (ALLOCATION, ALLOCATION.replace("empty", "zeros"))
    verdict = await judge(double_file(tmp_path, *COUNTER, atomic, zeros), cases=CASE)
    assert verdict.verdict == "passed", verdict.summary
    assert "Results differ from run to run in their last bits: double_kernel uses atomics." in verdict.notes


# PyTorch in place of a kernel


async def test_an_operator_is_refused_unless_it_is_allowed_by_name(judge: Judge, tmp_path: Path) -> None:
    product = (
        ('"float32[N]"', '"float32[N, N]"'),
        ("return x * 2\n\n\n@", "return x @ x * 2\n\n\n@"),
        body("return double(x @ x)"),
    )
    path = double_file(tmp_path, *product)
    refused = await judge(path, cases=CASE)
    assert refused.verdict == "failed"
    assert refused.summary.endswith("N=9: The candidate calls aten.mm.")
    assert "--allow-torch mm" in refused.next_step
    assert not [note for note in refused.notes if "as allowed" in note]
    for name in ("mm", "aten.mm"):
        allowed = await judge(path, cases=CASE, allow_torch=frozenset({name}))
        assert allowed.verdict == "passed", allowed.summary
        assert "Computed by PyTorch, as allowed: aten.mm." in allowed.notes
    assert allowed.behavior.kernels == {"double_kernel": 1}
    assert allowed.behavior.operators["aten.mm"] == 1
    assert (await judge(path, cases=CASE, allow_torch=frozenset({"addmm"}))).verdict == "failed"


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("torch.softmax(x, 0)", ("softmax", "aten.softmax.int", "_softmax")),
        ("torch.nn.functional.layer_norm(x, x.shape)", ("layer_norm", "native_layer_norm")),
    ],
)
async def test_an_operator_is_allowed_by_the_name_that_one_calls_it_by(
    judge: Judge, tmp_path: Path, call: str, names: tuple[str, ...]
) -> None:
    path = double_file(
        tmp_path, ("return x * 2\n\n\n@", f"return {call} * 2\n\n\n@"), body(f"return double({call})")
    )
    for name in names:
        allowed = await judge(path, cases=CASE, allow_torch=frozenset({name}))
        assert allowed.verdict == "passed", allowed.summary
    assert (await judge(path, cases=CASE, allow_torch=frozenset({"mm"}))).verdict == "failed"


async def test_a_candidate_without_a_kernel_passes_only_where_anything_is_allowed(
    judge: Judge, tmp_path: Path
) -> None:
    path = plain_file(tmp_path, "return x * 2", "return x + x")
    verdict = await judge(path, cases=CASE, allow_torch=frozenset({"add"}))
    assert verdict.verdict == "failed"
    assert verdict.summary.endswith("No Triton kernel is launched.")
    assert (await judge(path, cases=CASE, allow_torch=ANY)).verdict == "passed"


async def test_torch_may_work_while_the_file_is_imported(judge: Judge, tmp_path: Path) -> None:
    table = (HEAD, "BLOCK = int(torch.arange(9).float().exp().log().max().round().item())\n")
    verdict = await judge(double_file(tmp_path, table), cases=("N=9", "N=4"))
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.violations == ()


async def test_a_setting_cannot_pass_for_what_it_was_before(judge: Judge, tmp_path: Path) -> None:
    handler = (
        HEAD,
        f"{HEAD}\n\nclass Handler:\n"
        "    def __call__(self, *arguments):\n        pass\n\n"
        "    def __repr__(self):\n        return '<built-in function default_int_handler>'\n",
    )
    imports = ("import torch\n", "import signal\nimport torch\n")
    path = double_file(
        tmp_path, imports, handler, body("signal.signal(signal.SIGINT, Handler())", "return double(x)")
    )
    verdict = await judge(path, cases=CASE)
    assert verdict.verdict == "failed"
    assert "The candidate set signal SIGINT" in verdict.summary


# What ends, and what is left out


async def test_a_process_that_ends_itself_in_a_call_is_a_crash(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(
        double_file(tmp_path, ("import torch\n", "import os\nimport torch\n"), body("os._exit(0)")),
        cases=CASE,
    )
    assert case(verdict, "N=9").status == "crashed"
    assert "ended with exit code 0 before it answered" in verdict.summary


async def test_every_case_that_was_skipped_has_a_reason(judge: Judge) -> None:
    path = Path(__file__).parents[1] / "kernels" / "honest" / "row_mean.py"
    verdict = await judge(path, limit_elements=40)
    assert verdict.verdict != "failed"
    assert verdict.skipped
    assert all(skip.what and skip.why for skip in verdict.skipped)
    assert all(result.why for result in verdict.cases if result.status != "passed")


async def test_inputs_that_were_changed_on_disk_are_found_out(
    worker: WorkerClient, interpreter: Runtime, cache: Path, tmp_path: Path
) -> None:
    def change_a_byte() -> None:
        for file in cache.glob("exchange/*/inputs/**/*.bin"):
            file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])

    request = ValidationRequest(candidate=Target(path=double_file(tmp_path)), seed=7, cases=CASE)
    verdict = await validate(worker, request, interpreter, WhileRunning(change_a_byte))
    assert verdict.verdict == "failed"
    assert "The files that hold the inputs were changed" in verdict.summary
    untouched = await validate(worker, request, interpreter)
    assert statuses(untouched) == {"passed"}


async def test_a_kernel_whose_mask_is_false_everywhere_is_wrong_and_not_said_to_be_given_nothing(
    judge: Judge, tmp_path: Path
) -> None:
    short = ("mask = index < n", "mask = index < n - 1")
    verdict = await judge(double_file(tmp_path, short), cases=("N=1",))
    assert verdict.verdict == "failed"
    assert "never written" in verdict.summary
    assert set(violations(verdict)) == {"reads_uninitialised"}


BYTES = """
import io
import pickle


def read(x):
    file = io.BytesIO()
    torch.save(x.contiguous(), file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def run(x):
    double(x)
    return double(read(x))
"""


async def test_elements_that_python_reads_past_torch_are_noise(judge: Judge, tmp_path: Path) -> None:
    path = double_file(tmp_path, ("\ndef run(x):\n    return double(x)\n", BYTES))
    verdict = await judge(path, cases=CASE)
    assert verdict.verdict == "failed"
    assert set(violations(verdict)) == {"reads_past_torch"}
    assert verdict.summary.startswith("1 of 1 case breaks the rules")


async def test_results_that_are_used_again_some_calls_later_are_found_out(
    judge: Judge, tmp_path: Path
) -> None:
    turn = "    RING.append(torch.empty_like(x) if len(RING) < 4 else RING.pop(0))\n"
    ring = f"RING = []\n\n\ndef double(x):\n{turn}"
    path = double_file(
        tmp_path,
        ("\ndef double(x):\n", ring),
        ("    x = x.contiguous()\n", ""),
        (ALLOCATION, "    out = RING[-1]\n"),
    )
    verdict = await judge(path, cases=("N=4", "N=4 called again"))
    assert "overwrites_results" in violations(verdict)
