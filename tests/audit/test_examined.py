"""A kernel file that declares its inputs is compiled and run, which confirms or clears suspicions."""

from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.schema.finding import AuditReport, Finding
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Auditing

pytestmark = pytest.mark.anyio

DECLARED = 'INPUTS = {"x": "float32[M]"}\nDIMS = {"M": [40]}\n\n\ndef reference(x):\n    return x + 1\n'
KERNEL = """import torch
import triton
import triton.language as tl

DECLARED


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x + 1, mask=i < n)


def run(x):
    n = x.numel()
    out = torch.empty(n, device=x.device)
    for start in [0]:
        add_kernel[(triton.cdiv(n, PROGRAM),)](x.contiguous(), out, n, BLOCK=32)
    return out
"""
OVERREADS = KERNEL.replace("PROGRAM", "32").replace("DECLARED", DECLARED)
"""Its last block reads past the end of x; what it returns is right."""
EXACT = (
    OVERREADS.replace("triton.cdiv(n, 32)", "n // 32")
    .replace('"M": [40]', '"M": [32]')
    .replace("def reference", 'REQUIRES = ["M == 32"]\n\n\ndef reference')
)
"""The same kernel, where sizes are whole blocks."""


@pytest.fixture
def examined(read: Auditing, interpreter: Runtime, tmp_path: Path) -> Auditing:
    """Audits a file of this text as a user who names it."""

    async def choose() -> Runtime:
        return interpreter

    async def examined(text: str, **asked: Any) -> AuditReport:
        file = tmp_path / "kernel.py"
        file.write_text(text, encoding="utf-8")
        usual = {"evidence": "auto", "severity": "info", "archs": ("sm_90",)}
        return await read(file, choose=choose, **{**usual, **asked})

    return examined


def at_load(report: AuditReport) -> list[Finding]:
    return [finding for finding in report.findings if "tl.load" in finding.excerpt]


async def test_a_suspicion_that_a_run_confirms_has_its_proof_and_full_severity(examined: Auditing) -> None:
    report = await examined(OVERREADS)
    (finding,) = at_load(report)
    assert (finding.rule, finding.severity, finding.evidence) == (
        "access_without_mask",
        "critical",
        "measured",
    )
    assert not finding.suspected
    assert "x_ptr" in finding.proof
    assert report.verdict == "faulty"
    assert [(one.kind, bool(one.provenance)) for one in report.examined] == [
        ("compiled", True),
        ("measured", True),
    ]
    assert any("No GPU" in note for note in report.notes)
    assert report.compiled[0].kernel == "add_kernel"
    assert any("pytorch-to-triton validate" in command for command in report.commands)


async def test_a_suspicion_that_no_case_confirms_is_cleared(examined: Auditing) -> None:
    report = await examined(EXACT)
    assert at_load(report) == []
    assert any(
        "access_without_mask was suspected, but every case ran without it" in note for note in report.notes
    )


async def test_without_runs_a_suspicion_stays_one_and_names_the_declared_size(examined: Auditing) -> None:
    report = await examined(OVERREADS, evidence="compiled")
    (finding,) = at_load(report)
    assert (finding.evidence, finding.suspected, finding.severity) == ("source", True, "critical")
    assert finding.proof == "M = 40 in this file, which is no multiple of 32."
    assert [one.kind for one in report.examined] == ["compiled"]


async def test_inputs_may_come_with_the_call_and_a_reference_from_another_file(
    examined: Auditing, tmp_path: Path
) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(f"import torch\n\n{DECLARED}", encoding="utf-8")
    text = OVERREADS.replace(DECLARED, "").replace(
        "    x = tl.load(x_ptr + i)", "    x = tl.load(x_ptr + i, mask=i < n)"
    )
    asked = Target(path=reference, name="reference")
    report = await examined(text, reference=asked, targets=(Target(path=tmp_path / "kernel.py", name="run"),))
    assert [(one.kind, one.summary[:3]) for one in report.examined if one.kind == "measured"] == [
        ("measured", "All")
    ], report.examined
    assert (report.verdict, report.not_run) == ("clean", ())
    assert "may still be wrong" not in report.summary


async def test_a_file_that_cannot_be_called_is_audited_by_its_source_and_says_so(examined: Auditing) -> None:
    report = await examined(OVERREADS.replace("def run(x):", "def start(x):"))
    assert [finding.rule for finding in at_load(report)] == ["access_without_mask"]
    assert [(one.kind, one.summary.split(":")[0]) for one in report.examined] == [
        ("compiled", "Not compiled for sm_90"),
        ("measured", "Not run"),
    ]
