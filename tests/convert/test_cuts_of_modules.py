"""Modules whose forward needs the values of tensors are converted in parts."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.resolve import ResolvedTarget
from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Comparing, Resolving
from .drafting import finished_text
from .eager_calls import calls, draft_of

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parent / "modules_of_values.py"
RUNS = {
    "Gated": """\
    h, condition = gated_part_1(x, norm_weight, norm_bias, layers_0_weight, layers_0_bias, \
layers_1_weight, layers_1_bias)
    if condition:
        h = gated_part_2(h)
    else:
        h = gated_part_3(h)
    return gated_part_4(h, head_weight, head_bias)""",
    "Scaled": """\
    tensor = scaled_part_1(x)
    value = tensor.item()
    place = int(value)
    view = limit[place]
    return scaled_part_2(view, x, gain, weight)""",
}
"""What `run` does in the drafts, behind its checks."""
CLASSES = {
    "Experts": "        best, chosen, out = experts_part_1(x, self.gate.weight)\n",
    "Counted": "        tensor = super(Counted, self)\n",
    "Tabled": "        h, tensor = tabled_part_1(x)\n",
}
"""How `forward` of the class in the drafts begins, where statements need the module."""


@pytest.fixture
def in_file(resolved: Resolving) -> Resolving:
    async def in_file(name: str, *inputs: str, backward: bool = False) -> ResolvedTarget:
        target = Target(path=FILE, name=name)
        return await resolved(target, options=parse_options(inputs, []), backward=backward)

    return in_file


async def test_parameters_and_buffers_are_inputs_of_the_parts(
    in_file: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    runs, drafts = {}, []
    for name in RUNS:
        target = await in_file(name)
        file = tmp_path / f"{name}.py"
        file.write_text(target.convertible().drafted(1).text, encoding="utf-8")
        runs[name] = file.read_text().rpartition("def run(")[2].partition("    check_inputs(")[2]
        points = [{"M": 1}, {"M": 7}, {"M": 33}]
        given = [call for scale in (0.1, 4.0) for call in calls(target.declaration, points, scale)]
        drafts.append(draft_of(name, target.target, [str(file)], given))
    assert {name: text.partition(")\n")[2].rstrip() for name, text in runs.items()} == RUNS
    assert await compared(*drafts) == {name: [] for name in RUNS}


async def test_what_needs_the_module_stays_in_a_class_that_inherits_from_it(
    in_file: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    drafts = []
    for name, beginning in CLASSES.items():
        target = await in_file(name)
        file = tmp_path / f"{name}.py"
        file.write_text(target.convertible().drafted(3).text, encoding="utf-8")
        head = f"class {name}InParts({name}):\n"
        forward = file.read_text().partition(head)[2].partition("    def forward(self, x):\n")[2]
        assert forward.startswith(beginning)
        given = calls(target.declaration, [{"M": 1}, {"M": 7}, {"M": 33}])
        drafts.append(draft_of(name, target.target, [str(file)], given))
    assert await compared(*drafts) == {name: [] for name in CLASSES}


async def test_parts_keep_the_declared_dims_in_every_declared_dtype(
    in_file: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    target = await in_file("Centred", "x=float32|bfloat16[M,8]")
    origin = target.convertible()
    assert isinstance(origin, CutOrigin)
    shapes = [spec.shape for p in origin.cut.parts for spec in p.outline.declaration.tensors().values()]
    assert shapes == [("M", "8")] * 3
    assert origin.drafted(1).left == ()
    file = tmp_path / "centred.py"
    file.write_text(origin.drafted(3).text, encoding="utf-8")
    given = calls(target.declaration, [{"M": 1}, {"M": 33}])
    draft = draft_of("centred", target.target, [str(file)], given)
    assert await compared(draft) == {"centred": []}


async def test_gradients_are_refused_with_a_way_that_works(in_file: Resolving) -> None:
    with pytest.raises(NotConvertible, match="gradients are drafted for functions that") as refusal:
        (await in_file("Gated", backward=True)).convertible()
    assert "Convert it without backward (4 parts: lines " in refusal.value.hint
    assert len((await in_file("Gated")).convertible().drafted(1).kernels) >= 4


@pytest.mark.parametrize("name", ["Scaled", pytest.param("Experts", marks=pytest.mark.corpora)])
async def test_a_module_in_parts_is_right_by_its_own_tests(
    in_file: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path, name: str
) -> None:
    text = finished_text(await in_file(name), tmp_path)
    assert f"class {name}Triton({name}):" in text
    outcome = await run_tests(worker, tmp_path / f"test_{name.lower()}_triton.py", interpreter, seconds=300)
    assert outcome.passed, outcome
