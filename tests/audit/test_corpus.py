"""Whole files with one planted fault each, by people who write kernels: each is found at its line.

corpus/unseen was written by someone who knew nothing of the rules, corpus/listed by someone who was given the
kinds of faults, corpus/tails by someone who was given kinds that had been missed: tails, maxima over padding,
precision, grids, sizes and removed names. corpus/blind has what a stranger wrote unseen and the rules of the
time did not report, and more files of each kind. faults.json has, by file, the lines at which a report is
right, the rules that report it, and the least severity. corpus/honest has what looks like those and
is right.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.source import SourceFile, SourceKernel, parse
from pytorch_to_triton.schema.finding import SEVERITIES, Finding

CORPUS = Path(__file__).parent / "corpus"
PLANTED = json.loads((CORPUS / "faults.json").read_text(encoding="utf-8"))
RULES = [rule for rule in all_rules() if rule.needs in (SourceKernel, SourceFile)]
WEIGHTY = ("critical", "high", "medium")
TUTORIALS = Path(__file__).parents[1] / "kernels" / "tutorials"
HONEST = sorted([*(CORPUS / "honest").glob("*.py"), *TUTORIALS.glob("*.py")])


FILES = sorted(CORPUS.rglob("*.py"))
FINDINGS = CORPUS / "findings.txt"
"""All that is found in the corpus, what weighs little included; REWRITE_GOLDEN=1 writes it anew."""


@cache
def found_in(file: Path) -> tuple[Finding, ...]:
    # Not below a folder of tests, whose code rules let be.
    name = file.relative_to(CORPUS) if file.is_relative_to(CORPUS) else Path(file.name)
    source = parse(name, file.read_bytes())
    return tuple(finding for rule in RULES for finding in rule.find(source))


def weight(severity: str) -> int:
    return -SEVERITIES.index(severity)


def is_reported(finding: Finding, planted: dict[str, Any]) -> bool:
    is_at_fault = finding.rule in planted["rules"] and finding.line in planted["lines"]
    return is_at_fault and weight(finding.severity) >= weight(planted.get("severity", "info"))


def test_every_file_of_the_corpus_has_its_fault_entered() -> None:
    files = {file.relative_to(CORPUS).as_posix() for file in FILES if file not in HONEST}
    assert {planted["file"] for planted in PLANTED} == files


@pytest.mark.parametrize("file", HONEST, ids=lambda file: file.stem)
def test_nothing_weighty_is_found_in_what_only_looks_like_a_fault(file: Path) -> None:
    assert [finding for finding in found_in(file) if finding.severity in WEIGHTY] == []


@pytest.mark.parametrize("planted", PLANTED, ids=[planted["file"] for planted in PLANTED])
def test_a_planted_fault_is_found_at_its_line_and_nothing_else_weighty(planted: dict[str, Any]) -> None:
    found = found_in(CORPUS / planted["file"])
    assert any(is_reported(finding, planted) for finding in found), planted["fault"]
    assert [f for f in found if f.rule not in planted["rules"] and f.severity in WEIGHTY] == []


def listed(file: Path) -> str:
    """`tails/axis_one.py: 12 program_axis_outside_grid critical`, and in backticks what to write instead."""
    found = sorted(found_in(file), key=lambda finding: (finding.line, finding.rule, finding.column))
    places = [
        f"{finding.line} {finding.rule} {finding.severity}" + f" `{finding.fix}`" * bool(finding.fix)
        for finding in found
        if finding.rule != "incomplete_kernel_file"
    ]
    return f"{file.relative_to(CORPUS).as_posix()}: {', '.join(places)}".rstrip()


def test_all_findings_in_the_corpus_are_the_known_ones() -> None:
    text = "".join(f"{listed(file)}\n" for file in FILES)
    if os.environ.get("REWRITE_GOLDEN"):
        FINDINGS.write_text(text, encoding="utf-8")
    assert text.splitlines() == FINDINGS.read_text(encoding="utf-8").splitlines()
