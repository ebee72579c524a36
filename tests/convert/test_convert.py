"""A whole conversion: three open gates, files that stand alone, and refusals that say what is in the way."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.audit.read_source import read
from pytorch_to_triton.convert.convert import finish_files
from pytorch_to_triton.convert.stages import validate_in_order
from pytorch_to_triton.convert.work import ConversionWork, RankedWays
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Drafted
from pytorch_to_triton.draft.library import CHANNELS_LAST, PURE, Ways
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options, parse_points
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from ..conftest import Written
from .conftest import Conversions, Judging, Resolving
from .drafting import finished_text, written_drafts
from .test_conversion_report import RIGHT
from .test_conversion_report import conversion as reported

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[2] / "examples"
CONVOLUTION = """
import torch

INPUTS = {"x": "float32[B, 3, H, 8]", "w": "float32[4, 3, 3, 3]"}
DIMS = {"B": [2], "H": [5]}


def f(x, w):
    return torch.relu(torch.nn.functional.conv2d(x, w))
"""
DECLARED = 'INPUTS = {"x": "float32[M, N] in -4..4"}\nDIMS = {"M": [3], "N": [9]}\n\n\n'
FALSE_OF_DRAFTS = ("offset_may_overflow",)
"""Rules of little weight that a draft never gives a reason for."""
FUNCTIONS = {
    "channel_logsumexp": ["B=2", "S=33", "H=7"],
    "rms_norm_residual": ["M=3", "N=33"],
}


def sized(*dims: str) -> Options:
    """Fewer and smaller sizes than the example declares."""
    return parse_options([], list(dims)) if dims else NO_OPTIONS


def all_open(conversion: Conversion) -> None:
    """All three gates opened, no speed was claimed, and all files are there."""
    assert conversion.verdict == "converted", conversion.summary
    assert [s.passed for s in conversion.stages] == [True] * 3
    assert {s.speed for s in conversion.stages} == {"not measured"}
    assert all(sizes.timing is None for sizes in conversion.at)
    assert "not measured" in conversion.summary
    assert all(s.file.exists() for s in conversion.stages)
    assert (conversion.folder / "report.md").exists()
    report = json.loads((conversion.folder / "report.json").read_text(encoding="utf-8"))
    assert Conversion.model_validate(report) == conversion
    findings = [finding for file in conversion.folder.glob("*.py") for finding in read(file).findings]
    assert [f for f in findings if f.severity in ("critical", "high") or f.rule in FALSE_OF_DRAFTS] == []


async def test_one_process_traces_for_all_stages_and_the_kernel_file_validates_on_its_own(
    worker: WorkerClient, interpreter: Runtime, converted: Conversions, written: Written, tmp_path: Path
) -> None:
    target = written(DECLARED + "def f(x):\n    return torch.relu(x) * 2.0\n")
    await versions(worker, interpreter)  # Asked once, by whoever comes first.
    before = [*worker.process_times]
    kernel = (await converted(target)).kernel
    since = [process.what for process in worker.process_times if process not in before]
    jobs = sorted(what for what in since if what != "imports")
    of_stages = [*3 * ["candidate"], "describe", *3 * ["front_end"], "reference", "traffic"]
    assert jobs == of_stages
    assert kernel is not None
    alone = tmp_path / "elsewhere" / "kernel.py"
    alone.parent.mkdir()
    alone.write_text(kernel.read_text(encoding="utf-8"), encoding="utf-8")
    target.path.unlink()
    request = ValidationRequest(candidate=Target(path=alone), seed=3, cases=("M=3 N=9",))
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary


async def test_at_the_sizes_that_matter_the_kernel_is_compiled_and_its_bytes_are_counted(
    converted: Conversions, written: Written
) -> None:
    target = written(DECLARED + "def f(x):\n    return torch.relu(x) * 2.0\n")
    conversion = await converted(target, points=parse_points(["M=64,N=4096", "M=7,N=33"]))
    all_open(conversion)
    assert [sizes.dims for sizes in conversion.at] == [{"M": 7, "N": 33}, {"M": 64, "N": 4096}]
    assert [sizes.traffic.bytes_moved if sizes.traffic else 0 for sizes in conversion.at] == [
        2 * 4 * 7 * 33,
        2 * 4 * 64 * 4096,
    ]
    compiled = [note for note in conversion.notes if note.startswith("Compiled for sm_90 at ")]
    assert ["loads 128 bit" in note for note in compiled] == [False, True]
    assert "--at M=7,N=33 --at M=64,N=4096" in conversion.replay


async def test_the_sizes_that_the_kernels_serve_are_said_and_larger_ones_go_to_pytorch(
    resolved: Resolving,
) -> None:
    name, stages, notes = "rms_norm_residual", (1, 2, 3), []
    for dims in ["N=33"], ["N=33,20000"]:
        target = await resolved(Target(path=EXAMPLES / f"{name}.py", name=name), options=sized(*dims))
        drafts = [target.convertible().drafted(stage) for stage in stages]
        finished, texts = finish_files(reported(RIGHT), target, drafts, f"{name}_triton.py")
        notes += finished.notes[1:]
        refused = "N <= 16384 does not hold" in texts[f"{name}_triton.py"]
        assert refused == (dims == ["N=33"])
    served = "Kernels serve N <= 16384; larger sizes go to PyTorch. Declare a larger N to change that."
    assert notes == [served]


@pytest.mark.corpora
@pytest.mark.parametrize("name", FUNCTIONS)
async def test_an_example_is_converted_with_all_gates_open(name: str, converted: Conversions) -> None:
    all_open(await converted(Target(path=EXAMPLES / f"{name}.py", name=name), sized(*FUNCTIONS[name])))


async def test_inputs_are_taken_from_a_call_and_what_was_guessed_is_said(
    converted: Conversions, written: Written, tmp_path: Path
) -> None:
    target = written("\n\ndef f(x, shift=0.0):\n    return x * 2.0 + shift\n")
    calls = tmp_path / "calls.py"
    calls.write_text(
        "import torch\nfrom target import f\n\n\ndef main():\n    f(torch.randn(6, 40), shift=0.5)\n",
        encoding="utf-8",
    )
    conversion = await converted(target, example=Target(path=calls, name="main"))
    all_open(conversion)
    assert conversion.kernel is not None
    assert "x: [M, N]" in conversion.kernel.read_text(encoding="utf-8")
    assert [sizes.dims for sizes in conversion.at] == [{"M": 6, "N": 40}]
    assert any("M is 6 of x.shape[0]; N is 40 of x.shape[1]" in note for note in conversion.notes)


@pytest.mark.corpora
async def test_a_module_is_converted_with_its_parameters_as_arguments(converted: Conversions) -> None:
    conversion = await converted(Target(path=EXAMPLES / "module.py", name="GatedResidual"), sized("M=3"))
    all_open(conversion)
    assert conversion.kernel is not None
    text = conversion.kernel.read_text(encoding="utf-8")
    assert "def run(x, gate, norm_weight, norm_bias):" in text
    assert "functional_call" in text


@pytest.mark.corpora
async def test_the_second_stage_is_that_of_the_fastest_way_that_is_right(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    """The ranks are as a GPU's times would have them; in channels-last order what is returned is off."""
    path = tmp_path / "convolution.py"
    path.write_text(CONVOLUTION, encoding="utf-8")
    target = await resolved(Target(path=path, name="f"), seed=7)
    work = ConversionWork(worker, interpreter, None, target, tmp_path)
    ranked = RankedWays((Ways(convolutions=CHANNELS_LAST), PURE, Ways(convolutions="library")))
    drafts: dict[Stage, Drafted] = {1: work.drafted(1, PURE), 2: work.drafted(2, ranked.fastest)}
    drafted = {stage: await work.write(stage, draft) for stage, draft in drafts.items()}
    text = work.file(2).read_text(encoding="utf-8")
    assert "nhwc" in text
    work.file(2).write_text(text.replace("return out\n", "return out + 1.0\n"), encoding="utf-8")
    async with work.opened() as validation:
        reports, left = await validate_in_order(work, validation, drafted, ranked)
    assert [report.passed for report in reports] == [True, True]
    assert left.ways == ranked.ways[1:]
    assert left.notes[0].startswith(f"Not taken, as it does not pass: {ranked.fastest}, for example at ")
    assert drafted[2].ways == PURE
    assert "nhwc" not in work.file(2).read_text(encoding="utf-8")


