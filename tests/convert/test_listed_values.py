"""Constants with several declared values: each is validated and drafted; what ignores one is refused."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.errors import BadDeclaration, TargetBroken
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written
from .conftest import Judging, Resolving
from .drafting import finished_text, written_drafts

SOFTCAP = (
    'INPUTS = {"x": "float32[B, D]", "cap": [30.0, 0.0]}\nDIMS = {"B": [1, 3], "D": [2, 9]}\n\n\n'
    "def f(x, cap: float = 30.0):\n"
    "    if cap > 0:\n        x = cap * torch.tanh(x / cap)\n"
    "    return torch.softmax(x, -1)\n"
)
DECLARED = 'INPUTS = {{"x": "float32[B, D]", {inputs}}}\nDIMS = {{"B": [1, 3], "D": [2, 9]}}\n\n\n'
KINDS = {
    "text, bools and None": (
        '"mode": ["silu", "gelu"], "causal": [True, False], "shift": "None|2"',
        "def f(x, mode='silu', causal=True, shift=None):\n"
        "    y = F.silu(x) if mode == 'silu' else F.gelu(x)\n"
        "    y = y.tril() if causal else y\n"
        "    return y if shift is None else y + shift\n",
        8,
    ),
    "dtypes to pass": (
        '"dtype": [torch.float16, torch.bfloat16, None]',
        "def f(x, dtype: torch.dtype | None = None):\n"
        "    return x.exp() if dtype is None else x.exp().to(dtype)\n",
        3,
    ),
    "negative numbers": ('"dim": "-1|-2"', "def f(x, dim: int):\n    return x.softmax(dim)\n", 2),
    "values and dtypes": (
        '"y": "float32|bfloat16[B, D]", "causal": [True, False]',
        "def f(x, y, causal=True):\n"
        "    y = y.exp() if y.dtype == torch.bfloat16 else y * 2.0\n"
        "    return x + y if causal else x - y\n",
        4,
    ),
    "values of one program": (
        '"eps": [1e-5, 1e-2]',
        "def f(x, eps=1e-5):\n    return x / (x.abs() + eps)\n",
        1,
    ),
    "floats, two of which take one branch": (
        '"cap": [30.0, 0.0, 5.0]',
        "def f(x, cap: float):\n    return torch.tanh(x / cap) * cap if cap > 0 else x * 2.0\n",
        2,
    ),
}


async def test_both_values_of_a_draft_are_right_and_what_ignores_the_second_is_refused(
    written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(SOFTCAP))
    for draft in written_drafts(target.convertible(), target.target, tmp_path, (1, 2)):
        verdict = await judged(draft, target.target)
        assert verdict.verdict == "passed", verdict.summary
        other = [case.name for case in verdict.cases if "cap 0.0" in case.name]
        assert "B=3 D=9 cap 0.0" in other
        assert len(other) > 10
    text = Path(draft).read_text(encoding="utf-8")
    wrong = re.sub(r"if cap == 0\.0:", "if False:", text)
    assert wrong != text
    Path(draft).write_text(wrong, encoding="utf-8")
    verdict = await judged(draft, target.target)
    assert verdict.verdict == "failed"
    assert all("cap 0.0" in case.name for case in verdict.cases if case.status == "failed")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_program_is_drafted_for_the_values_that_take_it(
    kind: str, written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    inputs, function, programs = KINDS[kind]
    target = await resolved(written(DECLARED.format(inputs=inputs) + function))
    origin = target.convertible()
    assert len(origin.traced.branches) + 1 == programs
    (draft,) = written_drafts(origin, target.target, tmp_path, (2,))
    verdict = await judged(draft, target.target, stop="early")
    assert verdict.verdict == "passed", verdict.summary


async def test_gradients_are_those_of_each_value(
    written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(SOFTCAP), backward=True)
    (draft,) = written_drafts(target.convertible(), target.target, tmp_path, (1,))
    verdict = await judged(draft, target.target, backward=True, stop="early")
    assert verdict.verdict == "passed", verdict.summary


async def test_sizes_and_values_choose_a_program_together(
    written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    function = (
        "def f(x, causal=True):\n"
        "    y = x.exp() if x.shape[1] > 2 else x * 3.0\n"
        "    return y + 1.0 if causal else y\n"
    )
    target = await resolved(written(DECLARED.format(inputs='"causal": [True, False]') + function))
    (draft,) = written_drafts(target.convertible(), target.target, tmp_path, (1,))
    verdict = await judged(draft, target.target, stop="early")
    assert verdict.verdict == "passed", verdict.summary


async def test_a_finished_function_takes_the_declared_values_and_its_tests_try_each(
    written: Written, resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    function = (
        "def f(x, mode='silu', shift=None):\n"
        "    y = F.silu(x) if mode == 'silu' else F.gelu(x)\n"
        "    return y if shift is None else y + shift\n"
    )
    inputs = '"mode": ["silu", "gelu"], "shift": "None|2.0"'
    target = await resolved(written(DECLARED.format(inputs=inputs) + function))
    finished_text(target, tmp_path)
    other = (
        "\n\ndef test_another_value_is_pytorchs(caplog):\n"
        '    given = arguments(SIZES[0], DTYPES[0]) | {"mode": "gelu", "shift": 3.0}\n'
        "    with torch.no_grad():\n"
        "        assert torch.equal(converted.f(**given), reference(**given))\n"
        '    assert "shift=3.0 is not declared, as None or 2.0 are" in caplog.text\n'
    )
    tests = tmp_path / "test_f_triton.py"
    text = tests.read_text(encoding="utf-8")
    tests.write_text(text + other, encoding="utf-8")
    outcome = await run_tests(worker, tests, interpreter, seconds=300)
    assert outcome.passed, outcome
    assert text.count('    {"mode": ') == 4


async def test_a_finished_function_takes_dtypes(
    written: Written, resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    inputs = '"dtype": "torch.float16|torch.bfloat16", "inner": "torch.float32"'
    function = "def f(x, dtype=torch.float16, inner=None):\n    return x.softmax(-1, dtype=inner).to(dtype)\n"
    target = await resolved(written(DECLARED.format(inputs=inputs) + function))
    finished_text(target, tmp_path)
    tests = tmp_path / "test_f_triton.py"
    outcome = await run_tests(worker, tests, interpreter, seconds=300)
    assert outcome.passed, outcome
    assert '{"dtype": torch.bfloat16}' in tests.read_text(encoding="utf-8")


async def test_other_results_with_another_value_are_refused_with_the_value(
    written: Written, resolved: Resolving
) -> None:
    function = "def f(x, both=False):\n    y = x.exp()\n    return (y, x.sum(1)) if both else y\n"
    target = await resolved(written(DECLARED.format(inputs='"both": [False, True]') + function))
    assert target.refusal is not None
    assert target.refusal.message == "f returns other results where both is True."
    assert "at a time" not in target.refusal.hint


async def test_a_value_for_which_the_function_raises_is_named(written: Written, resolved: Resolving) -> None:
    function = "def f(x, k=-1):\n    assert k > -3\n    return x * k\n"
    with pytest.raises(TargetBroken, match=r"raises on its declared inputs: AssertionError \(B=3 D=2 k=-3, "):
        await resolved(written(DECLARED.format(inputs='"k": [-1, -3]') + function))


async def test_what_needs_values_of_tensors_is_not_cut_for_several_values(
    written: Written, resolved: Resolving
) -> None:
    function = "def f(x, k=-1):\n    y = x * x.sum().item()\n    return y.exp() if k > -2 else y\n"
    target = await resolved(written(DECLARED.format(inputs='"k": [-1, -3]') + function))
    assert target.refusal is not None
    assert "With one value of k at a time it may be converted in parts." in target.refusal.hint


async def test_more_programs_than_a_file_has_are_refused(written: Written, resolved: Resolving) -> None:
    function = "def f(x, k=1, b=True):\n    return x.roll(k, 1) if b else x.roll(k, 0)\n"
    inputs = '"k": "-1|-2|-3|-4|-5", "b": [True, False]'
    target = await resolved(written(DECLARED.format(inputs=inputs) + function))
    assert target.refusal is not None
    assert target.refusal.message == "f is more than 8 programs at its declared values."


async def test_a_list_that_a_parameter_cannot_take_is_refused_with_what_to_write(
    written: Written, resolved: Resolving
) -> None:
    for values in ("['mean', 3]", "[True, 1.0]", "[]", '["float32[B]"]'):
        with pytest.raises(BadDeclaration) as caught:
            await resolved(written(SOFTCAP.replace("[30.0, 0.0]", values)))
        assert "Input cap: it takes one float, and this is a list" in caught.value.message
        assert "cap=[30.0, 0.0]" in caught.value.hint


async def test_whole_numbers_for_a_float_are_no_sizes(written: Written, resolved: Resolving) -> None:
    for values in ("[30, 0]", '"30|0"'):
        target = await resolved(written(SOFTCAP.replace("[30.0, 0.0]", values)))
        assert target.declaration.inputs["cap"] == ConstantSpec(value=30.0, others=(0.0,))
