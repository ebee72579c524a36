"""Functions whose Python needs the values of tensors are converted in parts."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import Options, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Comparing, Conversions, Resolving
from .drafting import finished_text
from .eager_calls import calls, draft_of

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parent / "functions_of_values.py"
TEXT = FILE.read_text(encoding="utf-8")
RUNS = {
    "early_return": """\
    y, condition = early_return_part_1(x)
    if condition:
        return y
    return early_return_part_2(y)""",
    "clamped_until_small": """\
    y, worst = clamped_until_small_part_1(x)
    while worst > 1:
        y, worst = clamped_until_small_part_2(y)
    return clamped_until_small_part_3(y)""",
    "squares_of_low_values": """\
    y, tensor = squares_of_low_values_part_1(x)
    kept = y[tensor]
    return squares_of_low_values_part_2(kept)""",
    "scaled_by_an_item": """\
    tensor = scaled_by_an_item_part_1(x)
    value = tensor.item()
    scale = value + 1.0
    return scaled_by_an_item_part_2(x, scale)""",
    "branch_on_the_maximum": """\
    condition = branch_on_the_maximum_part_1(x)
    if condition:
        y = branch_on_the_maximum_part_2(x)
    else:
        y = branch_on_the_maximum_part_3(x)
    return branch_on_the_maximum_part_4(y)""",
    "rows_above_zero": """\
    tensor = rows_above_zero_part_1(x)
    value = torch.nonzero(tensor)
    return rows_above_zero_part_2(value, x)""",
    "entropies_of_labels": """\
    labels = entropies_of_labels_part_1(x)
    values, counts = torch.unique(labels, return_counts=True)
    return entropies_of_labels_part_2(counts, values)""",
    "sum_until_steps_are_small": """\
    total = sum_until_steps_are_small_part_1(x)
    for i in range(5):
        total, condition = sum_until_steps_are_small_part_2(x, total, float(i), float(i + 1))
        if condition:
            break
    return sum_until_steps_are_small_part_3(total)""",
    "loop_through_dlpack": """\
    tensor = loop_through_dlpack_part_1(x)
    scale = tensor.item()
    y, step = loop_through_dlpack_part_2(x, scale)
    for _ in range(3):
        step, y = loop_through_dlpack_part_3(step, y)
        z = torch.from_dlpack(y) * 2
        y = loop_through_dlpack_part_4(y, z)
    return loop_through_dlpack_part_5(y)""",
    "sorted_to_a_number": """\
    tensor = sorted_to_a_number_part(x)
    value = tensor.item()
    kept = int(value) + 1
    return torch.sort(x.flatten()).values[:kept]""",
    "times_a_count": """\
    tensor = times_a_count_part_1(x)
    count = tensor.item()
    steps = torch.arange(x.shape[1]) * count
    return times_a_count_part_2(steps, x, float(count))""",
    "share_of_labels": """\
    y, tensor = share_of_labels_part_1(x)
    counts = torch.bincount(tensor, minlength=8)
    return share_of_labels_part_2(counts, y)""",
    "around_a_masked_mean": """\
    y, tensor = around_a_masked_mean_part_1(x)
    value = y[tensor]
    return around_a_masked_mean_part_2(y, value)""",
}
"""What `run` does in the drafts, behind its checks."""
FIRST = ("early_return", "squares_of_low_values", "entropies_of_labels", "loop_through_dlpack")
"""A branch, a mask, an operator's values, a loop with a number and what it alone reads again: the others with
the corpora."""
ALONE = {"x": "float32[M, N]"}
PAIR = {**ALONE, "y": "float32[M, N]"}
DECLARED: Mapping[str, Mapping[str, object]] = {
    "until_it_changes_little": {**ALONE, "tol": 0.01},
    "masked_loss": PAIR,
    "rows_one_by_one": ALONE,
    "three_branches": ALONE,
    "halved_until_small": ALONE,
}
"""Functions with their inputs; the first two for every change."""
InParts = Callable[..., Awaitable[CutOrigin]]


@pytest.fixture(scope="module")
def in_parts(resolved: Resolving) -> InParts:
    """A function's parts, traced once for all tests."""
    known: dict[str, CutOrigin] = {}

    async def in_parts(name: str, **inputs: object) -> CutOrigin:
        if name not in known:
            target = await resolved(Target(path=FILE, name=name), options=Options(inputs=inputs))
            origin = target.convertible()
            assert isinstance(origin, CutOrigin)
            known[name] = origin
        return known[name]

    return in_parts


