"""Whole files with one planted fault each, by people who write kernels: each is found at its line.

corpus/unseen was written by someone who knew nothing of the rules, corpus/listed by someone who was given the
kinds of faults. faults.json has, by file, the lines at which a report is right, and the rules that tell it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.source import Kernel, SourceFile, parse
from pytorch_to_triton.schema.finding import Finding

CORPUS = Path(__file__).parent / "corpus"
PLANTED = json.loads((CORPUS / "faults.json").read_text(encoding="utf-8"))
RULES = [rule for rule in all_rules() if rule.needs in (Kernel, SourceFile)]
WEIGHTY = ("critical", "high", "medium")
each_fault = pytest.mark.parametrize("planted", PLANTED, ids=[planted["file"] for planted in PLANTED])


def found_in(planted: dict[str, Any]) -> list[Finding]:
    # Not below a folder of tests, whose code rules let be.
    file = parse(Path(planted["file"]), (CORPUS / planted["file"]).read_bytes())
    return [finding for rule in RULES for finding in rule.find(file)]


def is_told(finding: Finding, planted: dict[str, Any]) -> bool:
    return finding.rule in planted["rules"] and finding.line in planted["lines"]


def test_the_corpus_has_forty_files_a_third_of_them_by_someone_who_knew_no_rules() -> None:
    assert len(PLANTED) == len({planted["file"] for planted in PLANTED}) == 40
    assert sum(planted["file"].startswith("unseen/") for planted in PLANTED) >= 14
    assert {planted["file"] for planted in PLANTED} == {
        file.relative_to(CORPUS).as_posix() for file in CORPUS.rglob("*.py")
    }


@each_fault
def test_a_planted_fault_is_found_at_its_line(planted: dict[str, Any]) -> None:
    assert any(is_told(finding, planted) for finding in found_in(planted)), planted["fault"]


@each_fault
def test_nothing_else_that_weighs_is_found_in_the_file(planted: dict[str, Any]) -> None:
    others = [f for f in found_in(planted) if f.rule not in planted["rules"] and f.severity in WEIGHTY]
    assert others == []
