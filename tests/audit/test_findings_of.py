"""What several kinds of evidence show of one fault is one finding."""

from pathlib import Path
from typing import Any

from pytorch_to_triton.audit.audit import merge, with_proofs
from pytorch_to_triton.schema.finding import Finding


def found(line: int, **changed: Any) -> Finding:
    fields = {"rule": "tf32_product", "severity": "medium", "category": "numerical stability"}
    place = {"file": Path("/k.py"), "line": line, "column": 1}
    words = {"message": "It rounds.", "suggestion": "Do not.", "evidence": "source"}
    return Finding(**{**fields, **place, **words, **changed})


def test_a_fault_that_source_and_compiled_code_show_is_one_finding_with_the_proof_of_the_code() -> None:
    compiled = [
        found(7, evidence="compiled", severity="low", proof="Compiled for sm_90."),
        found(7, evidence="compiled", severity="low", proof="Compiled for sm_80."),
        found(9, evidence="compiled", severity="low", proof="Compiled for sm_90."),
    ]
    first, second, third = with_proofs([found(7), found(8)], merge(compiled))
    assert (first.line, first.severity, first.evidence) == (7, "medium", "compiled")
    assert first.proof == "Compiled for sm_90.\nCompiled for sm_80."
    assert second == found(8)
    assert third == compiled[2]
