"""The check of Triton's names agrees with the compiler itself, name by name and keyword by keyword.

Runs for the installed Triton, and for those of the Pythons in PYTORCH_TO_TRITON_PYTHONS (a list as in PATH):
`make test-tritons` makes one environment each for the oldest, the usual and the newest release.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from pytorch_to_triton.triton_api.check import check
from pytorch_to_triton.triton_api.confusions import EVERY_OTHER, KEYWORDS, NAMES
from pytorch_to_triton.triton_api.history import history

PYTHONS = [sys.executable, *filter(None, os.environ.get("PYTORCH_TO_TRITON_PYTHONS", "").split(os.pathsep))]
MODULES = ("triton.language", "triton.language.math", "triton.language.extra.libdevice")
SHORT = {"triton.language.extra.libdevice": "libdevice"}
HEAD = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
ONLY_ON_AMD = {"libdevice.fast_tanhf"}
"""The interface has the name, NVIDIA's library does not."""
NO_NAME = re.compile(r"has no attribute|cannot access local|is not defined")
NO_KEYWORD = re.compile(r"unexpected keyword argument|got an unexpected keyword")
SURFACES = [history().surface(release) for release in history().releases]
each_triton = pytest.mark.parametrize(
    "python",
    [
        pytest.param(python, id=Path(python).parents[1].name, marks=[pytest.mark.corpora] * bool(number))
        for number, python in enumerate(PYTHONS)
    ],
)


@dataclass(frozen=True)
class Answers:
    """What one Triton's front end says to expressions; empty: it takes them."""

    version: str
    by_expression: dict[str, str]


@cache
def asked(python: str, expressions: tuple[str, ...]) -> Answers:
    script = Path(__file__).with_name("front_end.py")
    done = subprocess.run(
        [python, script], input=json.dumps(expressions), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    reported = json.loads(done.stdout[done.stdout.rindex('{"version"') :])
    return Answers(reported["version"], dict(zip(expressions, reported["answers"], strict=True)))


def written(path: str) -> str:
    owner, _, name = path.rpartition(".")
    short = SHORT.get(owner, owner.replace("triton.language", "tl", 1))
    return f"{short}.{name}"


def names() -> tuple[str, ...]:
    """Every name that some release has, and every one that people believe in."""
    known = {path for surface in SURFACES for path in surface.entries}
    every = {path for path in known | NAMES.keys() if path.rpartition(".")[0] in MODULES}
    return tuple(written(path) for path in sorted(every) if not path.rpartition(".")[2].startswith("_"))


def keywords() -> tuple[str, ...]:
    """Every keyword that a function of triton.language takes in some release, and every one believed in."""
    pairs = {(path, keyword) for path, rows in KEYWORDS.items() for keyword in rows if keyword != EVERY_OTHER}
    required: dict[str, int] = {}
    for surface in SURFACES:
        for path, entry in surface.entries.items():
            if entry.parameters is not None and path.rpartition(".")[0] == "triton.language":
                pairs |= {(path, keyword) for keyword in entry.keywords if not keyword.startswith("_")}
                positional = [p for p in entry.parameters if p.required and p.kind.startswith("positional")]
                required[path] = len(positional)
    return tuple(
        f"{written(path)}({', '.join([*['x'] * required[path], f'{keyword}=x'])})"
        for path, keyword in sorted(pairs)
        if path in required
    )


def complaints(expression: str, version: str) -> set[str]:
    source = f"{HEAD}@triton.jit\ndef kernel(p, x, m):\n    {expression}\n"
    return {c.fault for c in check(source, history().surface(version), history())}


@each_triton
def test_every_name_is_reported_just_where_the_compiler_lacks_it(python: str) -> None:
    answers = asked(python, names())
    assert len(answers.by_expression) > 500
    lacking = {e for e, answer in answers.by_expression.items() if NO_NAME.search(answer)} - ONLY_ON_AMD
    reported = {e for e in answers.by_expression if "unknown" in complaints(e, answers.version)}
    assert reported == lacking
    assert len(lacking) > 150


@each_triton
def test_every_keyword_is_reported_just_where_the_compiler_refuses_it(python: str) -> None:
    answers = asked(python, keywords())
    assert len(answers.by_expression) > 300
    named = {e: complaints(e, answers.version) for e in answers.by_expression}
    there = [e for e in named if "unknown" not in named[e]]
    refused = {e for e in there if NO_KEYWORD.search(answers.by_expression[e])}
    assert {e for e in there if "keyword" in named[e]} == refused
    assert len(refused) > 50


BLOCK_POINTER = "tl.make_block_ptr(p, [16], [1], [0], [16], [0])"


@each_triton
def test_what_a_release_removed_is_reported_as_the_compiler_reports_it(python: str) -> None:
    answers = asked(python, (BLOCK_POINTER,))
    removed = "removed" in complaints(BLOCK_POINTER, answers.version)
    assert removed == bool(answers.by_expression[BLOCK_POINTER])
