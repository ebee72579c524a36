"""A candidate finds neither the reference, nor what is expected of it, nor anybody else's tensors."""

import textwrap
from pathlib import Path

import pytest
import torch

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .kernel_files import body, double_file
from .listeners import WhileRunning
from .verdicts import Judge, case, violations

pytestmark = pytest.mark.anyio

CASE = ("N=9",)


async def test_the_reference_cannot_be_imported(judge: Judge, tmp_path: Path) -> None:
    path = double_file(tmp_path, body("from kernel import reference", "return reference(x)"))
    verdict = await judge(path, cases=CASE)
    assert case(verdict, "N=9").status == "raised"
    assert "the reference is not available while the candidate runs" in verdict.summary


async def test_the_reference_cannot_be_called_where_it_stood_beside_it(judge: Judge, tmp_path: Path) -> None:
    path = double_file(tmp_path, body("return reference(x)"))
    verdict = await judge(path, cases=CASE)
    assert case(verdict, "N=9").status == "raised"
    assert case(verdict, "N=9").reason == "reference_withheld"
    assert verdict.next_step.startswith("Fix: Compute it in a kernel")
    assert "the reference is not available while the candidate runs" in verdict.summary


async def test_the_file_that_was_named_cannot_be_opened(judge: Judge, tmp_path: Path) -> None:
    read = f"open({str(tmp_path / 'kernel.py')!r}).read()"
    verdict = await judge(double_file(tmp_path, body(read, "return double(x)")), cases=CASE)
    assert case(verdict, "N=9").status == "raised"
    assert verdict.verdict == "failed"
    refused = violations(verdict)["touches_files"]
    assert f"opens {tmp_path / 'kernel.py'}" in refused.message
    assert case(verdict, "N=9").stopped_by == refused
    assert refused.message not in verdict.summary
    assert (refused.file, refused.line) == (str(tmp_path / "kernel.py"), line_of(tmp_path, read))


async def test_an_attempt_that_is_hidden_by_the_candidate_is_reported(judge: Judge, tmp_path: Path) -> None:
    secret = repr(str(tmp_path / "kernel.py"))
    hidden = body("try:", f"    open({secret})", "except Exception:", "    pass", "return double(x)")
    verdict = await judge(double_file(tmp_path, hidden), cases=CASE)
    assert verdict.verdict == "failed"
    assert "but the rules are broken: The candidate opens" in verdict.summary
    assert verdict.summary.count("The candidate opens") == 1
    assert verdict.next_step.startswith("Fix: Use only the inputs")


async def test_the_staged_copy_that_python_shows_has_no_reference(judge: Judge, tmp_path: Path) -> None:
    shown = body("import inspect", "raise ValueError(inspect.getsource(inspect.getmodule(double)))")
    why = case(await judge(double_file(tmp_path, shown), cases=CASE), "N=9").why
    assert "return x * 2" not in why


async def test_listing_the_cache_folder_is_refused(judge: Judge, cache: Path, tmp_path: Path) -> None:
    listing = textwrap.dedent(f"""
        import os
        found = [name for _, _, names in os.walk({str(cache)!r}) for name in names]
        return double(x) if "values.json" not in found else x
    """).strip()
    verdict = await judge(double_file(tmp_path, body(*listing.splitlines())), cases=CASE)
    assert verdict.verdict == "failed"
    assert f"The candidate lists {cache}" in verdict.summary
    assert violations(verdict)["touches_files"].file == str(tmp_path / "kernel.py")


async def test_what_is_expected_lies_nowhere_while_the_candidate_runs(
    worker: WorkerClient, interpreter: Runtime, cache: Path, tmp_path: Path
) -> None:
    expected: list[bytes] = []
    disclosing: list[Path] = []

    def look() -> None:
        held = {file: file.read_bytes() for file in (cache / "exchange").rglob("*") if file.is_file()}
        inputs = [bytearray(d) for file, d in held.items() if "inputs" in file.parts and d[:1] != b"{"]
        expected.extend((2 * torch.frombuffer(d, dtype=torch.float32)).numpy().tobytes() for d in inputs)
        disclosing.extend(file for file, data in held.items() if data in expected)

    path = double_file(tmp_path, ("x * 2, mask", "x * 3, mask"))
    request = ValidationRequest(candidate=Target(path=path), seed=7, cases=("N=9", "N=4", "N=5"))
    verdict = await validate(worker, request, interpreter, WhileRunning(look))
    assert verdict.verdict == "failed"
    assert len({*expected}) >= 3
    assert disclosing == []


def line_of(folder: Path, passage: str) -> int:
    lines = (folder / "kernel.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if passage in line)
