"""With `backward`, the drafted file computes gradients too, and every stage is validated with them."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.draft.file.module import Drafted
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime

from ..conftest import Written
from .conftest import Conversions, Judging, Resolving

pytestmark = pytest.mark.anyio

Drafting = Callable[..., Awaitable[Drafted]]
Training = Callable[[str], Awaitable[Mapping[str, Any]]]
TRAINED_WITH = Path(__file__).parent / "jobs" / "trained_with.py"
HEAD = "import torch.nn.functional as F\n\n"
FUNCTIONS = {
    "a product that broadcasts": (
        {"x": "float32[M, N]", "w": "float32|bfloat16[N]"},
        "def f(x, w):\n    h = (x + w).relu()\n    return h * x\n",
    ),
    "a softmax": ({"x": "float32[M, N]"}, "def f(x):\n    return x.softmax(-1)\n"),
    "a sum, whose gradient is a view": ({"x": "float32[M, N] in -4..4"}, "def f(x):\n    return x.sum(-1)\n"),
    "results of which one has no gradient": (
        {"x": "float32[M, N]"},
        "def f(x):\n    h = x.tanh()\n    return {'top': h.amax(-1), 'best': x.argmax(-1), 'h': h.exp()}\n",
    ),
    "an RMS norm in several dtypes": (
        {"x": "float32|bfloat16[M, N]", "w": "float32|bfloat16[N]", "eps": 1e-6},
        "def f(x, w, eps=1e-6):\n    h = x.float()\n    mean_square = h.square().mean(-1, keepdim=True)\n"
        "    return (h * torch.rsqrt(mean_square + eps) * w).to(x.dtype)\n",
    ),
    "a layer norm": (
        {"x": "float32[M, N]", "w": "float32[N]", "b": "float32[N]"},
        "def f(x, w, b):\n    return F.layer_norm(x, (x.shape[-1],), w, b)\n",
    ),
    "a cross entropy": (
        {"x": "float32[M, N]", "y": "int64[M] in 0..N or -100"},
        "def f(x, y):\n    return F.cross_entropy(x, y)\n",
    ),
    "a linear layer and a gelu": (
        {"x": "float32[M, N]", "w": "float32[33, N]", "b": "float32[33]"},
        "def f(x, w, b):\n    return F.gelu(F.linear(x, w, b))\n",
    ),
    "a pool with padding along one dimension": (
        {"x": "float32[2, M, N]"},
        "def f(x):\n    return F.silu(F.max_pool1d(x, 3, stride=2, padding=1))\n",
    ),
    "a matrix product": (
        {"x": "float32[M, N]", "w": "float32[N, 33]"},
        "def f(x, w):\n    return x @ w\n",
    ),
    "a rotation by complex numbers": (
        {"x": "float32[M, N, 2]", "angles": "float32[M, N]"},
        "def f(x, angles):\n    turn = torch.polar(angles.cosh(), angles)\n"
        "    z = torch.view_as_complex(x) * turn\n    return torch.view_as_real(z), z.abs().sum(-1)\n",
    ),
}
WITH_SUMS = {
    **{name: FUNCTIONS[name] for name in ("an RMS norm in several dtypes", "a layer norm")},
    "a softmax of scaled rows": (
        {"x": "float32[M, N]", "w": "float32[N]"},
        "def f(x, w):\n    return (x * w).softmax(-1)\n",
    ),
    "a gated norm of groups with its residual": (
        {**dict.fromkeys(("x", "gate", "residual"), "bfloat16[2, M, 3, N]"), "w": "bfloat16[3, N]"},
        "def f(x, gate, residual, w):\n    h = x.float() + residual.float()\n"
        "    gated = h * F.silu(gate.float())\n"
        "    inv = torch.rsqrt(gated.square().mean(-1, keepdim=True) + 1e-6)\n"
        "    return (gated * inv * w.float()).to(x.dtype), h.to(x.dtype)\n",
    ),
    "a gate of each sample": (
        {"x": "bfloat16[2, M, N]", "w": "bfloat16[2, N]"},
        "def f(x, w):\n    return x * w[:, None].sigmoid()\n",
    ),
    "a cross layer": (
        {"x": "float32[M, N]", "gate": "float32[M, N]", "w": "float32[N]"},
        "def f(x, gate, w):\n    return gate * (x * w).sum(-1, keepdim=True) + x\n",
    ),
    "steps of heads": (
        {"x": "float32[2, M, 3, N]", "gate": "float32[2, M, 3]", "w": "float32[3]"},
        "def f(x, gate, w):\n    return x * F.softplus(gate + w).unsqueeze(-1)\n",
    ),
}
LESS_COMMON = ("a cross layer", "steps of heads", "an RMS norm in several dtypes")
FAST = ("a sum, whose gradient is a view",)
SLOW = tuple(FUNCTIONS) if os.environ.get("ALL_GRADIENTS") else ("a softmax", "a layer norm")
"""Three stages of gradients take a minute: one function for every change, two with the corpora, all with
ALL_GRADIENTS=1."""


def declared(inputs: dict[str, object], body: str, **dims: list[int]) -> str:
    return f"{HEAD}INPUTS = {inputs!r}\nDIMS = {dict(M=[3], **(dims or {'N': [33]}))}\n\n\n{body}"


@pytest.fixture
def drafted(resolved: Resolving, written: Written) -> Drafting:
    """The last stage of a function with these inputs."""

    async def drafted(inputs: dict[str, object], body: str, **dims: list[int]) -> Drafted:
        target = written(declared(inputs, body, **dims))
        return (await resolved(target, backward=True)).convertible().drafted(3)

    return drafted


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(n, marks=pytest.mark.corpora) for n in SLOW if n not in FAST)]
)
async def test_every_stage_computes_the_gradients_of(
    name: str, written: Written, converted: Conversions
) -> None:
    conversion = await converted(written(declared(*FUNCTIONS[name])), backward=True)
    assert conversion.verdict == "converted", conversion.summary
    for stage in conversion.stages:
        compared = {o.path for case in stage.verdict.cases for o in case.outputs}
        assert "gradient of x" in compared
    assert "--backward" in conversion.replay


@pytest.fixture
def trained(drafted: Drafting, worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Training:
    """What happens where the drafted function of x: [3, 9] and a parameter w: [9] is trained."""

    async def trained(body: str) -> Mapping[str, Any]:
        file = tmp_path / "drafted.py"
        file.write_text((await drafted({"x": "float32[M, N]", "w": "float32[N]"}, body, N=[9])).text)
        job = Job(kind=str(TRAINED_WITH), arguments={"file": str(file)})
        outcome = await worker.ask(job, interpreter, seconds=120.0)
        assert outcome.answer is not None, outcome
        return outcome.answer

    return trained


async def test_a_draft_trains_what_needs_a_gradient_and_nothing_else(trained: Training) -> None:
    seen = await trained("def f(x, w):\n    return (x * w).sigmoid()\n")
    assert {**seen, "backward launched": ...} == {
        "backward launched": ...,
        "backward returned": [None, [9]],
        "the parameter's gradient is PyTorch's": True,
        "a result under no_grad requires grad": False,
        "a second derivative": "RuntimeError: trying to differentiate twice a function that was marked with "
        "@once_differentiable",
    }


async def test_kernels_of_gradients_that_nobody_asked_for_are_not_launched(trained: Training) -> None:
    seen = await trained("def f(x, w):\n    return x.softmax(-1).amax() + w.sin().sum()\n")
    assert seen["backward launched"] == ["f_backward_grad_w_kernel"]
    assert seen["backward returned"] == [None, [9]]
    assert seen["the parameter's gradient is PyTorch's"]


async def test_what_is_saved_and_the_gradients_have_the_names_of_the_callers_source(
    drafted: Drafting,
) -> None:
    body = (
        "def f(x, w):\n    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True))\n    return x * rstd * w\n"
    )
    found = await drafted({"x": "float32[M, N]", "w": "float32[N]"}, body)
    assert "Saved for the backward pass: x, w, rstd." in found.text
    assert "grads = grad_x, grad_w\n" in found.text
    assert {"grad_x", "grad_w"} <= {b.name for k in found.kernels for b in k.printed.stores}


async def test_a_norm_saves_its_statistics_and_computes_them_once(drafted: Drafting) -> None:
    inputs, body = FUNCTIONS["a layer norm"]
    found = await drafted(inputs, body)
    assert "Saved for the backward pass: x, w, mean, rstd." in found.text
    assert [k.name for k in found.kernels if "backward" not in k.name] == ["f_kernel"]


async def test_the_gradients_of_a_modulated_norm_of_groups_share_the_sums_of_its_channels(
    drafted: Drafting,
) -> None:
    inputs: dict[str, object] = {"x": "float32[2, 6, N]", "w": "float32[6]", "b": "float32[6]"}
    body = (
        "def f(x, w, b, shift):\n    scale, shift = shift[:, :, None].chunk(2, 1)\n"
        "    return F.silu(F.group_norm(x, 3, w, b) * scale + shift)\n"
    )
    found = await drafted({**inputs, "shift": "float32[2, 12]"}, body)
    (saved,) = re.findall(r"Saved for the backward pass: (.*)\.", found.text)
    assert set(saved.split(", ")) == {"x", "w", "b", "shift", "mean", "rstd"}
    kernels = dict(re.findall(r"^def (f_backward\w*_kernel)\(\n((?:    .*\n)+)", found.text, re.MULTILINE))
    reading = [name for name, parameters in kernels.items() if "    x_ptr,\n" in parameters]
    reading = [name for name in reading if "_apart_" not in name]
    assert len(reading) == 2


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.corpora if n in LESS_COMMON else ()) for n in WITH_SUMS]
)
async def test_gradients_of_rows_and_of_what_they_share_are_one_kernel_and_one_that_adds_up_its_programs_sums(
    name: str, drafted: Drafting
) -> None:
    inputs, body = WITH_SUMS[name]
    found = await drafted(inputs, body)
    stored = {k.name: {b.name for b in k.printed.stores} for k in found.kernels}
    weights, rows = (
        {f"grad_{n}" for n in inputs if n in names} for names in (("w", "b"), ("x", "gate"))
    )  # A residual's gradient is that of what it is added to.
    assert stored["f_backward_partial_kernel"] == {*rows, *(f"partial_{w}" for w in weights)}
    assert stored["f_backward_final_kernel"] == weights


async def test_long_rows_are_not_kept_beside_their_sums(drafted: Drafting) -> None:
    inputs, body = FUNCTIONS["a layer norm"]
    found = await drafted(inputs, body, N=[900, 20_000])
    stored = [{b.name for b in k.printed.stores} for k in found.kernels if "_apart_" in k.name]
    assert stored == [{"grad_x"}, {"grad_w", "grad_b"}]


async def test_nothing_is_held_whole_where_no_row_is_reduced(drafted: Drafting) -> None:
    inputs, body = {"x": "bfloat16[M, N]", "b": "bfloat16[N]"}, "def f(x, b):\n    return F.silu(x + b)\n"
    found = await drafted(inputs, body, N=[20_000])
    names = ["f_kernel", "f_backward_partial_kernel", "f_backward_final_kernel"]
    assert [k.name for k in found.kernels] == names


async def test_what_is_reduced_for_one_result_is_not_reduced_again_for_each_element_of_another(
    drafted: Drafting,
) -> None:
    body = "def f(x, y):\n    return (x * y.softmax(-1)[..., None]).sum(1)\n"
    found = await drafted({"x": "float32[2, M, N]", "y": "float32[2, M]"}, body)
    stored = [{b.name for b in k.printed.stores} for k in found.kernels]
    assert not any({"grad_x", "grad_y"} <= names for names in stored)


@pytest.mark.parametrize(("dtype", "saved"), [("bfloat16", "x, y"), ("float32", "h")])
async def test_a_sum_of_short_inputs_is_computed_again_not_saved_in_float32(
    dtype: str, saved: str, drafted: Drafting
) -> None:
    inputs: dict[str, object] = dict.fromkeys(("x", "y"), f"{dtype}[M, N]")
    body = "def f(x, y):\n    h = x.float() + y.float()\n    return h * h.sigmoid(), h.to(x.dtype)\n"
    found = await drafted(inputs, body)
    assert f"Saved for the backward pass: {saved}." in found.text
    assert [k.name for k in found.kernels] == ["f_kernel", "f_backward_kernel"]


@pytest.mark.parametrize(
    "body", ["x.float().softmax(-1).to(x.dtype)", "F.log_softmax(x.float(), -1).mean(-1)"]
)
async def test_a_softmax_of_short_inputs_is_computed_again_not_saved_in_float32(
    body: str, drafted: Drafting
) -> None:
    found = await drafted({"x": "bfloat16[M, N]"}, f"def f(x):\n    return {body}\n")
    assert "Saved for the backward pass: x." in found.text
    assert {k.name for k in found.kernels} == {"f_kernel", "f_backward_kernel"}


async def test_weights_of_classes_by_which_pytorch_does_not_differentiate_have_no_gradient(
    drafted: Drafting, written: Written, judged: Judging, tmp_path: Path
) -> None:
    inputs: dict[str, object] = {"x": "float32[M, N]", "y": "int64[M] in 0..N", "w": "float32[N]"}
    body = "def f(x, y, w):\n    return F.cross_entropy(x.float(), y, weight=w)\n"
    draft = tmp_path / "draft.py"
    draft.write_text((await drafted(inputs, body)).text, "utf-8")
    verdict = await judged(draft, written(declared(inputs, body)), backward=True, stop="early")
    assert verdict.verdict == "passed", verdict.summary
    assert {o.path for case in verdict.cases for o in case.outputs} == {"out", "gradient of x"}


async def test_a_sum_over_all_is_computed_once_beside_what_it_adds_up(drafted: Drafting) -> None:
    """Seen with a weighted loss: each program that saved an error added up all of them."""
    body = "def f(x, y, z, w):\n    error = x - y - z\n    return (w * error.abs()).sum() / w.sum()\n"
    inputs: dict[str, object] = {**dict.fromkeys("xyz", "float32[N]"), "w": "float32[N] in 0.1..2"}
    found = await drafted(inputs, body)
    stored = [{b.name for b in k.printed.stores} for k in found.kernels if "backward" not in k.name]
    totals = {"out", "total_2", "ratio_2"}
    assert stored == [{"error", *totals}, {"error", "partial", "partial_1"}, totals]


async def test_what_is_padded_is_padded_again_not_saved(drafted: Drafting) -> None:
    inputs: dict[str, object] = {"x": "float32[M, N]", "w": "float32[N]"}
    body = "def f(x, w):\n    return F.silu(F.pad(x, (0, 0, 1, 0)) * w)\n"
    found = await drafted(inputs, body)
    (saved,) = re.findall(r"Saved for the backward pass: (.*)\.", found.text)
    assert set(saved.split(", ")) == {"w", "x"}


async def test_rotated_halves_are_put_together_again_not_saved(drafted: Drafting) -> None:
    body = (
        "def f(x, w):\n    first, second = x.chunk(2, dim=-1)\n"
        "    return x + torch.cat((-second, first), dim=-1) * w\n"
    )
    found = await drafted({"x": "float32[M, 2*N]", "w": "float32[2*N]"}, body)
    assert "Saved for the backward pass: x, w." in found.text


async def test_a_value_that_is_the_gradient_of_several_inputs_is_stored_once(drafted: Drafting) -> None:
    inputs: dict[str, object] = {"x": "bfloat16[M, N]", "y": "bfloat16[M, N]"}
    body = "def f(x, y):\n    return F.silu(x.float() + y.float()).to(x.dtype)\n"
    found = await drafted(inputs, body)
    assert "grads = grad_x, grad_x\n" in found.text
    (gradient,) = (k for k in found.kernels if "backward" in k.name)
    assert [b.name for b in gradient.printed.stores] == ["grad_x"]


async def test_a_view_is_a_result_and_what_it_looks_at_is_saved(drafted: Drafting) -> None:
    body = "def f(x):\n    a, b = x.chunk(2, -1)\n    return (F.gelu(a) * b).t()\n"
    found = await drafted({"x": "float32[M, 2*H]"}, body, H=[34])
    assert "Saved for the backward pass: x." in found.text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("def f(x):\n    return x.argmax(-1)\n", "No result of `f` has a gradient by an input"),
        ("def f(x):\n    return x\n", "a result is an input"),
    ],
)
async def test_it_is_said_why_there_is_no_backward(body: str, why: str, drafted: Drafting) -> None:
    with pytest.raises(NotConvertible, match=why):
        await drafted({"x": "float32|bfloat16[M, N]"}, body)


async def test_what_computes_something_else_in_another_dtype_has_gradients_in_both(drafted: Drafting) -> None:
    body = "def f(x):\n    return x.exp() if x.dtype == torch.bfloat16 else x.sin()\n"
    found = await drafted({"x": "float32|bfloat16[M, N]"}, body)
    assert "if x.dtype == torch.bfloat16:\n        return FBfloat16Function.apply(x)" in found.text
    assert "    return FFunction.apply(x)" in found.text
