"""What a conversion leaves on disk: nothing after a refusal, never a kernel beside a report against it."""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.convert.conversion_report import next_step_of, summary_of
from pytorch_to_triton.convert.convert import deliver, destination_of
from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.results import MARKER
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Decision

from ..conftest import Written
from .conftest import Conversions
from .stages import stage

pytestmark = pytest.mark.anyio


def put(target: Target, into: Path, decision: Decision) -> Conversion:
    """The results of a conversion with one stage, which passed or did not."""
    with destination_of(target, into, force=False).fresh() as fresh:
        file = fresh.folder / "stage1_correct.py"
        file.write_text(decision)
        stages = (stage(1, decision).model_copy(update={"file": file}),)
        kernel = fresh.folder / "f_triton.py" if decision == "passed" else None
        conversion = Conversion(
            summary=summary_of("f", stages, ()),
            next_step=next_step_of(stages, kernel, ()),
            verdict="stopped",
            target=str(target),
            kernel=kernel,
            folder=fresh.folder,
            stages=stages,
            at=(),
            device="CPU",
            notes=(),
            provenance="measured",
            replay=f"validate {file}",
        )
        return deliver(conversion, {"f_triton.py": "passed"} if kernel else {}, fresh, "f_triton.py")


def texts(folder: Path) -> Mapping[str, str]:
    files = (p for p in folder.rglob("*") if p.is_file() and p.name != MARKER)
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in files}


def test_a_failed_conversion_leaves_no_kernel_beside_its_report(tmp_path: Path) -> None:
    target, into = Target(path=tmp_path / "f.py", name="f"), tmp_path / "results"
    assert put(target, into, "passed").kernel == into / "f_triton.py"
    failed = put(target, into, "failed")
    found = texts(into)
    assert {name for name in found if "/" not in name} == {"stage1_correct.py", "report.md", "report.json"}
    assert found["stage1_correct.py"] == "failed"
    assert "no stage passed" in found["report.md"]
    assert found["previous/f_triton.py"] == "passed"
    assert f"moved to {into / 'previous' / 'f_triton.py'}" in failed.summary
    put(target, into, "passed")
    assert "previous/f_triton.py" not in texts(into)


def test_what_is_reported_names_files_that_are_there(tmp_path: Path) -> None:
    conversion = put(Target(path=tmp_path / "f.py", name="f"), tmp_path / "results", "passed")
    assert conversion.folder == tmp_path / "results"
    assert [s.file.read_text() for s in conversion.stages] == ["passed"]
    assert conversion.replay == f"validate {tmp_path / 'results' / 'stage1_correct.py'}"
    report = (conversion.folder / "report.json").read_text(encoding="utf-8")
    assert Conversion.model_validate_json(report) == conversion


def test_a_file_without_a_named_function_lends_its_name_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = destination_of(Target(path=tmp_path / "gelu.py"), None, force=False).folder
    assert folder == tmp_path / "converted" / "gelu"


async def test_a_refusal_leaves_no_folder(converted: Conversions, written: Written, tmp_path: Path) -> None:
    target = written(
        'INPUTS = {"x": "float32[M]"}\nDIMS = {"M": [3]}\n\n\ndef f(x):\n    return x.sort().values\n'
    )
    with pytest.raises(NotConvertible):
        await converted(target, into=tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


async def test_a_folder_of_somebody_else_is_refused_before_the_target_is_run(
    converted: Conversions, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.md").write_text("mine")
    absent = Target(path=tmp_path / "absent.py", name="f")
    with pytest.raises(BadInput, match=r"report\.md was not written by pytorch-to-triton convert"):
        await converted(absent, into=tmp_path / "mine")
    assert (tmp_path / "mine" / "report.md").read_text() == "mine"


async def test_the_report_s_command_runs_from_any_folder_for_a_target_in_a_package(
    converted: Conversions, tmp_path: Path
) -> None:
    package = tmp_path / "my project" / "ops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "consts.py").write_text("SCALE = 0.5\n")
    path = package / "act.py"
    path.write_text(
        'from ops.consts import SCALE\n\nINPUTS = {"x": "float32[N] in -4..4"}\nDIMS = {"N": [5]}\n\n\n'
        "def act(x):\n    return x * SCALE\n",
        encoding="utf-8",
    )
    conversion = await converted(Target(path=path, name="act"), into=tmp_path / "my results")
    *_, printed = (conversion.folder / "report.md").read_text(encoding="utf-8").rstrip().splitlines()
    assert printed.strip() == conversion.replay
    once = [*shlex.split(conversion.replay), "--case", "N=5"]
    ended = subprocess.run(once, cwd="/", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "The one case is right" in ended.stdout


async def test_a_kernel_of_which_no_function_can_be_made_is_there_as_it_is(
    converted: Conversions, written: Written, tmp_path: Path
) -> None:
    body = 'INPUTS = {"x": "float32[M] in -4..4"}\nDIMS = {"M": [3]}\n\n\ndef f(x, dtype=torch.float32):\n'
    conversion = await converted(written(f"{body}    return x.exp().to(dtype)\n"), into=tmp_path / "results")
    assert conversion.verdict == "converted"
    assert conversion.kernel is not None
    assert "def run(" in conversion.kernel.read_text(encoding="utf-8")
    assert any("has `run` alone" in note and "dtype" in note for note in conversion.notes)
    assert "tests" not in conversion.next_step
    assert not (tmp_path / "results" / "test_f_triton.py").exists()
