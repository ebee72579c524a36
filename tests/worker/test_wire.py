"""What crosses the border between the tools and the worker."""

import ast
import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire import validation
from pytorch_to_triton.worker.wire.as_json import decoded, encoded
from pytorch_to_triton.worker.wire.observation import Differs, Observation, ObservedLaunch

TOOLS = Path(wire.__file__).parents[2]
JOBS = "pytorch_to_triton.worker.jobs"


def imported_by(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports, but for those beside it."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module


def test_both_sides_of_the_border_import_nothing_but_the_standard_library() -> None:
    for path in Path(wire.__file__).parent.glob("*.py"):
        imported = imported_by(ast.parse(path.read_text(encoding="utf-8")))
        assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names, path


def test_what_crosses_the_border_arrives_as_it_was_sent() -> None:
    launch = ObservedLaunch(kernel="k", file="k.py", line=3, count=1, atomics=False, python=("sorted",))
    seen = Observation(
        launches=(launch,),
        origins={"out": ("aten.mm",), "out[1]": None},
        aliases=frozenset({("out", "x"), ("out", "a")}),
        differs=Differs(paths=("out",), by="order"),
    )
    failure = wire.Failure(type="ValueError", message="no rows", traceback="", line=3)
    for item in (
        validation.ReturnedItem(case="N=4", observation=seen),
        validation.RaisedItem(case="N=4", failure=failure, observation=Observation()),
        validation.ReferenceRaisedItem(failure=failure),
        validation.PreparedItem(digest="d", aliases=frozenset({("out", "x")}), draws=True),
    ):
        sent = encoded(wire.ItemMessage(item=item))
        arrived = decoded(wire.Message, json.loads(sent))
        assert decoded(validation.ReferenceItem | validation.CandidateItem, arrived.item) == item


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}])
def test_what_json_lacks_is_refused(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        encoded(value)


def test_each_job_takes_the_arguments_that_the_tools_pass() -> None:
    for path in TOOLS.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(func=ast.Name("Job"), keywords=[ast.keyword("kind", kind), *given]):
                    work = importlib.import_module(f"{JOBS}.{ast.literal_eval(kind)}").work
                    _, *taken = inspect.signature(work).parameters
                    passed = next((each.value for each in given if each.arg == "arguments"), ast.Dict([], []))
                    if isinstance(passed, ast.Dict):
                        names = [name and ast.literal_eval(name) for name in passed.keys]
                        assert set(names) - {None} <= set(taken), path
                        assert None in names or set(names) == set(taken), path
