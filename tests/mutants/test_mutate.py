"""Mutants differ from their kernel in one place, and are known by it."""

import difflib

import pytest

from mutants.mutate import TRIPWIRE, mutants_of, selected, with_tripwire
from mutants.table import equivalents
from pytorch_to_triton import places

from ..conftest import sampled

KERNELS = places.shipped("reference_kernels")
FILES = {file.stem: file for file in KERNELS.glob("*.py")}
BASES = sorted({key.partition("/")[0] for key in equivalents()} & FILES.keys())
VECTOR_ADD = (KERNELS / "vector_add.py").read_text(encoding="utf-8")


def test_a_mutant_differs_from_its_kernel_in_the_lines_that_it_names() -> None:
    mutants = mutants_of("vector_add", VECTOR_ADD)
    assert len(mutants) > 20
    for mutant in mutants:
        changes = list(difflib.ndiff(VECTOR_ADD.splitlines(), mutant.text.splitlines()))
        removed, added = (
            " ".join(" ".join(change[2:] for change in changes if change[0] == sign).split()) for sign in "-+"
        )
        assert (removed, added) == (mutant.before, mutant.after)


def test_a_mutants_key_outlives_changes_of_other_lines() -> None:
    longer = VECTOR_ADD.replace("import triton\n", "import math\n\nimport triton\n")
    before, after = mutants_of("vector_add", VECTOR_ADD), mutants_of("vector_add", longer)
    assert [m.key for m in after] == [m.key for m in before]
    assert [m.line for m in after] == [m.line + 2 for m in before]
    assert len({m.key for m in before}) == len(before)


def test_what_serves_the_reference_alone_is_not_mutated() -> None:
    text = (
        "def checked(x):\n    return x.contiguous()\n\n\n"
        "def rounded(x):\n    return x.contiguous()\n\n\n"
        "def reference(x):\n    return rounded(checked(x))\n\n\n"
        "def run(x):\n    return checked(x)\n"
    )
    assert {m.function for m in mutants_of("base", text)} == {"checked"}


def test_a_sample_holds_all_operators_alike_and_stays_when_others_come() -> None:
    mutants = mutants_of("vector_add", VECTOR_ADD)
    operators = {m.operator for m in mutants}
    assert {m.operator for m in selected(mutants, ["*"], 1, len(operators))} == operators
    assert selected(mutants, ["mask_*"], 0, None) == sorted(
        (m for m in mutants if m.operator.startswith("mask_")), key=lambda m: m.id
    )
    some = selected(mutants, ["*"], 1, None)
    assert {m.key for m in some} <= {m.key for m in selected(mutants, ["*"], 2, None)}


def test_a_tripwire_stands_before_the_statement_that_holds_the_line() -> None:
    text = "def f(x):\n    if x:\n        g(\n            1)\n    elif y:\n        h()\n"
    assert f"        {TRIPWIRE}\n        g(\n" in with_tripwire(text, 4)
    assert f"    {TRIPWIRE}\n    if x:\n" in with_tripwire(text, 5)


@pytest.mark.parametrize("name", sampled(BASES, 4))
def test_the_equivalent_mutants_of_a_reference_kernel_exist(name: str) -> None:
    keys = {mutant.key for mutant in mutants_of(name, FILES[name].read_text(encoding="utf-8"))}
    known = [key for key in equivalents() if key.partition("/")[0] == name]
    assert [key for key in known if key not in keys] == []