@pytest.mark.corpora
async def test_a_convolution_that_is_wrong_in_channels_last_order_is_drafted_in_pytorchs_own(
    converted: Conversions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an H200 cuDNN multiplied in TF32 in that order alone; here, whatever is moved is off by a little."""
    path = tmp_path / "convolution.py"
    path.write_text(CONVOLUTION, encoding="utf-8")
    write = ConversionWork.write

    async def less_exact(self: ConversionWork, stage: Stage, drafted: Drafted) -> Drafted:
        await write(self, stage, drafted)
        text = self.file(stage).read_text(encoding="utf-8")
        self.file(stage).write_text(
            text.replace("x_nhwc_ptr + i, x,", "x_nhwc_ptr + i, 1.01 * x,"), encoding="utf-8"
        )
        return drafted

    monkeypatch.setattr(ConversionWork, "write", less_exact)
    all_open(await converted(Target(path=path, name="f")))
    assert "nhwc" not in (tmp_path / "converted" / "stage1_correct.py").read_text(encoding="utf-8")


async def test_a_file_with_model_and_get_inputs_is_converted_as_it_is(
    converted: Conversions, tmp_path: Path
) -> None:
    text = (EXAMPLES / "kernelbench_style.py").read_text(encoding="utf-8")
    path = tmp_path / "problem.py"
    path.write_text(text.replace("64, 1000", "3, 33"), encoding="utf-8")
    all_open(await converted(Target(path=path)))


async def test_a_project_with_tools_and_server_packages_of_its_own_is_converted(
    resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    for package, text in (
        ("tools", 'INPUTS = {"x": "float32[M, N] in -4..4"}\n'),
        ("server", 'DIMS = {"M": [3], "N": [9]}\nSCALE = 0.25\n'),
    ):
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "declared.py").write_text(text)
    path = tmp_path / "tools" / "target.py"
    path.write_text(
        "import torch\nfrom server.declared import DIMS, SCALE\n\nfrom tools.declared import INPUTS\n\n\n"
        "def f(x):\n    return torch.sigmoid(x) * SCALE\n",
        encoding="utf-8",
    )
    target = Target(path=path, name="f")
    (file,) = written_drafts((await resolved(target)).convertible(), target, tmp_path, [1])
    assert "    from server.declared import SCALE\n" in Path(file).read_text(encoding="utf-8")
    verdict = await judged(file, target)
    assert verdict.verdict == "passed", verdict.summary


async def test_a_finished_file_whose_kernels_call_libdevice_validates_under_the_interpreter(
    resolved: Resolving, judged: Judging, written: Written, tmp_path: Path
) -> None:
    target = written(DECLARED + "def f(x):\n    return torch.expm1(x)\n")
    assert "libdevice.expm1" in finished_text(await resolved(target), tmp_path)
    verdict = await judged(tmp_path / "f_triton.py", target, cases=("M=3 N=9",))
    assert verdict.verdict == "passed", verdict.summary


REFUSED = {
    "an operator without a row": (
        "def f(x):\n    return torch.mode(x, dim=-1).values\n",
        r"`aten.mode` \(line 9\): no kernel is drafted for this operator",
    ),
    "several operators": (
        "def f(x):\n    y = torch.mode(x, dim=-1).values\n    return torch.mode(y, dim=0).values\n",
        r"`aten.mode` \(line 9\), `aten.mode` \(line 10\): no kernel is drafted for this operator",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_would_all_stay_calls_is_refused_with_its_lines(
    what: str, converted: Conversions, written: Written
) -> None:
    body, message = REFUSED[what]
    with pytest.raises(NotConvertible, match=message) as refusal:
        await converted(written(DECLARED + body))
    assert refusal.value.exit_code == 4
    assert "`convert start` writes a file for its kernel" in (refusal.value.hint or "")
    assert refusal.value.hint


async def test_strict_refuses_what_would_leave_a_call_to_pytorch(
    converted: Conversions, written: Written, tmp_path: Path
) -> None:
    """The product around it would be drafted, and PyTorch would take the mode."""
    body = "import torch\n\n\ndef f(x):\n    return torch.mode(x * 2.0).values + 1.0\n"
    with pytest.raises(NotConvertible) as refusal:
        await converted(written(DECLARED + body), strict=True)
    assert str(refusal.value).startswith("f would leave calls to PyTorch: `aten.mode` (line ")
    assert "no kernel is drafted for this operator" in str(refusal.value)
    assert "--strict" in (refusal.value.hint or "")
    assert not (tmp_path / "converted").exists()
