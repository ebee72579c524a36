"""A session has sizes that matter: its drafts are compiled, and on a device tuned and timed, at these."""

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.finish import FinishRequest, benchmark_request, finish
from pytorch_to_triton.convert.session.start import start
from pytorch_to_triton.convert.session.store import open_session
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import command

from ...conftest import Written
from . import files
from .conftest import Starting, Submitting
from .kept import setting_of
from .silent import Silent

pytestmark = pytest.mark.anyio


async def test_sizes_are_named_at_the_start_replaced_at_a_submission_and_measured_in_the_end(
    worker: WorkerClient, interpreter: Runtime, written: Written, submitted: Submitting, tmp_path: Path
) -> None:
    setting = setting_of(written(files.DOUBLED), "N=4096", "N=129").model_copy(
        update={"options": parse_options([], ["M=3,5"])}
    )
    began = await start(worker, setting, tmp_path / "session", interpreter)
    folder = open_session(began.session)
    assert began.at == ("M=5,N=129", "M=5,N=4096")
    assert "largest declared sizes: M=5" in " ".join(began.notes)
    assert began.understood.work.count("bytes") == 2
    assert "at M=5 N=4096: 163,840 bytes" in began.understood.work

    step = await submitted(folder)
    assert step.verdict == "opened"
    compiled = [note for note in step.notes if note.startswith("Compiled for sm_90 at ")]
    assert len(compiled) == 2
    assert "at M=5 N=4096: f_kernel " in compiled[1]
    assert all("registers, 0 B spilled" in note for note in compiled)
    (compiles,) = (c for c in folder.attempts()[-1].conditions if c.name == "compiles")
    assert "sm_90 at M=5 N=129: f_kernel" in compiles.evidence
    verdict = folder.validation(folder.attempts()[-1])
    assert verdict is not None
    assert {skip.what for skip in verdict.skipped if "on a GPU alone" in skip.why} == {
        "M=5 N=129",
        "M=5 N=4096",
    }

    step = await submitted(folder, files.AUTOTUNED, "M=64,N=512")
    assert step.verdict == "opened"
    assert session_of(folder).at == ("M=64,N=512",)
    assert [note.partition(":")[0] for note in step.notes if note.startswith("Compiled")] == [
        "Compiled for sm_90 at M=64 N=512"
    ]
    assert "Sizes that matter: M=64,N=512" in session_of(folder).summary

    target = await resolve(worker, folder.record().setting, interpreter)
    request = benchmark_request(folder, target, folder.file(1), FinishRequest())
    assert (request.points, dict(request.options.dims)) == (({"M": 64, "N": 512},), {})
    finished = await finish(worker, folder, FinishRequest(into=tmp_path / "into"), interpreter, Silent())
    assert finished.verdict == "finished"
    written_files = {file.path.name: file.path.read_text(encoding="utf-8") for file in finished.files}
    assert '{"M": 64, "N": 512}' in written_files["bench_f_triton.py"]
    assert "sm_90 at M=64 N=512: double_kernel" in written_files["f_triton_report.md"]


async def test_sizes_at_which_the_target_cannot_be_called_change_nothing(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED, "M=8,N=64", options=parse_options([], [], ["N % 8 == 0"]))
    for text, words in (("M=8,N=9", "N % 8 == 0 does not hold"), ("K=8", "no input uses K")):
        with pytest.raises(BadInput, match=words):
            await submitted(folder, None, text)
    assert session_of(folder).at == ("M=8,N=64",)
    assert folder.attempts() == ()


ROWS = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [40]}


def f(x):
    return torch.softmax(x, -1)
"""


async def test_a_draft_that_nobody_changed_is_drafted_again_for_other_sizes(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(ROWS, "M=8,N=64")
    await submitted(folder)
    small = folder.file(2).read_text(encoding="utf-8")
    step = await submitted(folder, None, "M=8,N=20000")
    assert "stage2_optimised.py is drafted again, for these sizes." in step.notes
    assert folder.text(folder.attempts()[-1]) != small
    assert any(note.startswith("Compiled for sm_90 at M=8 N=20000: ") for note in step.notes)


CALLS = """
import torch
from target import f


def often():
    for rows in (512, 512, 7):
        f(torch.ones(rows, 64))
"""


async def test_the_sizes_of_an_example_s_calls_matter_unless_others_are_named(
    worker: WorkerClient, interpreter: Runtime, written: Written, tmp_path: Path
) -> None:
    target = written("\n\ndef f(x):\n    return 2.0 * x + 1.0\n")
    calls = tmp_path / "calls.py"
    calls.write_text(CALLS, encoding="utf-8")
    example = Target(path=calls, name="often")
    for number, (named, at) in enumerate([((), ("M=7", "M=512")), (("M=99",), ("M=99",))]):
        into = tmp_path / f"session{number}"
        began = await start(worker, setting_of(target, *named, example=example), into, interpreter)
        assert began.at == at
        setting = open_session(began.session).record().setting
        again = shlex.split(command(setting.validation_of(target, 1), interpreter, 7, None))
        dims = [given for option, given in pairwise(again) if option == "--dim"]
        assert parse_options([], dims).dims == setting.options.dims != {}
