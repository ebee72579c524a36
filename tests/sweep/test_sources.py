"""What a sweep takes for an item, read from files without importing them."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetNotFound
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.sweep.sources import items_in

KERNEL = "INPUTS = {}\n\n\ndef reference(x): ...\n\n\ndef run(x): ...\n"
PROBLEM = "class Model:\n    def forward(self, x): ...\n\n\ndef get_inputs(): ...\n"
FUNCTIONS = """
import triton

@triton.jit
def kernel(x_ptr): ...

def focal(x): ...

def _part(x): ...

class Head:
    def forward(self, x): ...

class Settings:
    size = 1
"""


def items(source: Path, *, candidates: Path | None = None) -> dict[str, SweepItem]:
    read = items_in(source, source.parent / "out", candidates=candidates, backward=False)
    return {item.key: item for item in read}


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_a_folder_holds_kernels_problems_functions_and_modules(tmp_path: Path) -> None:
    folder = write(tmp_path / "src", norms__rms=KERNEL, relu=PROBLEM, losses=FUNCTIONS, _hidden=KERNEL)
    read = items(folder)
    assert [*read] == ["losses:focal", "losses:Head", "norms/rms", "relu"]
    assert read["norms/rms"].problem is None
    assert read["relu"].candidate is None
    target = read["losses:focal"].problem
    assert target is not None
    assert (target.path, target.name) == (folder / "losses.py", "focal")


def test_candidates_answer_the_problems_of_their_names(tmp_path: Path) -> None:
    problems = write(tmp_path / "problems", level1__relu=PROBLEM)
    answers = write(tmp_path / "answers", level1__relu="class ModelNew: ...\n")
    (item,) = items(problems, candidates=answers).values()
    assert item.candidate is not None
    assert item.candidate.path == answers / "level1" / "relu.py"
    write(problems, level1__gelu=PROBLEM)
    assert items(problems, candidates=answers)["level1/gelu"].candidate is None


def test_lines_of_json_hold_paths_or_texts(tmp_path: Path) -> None:
    write(tmp_path, relu=PROBLEM)
    lines = [
        {"problem": "relu.py", "candidate": "class ModelNew:\n    pass\n", "key": "first"},
        {"problem": "relu.py:Model", "input": ["x=float32[M]"], "dim": ["M=1,7"], "backward": True},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    read = items(file)
    assert [*read] == ["first", "2"]
    assert read["first"].candidate is not None
    assert read["first"].candidate.path.read_text() == "class ModelNew:\n    pass\n"
    assert read["2"].options == parse_options(["x=float32[M]"], ["M=1,7"])
    assert read["2"].backward


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"problem": ', "line 1 is no JSON"),
        ('{"candidat": "k.py"}', "line 1 names neither a problem nor a candidate"),
        ('{"problem": "k.py", "dims": []}', "line 1: dims is no field"),
        ('{"problem": "missing.py"}', "line 1: there is no .*missing.py"),
        ('{"problem": 3}', "line 1: 3 is neither a path nor a text"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_before_anything_runs(
    tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(line)
    with pytest.raises(BadInput, match=message):
        items(file)


def test_a_source_without_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetNotFound):
        items(tmp_path / "missing")
    with pytest.raises(BadInput, match="nothing to sweep"):
        items(write(tmp_path / "empty", settings="SIZE = 1\n"))


def test_each_function_is_given_the_inputs_that_it_takes(tmp_path: Path) -> None:
    folder = write(tmp_path / "src", two="def f(x, b): ...\n\n\ndef g(x): ...\n")
    options = parse_options(["x=float32[M]", "b=float32[M]"], ["M=1,7"])
    f, g = items_in(folder, tmp_path, options, candidates=None, backward=False)
    assert [*f.options.inputs] == ["x", "b"]
    assert [*g.options.inputs] == ["x"]
    assert g.options.dims == options.dims


def test_a_changed_file_or_declaration_is_another_item_and_a_moved_file_is_not(tmp_path: Path) -> None:
    one = items(write(tmp_path / "one", relu=PROBLEM))["relu"]
    moved = items(write(tmp_path / "two", relu=PROBLEM))["relu"]
    changed = items(write(tmp_path / "three", relu=PROBLEM + "\n"))["relu"]
    assert one.digest == moved.digest != changed.digest
    declared = items_in(
        tmp_path / "one", tmp_path, parse_options(["x=float32[M]"], ["M=1"]), candidates=None, backward=False
    )
    assert declared[0].digest != one.digest