def line(text: str) -> int:
    """Of the file that is converted."""
    return TEXT[: TEXT.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(FIRST, id="some"),
        pytest.param(tuple(n for n in RUNS if n not in FIRST), id="others", marks=pytest.mark.corpora),
    ],
)
async def test_functions_that_need_values_become_kernels_between_what_stays_python(
    names: Sequence[str], in_parts: InParts, compared: Comparing, tmp_path: Path
) -> None:
    runs, drafts = {}, []
    for name in names:
        origin = await in_parts(name)
        files = []
        for stage in (1, 3):
            files.append(tmp_path / f"{name}_{stage}.py")
            files[-1].write_text(origin.drafted(stage).text, encoding="utf-8")  # type: ignore[arg-type]
        runs[name] = files[0].read_text().rpartition("check_inputs(x=x)\n")[2].rstrip()
        points = [{"M": 1, "N": 1}, {"M": 7, "N": 33}, {"M": 32, "N": 64}]
        given = [call for scale in (0.02, 1.0, 20.0) for call in calls(origin.declaration, points, scale)]
        target = Target(path=FILE, name=name)
        drafts.append(draft_of(name, target, [str(file) for file in files], given))
    assert runs == {name: RUNS[name] for name in names}
    assert await compared(*drafts) == {name: [] for name in names}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([*DECLARED][:2], id="some"),
        pytest.param([*DECLARED][2:], id="others", marks=pytest.mark.corpora),
    ],
)
async def test_sizes_numbers_and_masks_pass_from_part_to_part(
    names: Sequence[str], in_parts: InParts, compared: Comparing, tmp_path: Path
) -> None:
    drafts = []
    for name in names:
        origin = await in_parts(name, **DECLARED[name])
        file = tmp_path / f"{name}.py"
        file.write_text(origin.drafted(3).text, encoding="utf-8")
        points = [{"M": 1, "N": 1}, {"M": 7, "N": 33}]
        given = [call for scale in (0.1, 4.0) for call in calls(origin.declaration, points, scale)]
        drafts.append(draft_of(name, Target(path=FILE, name=name), [str(file)], given))
    assert await compared(*drafts) == {name: [] for name in names}


async def test_the_parts_are_told_with_their_lines_and_those_that_need_values(
    in_parts: InParts,
) -> None:
    origin = await in_parts("early_return")
    first = line("y = torch.relu")
    assert origin.cut.notes == (
        f"Kernels compute 2 parts: lines {first} to {first + 1}, {first + 3} to {first + 4}; "
        f"line {first + 1} of the function needs values, and stays Python.",
    )
    shared = await in_parts("entropies_of_labels")
    drafted = shared.drafted(1)
    assert drafted.calls == ("aten._unique2.default",)
    unique = line("torch.unique(labels")
    assert drafted.left == (f"`aten._unique2` (line {unique}): it stands between the parts",)


async def test_what_cannot_be_traced_is_a_statement_of_its_own_with_the_reason(
    in_parts: InParts,
) -> None:
    origin = await in_parts("loop_through_dlpack")
    *_, left = origin.drafted(1).left
    assert left.startswith(f"line {line('torch.from_dlpack')}: ")
    assert "cannot be traced: Cannot access data pointer" in left


async def test_where_nothing_is_left_to_draft_the_refusal_names_the_line_and_a_way(
    resolved: Resolving,
) -> None:
    with pytest.raises(NotConvertible) as refusal:
        (await resolved(Target(path=FILE, name="only_values"))).convertible()
    needing = line("return torch.unique(x)")
    assert f"needs the values of tensors in line {needing}, and between them nothing is left" in (
        refusal.value.message
    )
    assert "torch.where(x > 0, x, 0)" in refusal.value.hint
    assert "`convert start`" in refusal.value.hint


async def test_gradients_are_refused_with_what_is_converted_without_them(
    resolved: Resolving,
) -> None:
    with pytest.raises(NotConvertible, match="gradients are drafted for functions that") as refusal:
        (await resolved(Target(path=FILE, name="scaled_by_an_item"), backward=True)).convertible()
    assert re.search(r"without backward \(2 parts: lines \d+, \d+\)", refusal.value.hint)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.corpora) for n in ("scaled_by_an_item", "clamped_until_small")]
)
async def test_a_function_in_parts_is_right_by_its_own_tests(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path, name: str
) -> None:
    options = parse_options(["x=float32[N] in -8..8"], ["N=5"])
    finished_text(await resolved(Target(path=FILE, name=name), options=options), tmp_path)
    outcome = await run_tests(worker, tmp_path / f"test_{name}_triton.py", interpreter, seconds=300)
    assert outcome.passed, outcome


@pytest.mark.corpora
async def test_all_stages_of_a_function_in_parts_are_validated(converted: Conversions) -> None:
    options = parse_options(["x=float32[N] in -8..8"], ["N=5"])
    conversion = await converted(Target(path=FILE, name="scaled_by_an_item"), options)
    assert conversion.verdict == "converted", conversion.summary
    assert "stays Python" in conversion.notes[0]
