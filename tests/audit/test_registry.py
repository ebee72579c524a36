"""A file in rules/ is a rule, or is refused with all that is missing."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytorch_to_triton.audit import rules
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.registry import MalformedRule, all_rules, load, rules_in
from pytorch_to_triton.audit.source import SourceFile, SourceKernel, parse


def named_bad(kernel: SourceKernel) -> Iterator[Fault]:
    if kernel.node.name == "bad":
        yield Fault(kernel.node, "It is called bad.", "Call it good.")


def sometimes_certain(kernel: SourceKernel) -> Iterator[Fault]:
    yield Fault(kernel.node, "It may be bad.", "Look at it.", certain=kernel.node.name == "bad")


def named_badly_anywhere(file: SourceFile) -> Iterator[Fault]:
    for kernel in file.kernels:
        yield from named_bad(kernel)


def needs_nothing_known(kernel: ast.Module) -> Iterator[Fault]:
    yield from ()


def needs_too_much(kernel: SourceKernel, file: SourceFile) -> Iterator[Fault]:
    yield from ()


def module(**changes: Any) -> ModuleType:
    """A sound rule as a module, with some of its attributes changed, or left out where None."""
    made = ModuleType("rules.named_bad", "A kernel is called bad.\n\nNobody likes that.\n\nFix: be good.")
    made.__file__ = "/rules/named_bad.py"
    sound = {
        "SEVERITY": "info",
        "CATEGORY": "best practices",
        "BAD": ("@triton.jit\ndef bad(): ...\n",),
        "GOOD": ("@triton.jit\ndef good(): ...\n",),
        "check": named_bad,
    }
    vars(made).update({name: value for name, value in (sound | changes).items() if value is not None})
    return made


def test_every_file_in_the_folder_is_a_rule_of_its_name_or_a_table() -> None:
    (folder,) = rules.__path__
    files = {file.stem for file in Path(folder).glob("*.py")} - {"__init__"}
    tables = {name for name in files if name.startswith("from_")}
    rows = [row.name for name in tables for row in rules_in(import_module(f"{rules.__name__}.{name}"))]
    names = [rule.name for rule in all_rules()]
    assert names == sorted({*files - tables, *rows})
    assert len(names) >= 100


def test_a_rule_on_two_kinds_of_evidence_has_a_check_and_examples_for_each() -> None:
    (rule,) = (rule for rule in all_rules() if rule.name == "float_atomics")
    assert rule.evidence == ("source", "compiled")
    assert all(check.bad and check.good for check in rule.checks)


def test_what_is_certain_has_the_full_severity_where_a_rule_suspects_the_rest() -> None:
    suspecting = load(module(check=sometimes_certain, SUSPECTED="info", CONFIRMED_BY=("a",), SEVERITY="high"))
    source = b"import triton\n\n@triton.jit\ndef bad():\n    pass\n\n@triton.jit\ndef good():\n    pass\n"
    found = list(suspecting.find(parse(Path("kernels.py"), source)))
    assert [(one.severity, one.suspected) for one in found] == [("high", False), ("info", True)]


@pytest.mark.parametrize("check", [named_bad, named_badly_anywhere])
def test_a_rule_gets_the_evidence_that_its_annotation_names(check: Any) -> None:
    source = b"import triton\n\n@triton.jit\ndef bad():\n    pass\n\n@triton.jit\ndef good():\n    pass\n"
    (finding,) = load(module(check=check)).find(parse(Path("kernels.py"), source))
    assert (finding.rule, finding.line, finding.column) == ("named_bad", 4, 1)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"SEVERITY": None}, "SEVERITY"),
        ({"SEVERITY": "error"}, "SEVERITY"),
        ({"CATEGORY": "style"}, "CATEGORY"),
        ({"BAD": ()}, "BAD"),
        ({"GOOD": "@triton.jit"}, "GOOD"),
        ({"check": None}, "check"),
        ({"check": "named_bad"}, "check"),
        ({"check": needs_nothing_known}, "check"),
        ({"check": needs_too_much}, "check"),
        ({"__doc__": "A kernel is called bad."}, "docstring"),
        ({"SUSPECTED": "low"}, "CONFIRMED_BY"),
        ({"check_compiled": named_bad}, "BAD_COMPILED"),
    ],
)
def test_a_malformed_rule_is_refused_with_its_file_and_what_is_missing(
    changes: dict[str, Any], missing: str
) -> None:
    with pytest.raises(MalformedRule, match=rf"^/rules/named_bad\.py: missing are .*{missing}"):
        load(module(**changes))


def test_all_that_is_missing_in_a_malformed_rule_is_named_at_once() -> None:
    with pytest.raises(MalformedRule, match=r"SEVERITY .*; BAD .*; check "):
        load(module(SEVERITY=None, BAD=None, check=None))


def test_what_a_rule_says_begins_with_the_fault_in_one_line_and_ends_with_the_fix() -> None:
    for rule in all_rules():
        fault, why, *fix = rule.about.split("\n\n")
        assert "\n" not in fault, rule.name
        assert fault.endswith("."), rule.name
        assert why, rule.name
        assert fix[-1].startswith("Fix: "), rule.name
