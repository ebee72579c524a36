"""What crosses the border between the tools and the worker: types on both sides, code on neither."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.worker import wire

ROOT = Path(__file__).parents[2]
TOOLS = [
    path
    for folder in ("tools", "server")
    for path in (ROOT / folder).rglob("*.py")
    if not path.is_relative_to(ROOT / "tools/pytorch_to_triton/worker")
]


def imported_when_run(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports outside of `if TYPE_CHECKING`, wherever it does so."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for statement in node.orelse:
                    yield from imported_when_run(statement)
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                yield from imported_when_run(node)


def test_the_tools_import_the_worker_for_type_checking_alone() -> None:
    assert len(TOOLS) > 200
    for path in TOOLS:
        imported = imported_when_run(ast.parse(path.read_text(encoding="utf-8")))
        ours = [name for name in imported if name.startswith("pytorch_to_triton.worker")]
        assert all(name.startswith("pytorch_to_triton.worker.framing") for name in ours), path


def test_the_types_import_nothing_of_the_worker() -> None:
    assert {name.partition(".")[0] for name in imported_when_run(ast.parse(inspect.getsource(wire)))} == {
        "typing"
    }


def test_each_job_takes_the_arguments_that_the_tools_pass() -> None:
    jobs = [path.stem for path in sorted(Path(wire.__file__).parent.glob("jobs/[!_]*.py"))]
    for job in jobs:
        work = importlib.import_module(f"pytorch_to_triton.worker.jobs.{job}").work
        report, *taken = inspect.signature(work).parameters
        assert report == "report", job
        name = f"{job.title().replace('_', '')}Arguments"
        passed = getattr(wire, name, None)
        described = set(inspect.get_annotations(passed)) if passed else set()
        assert set(taken) == described, f"{name} in worker/wire.py describes what job {job} takes"


def test_each_item_and_reply_has_a_tag_of_its_own() -> None:
    for union in (wire.Message, wire.ServerMessage, wire.Item):
        tags = [inspect.get_annotations(kind)["event"].__args__[0] for kind in union.__args__]
        assert len(tags) == len(set(tags)), union
