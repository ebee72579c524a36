"""A file in rules/ defines rules, under a decorator or as the rows of a table."""

from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.rule import Unconfirmed, file_rule, kernel_rule
from pytorch_to_triton.audit.source import SourceFile, SourceKernel, parse

SOURCE = b"import triton\n\n@triton.jit\ndef bad():\n    pass\n\n@triton.jit\ndef good():\n    pass\n"


@kernel_rule("high", "best practices", ("bad",), ("good",), suspected=Unconfirmed("info", ("race",)))
def named_badly(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel has a bad name.

    Nobody likes that.

    Fix: call it good.
    """
    yield Fault(kernel.node, "It may be bad.", "Look at it.", certain=kernel.node.name == "bad")


@file_rule("info", "best practices", ("bad",), ("good",))
def first_named_badly(file: SourceFile) -> Iterator[Fault]:
    """The first kernel has a bad name."""
    yield Fault(file.kernels[0].node, "It is called bad.", "Call it good.")


def test_a_rule_on_two_kinds_of_evidence_has_a_check_and_examples_for_each() -> None:
    (rule,) = (rule for rule in all_rules() if rule.name == "float_atomics")
    assert rule.evidence == ("source", "compiled")
    assert all(check.bad and check.good for check in rule.checks)


def test_what_is_certain_has_the_full_severity_where_a_rule_suspects_the_rest() -> None:
    found = list(named_badly.find(parse(Path("kernels.py"), SOURCE)))
    assert [(one.severity, one.suspected) for one in found] == [("high", False), ("info", True)]


@kernel_rule("info", "best practices", ("bad",), ("good",))
def named_twice(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel is reported for two reasons."""
    yield from (Fault(kernel.node, reason, "Rename it.") for reason in ("first", "second"))


def test_of_two_faults_at_one_place_the_first_is_reported() -> None:
    found = list(named_twice.find(parse(Path("kernels.py"), SOURCE)))
    assert [(one.line, one.message) for one in found] == [(4, "first"), (8, "first")]


def test_a_rule_on_files_reports_its_finding_once_at_its_place() -> None:
    (finding,) = first_named_badly.find(parse(Path("kernels.py"), SOURCE))
    assert (finding.rule, finding.line, finding.column) == ("first_named_badly", 4, 1)


def test_every_rule_has_a_name_of_its_own_and_examples() -> None:
    rules = all_rules()
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(check.bad for rule in rules for check in rule.checks)


def test_what_a_rule_says_begins_with_the_fault_in_one_line_and_ends_with_the_fix() -> None:
    for rule in all_rules():
        fault, why, *fix = rule.about.split("\n\n")
        assert "\n" not in fault, rule.name
        assert fault.endswith("."), rule.name
        assert why, rule.name
        assert fix[-1].startswith("Fix: "), f"the last paragraph of {rule.name} begins with 'Fix: '"
