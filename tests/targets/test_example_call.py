"""Inputs taken from a call: what varies or is alike has a name, and what was guessed is said."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetBroken, TargetNotFound
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import ConstantExample, TensorExample
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.example_call import (
    Proposal,
    RecordedCall,
    proposal_of,
    proposed,
    refuse_objects,
)

pytestmark = pytest.mark.anyio

Proposing = Callable[[str, str], Awaitable[Proposal]]

OPS = """
import torch


def pooled(x, mask, scale=1.0):
    heads = x.view(x.shape[0], x.shape[1], 4, 3)
    return (heads.sum(2) * mask.unsqueeze(-1)).sum(1) * (scale or 1.0)


class Scaled(torch.nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.bias = bias

    def forward(self, x):
        return x * self.weight + self.bias
"""
CALLS = """
import torch
from ops import Scaled, pooled as renamed


def call():
    renamed(torch.ones(8, 5, 12), torch.ones(8, 5), scale=0.5)


def call_module():
    module = Scaled(16, bias=False)
    for rows in (3, 9):
        module(torch.ones(rows, 16))


def call_with_other_constants():
    renamed(torch.ones(8, 5, 12), torch.ones(8, 5), scale=0.5)
    renamed(torch.ones(4, 5, 12), torch.ones(4, 5), scale=0.25)
    renamed(torch.ones(4, 7, 12), torch.ones(4, 7), scale=None)


def idle():
    pass


def failing():
    raise ValueError("no data")
"""


def tensor(name: str, *shape: int, dtype: str = "float32", low: int = 0, high: int = 0) -> TensorExample:
    bounds = (low, high) if dtype == "int64" else (None, None)
    return TensorExample(name=name, dtype=dtype, shape=shape, low=bounds[0], high=bounds[1])


def call(*arguments: TensorExample | ConstantExample) -> RecordedCall:
    return RecordedCall(arguments=arguments, constructor={})


@pytest.fixture
def proposing(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Proposing:
    """Runs an example of CALLS for a target of OPS."""
    (tmp_path / "ops.py").write_text(OPS, encoding="utf-8")
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")

    async def proposing(name: str, example: str) -> Proposal:
        target, calls = Target(path=tmp_path / "ops.py", name=name), tmp_path / "calls.py"
        return await proposed(worker, target, Target(path=calls, name=example), interpreter, seconds=60.0)

    return proposing


def test_of_one_call_every_size_but_1_is_a_dim_and_equal_sizes_are_one() -> None:
    found = proposal_of([call(tensor("x", 8, 5, 12), tensor("w", 12), tensor("b", 1, 12))])
    assert found.inputs == {"x": "float32[B, M, N]", "w": "float32[N]", "b": "float32[1, N]"}
    assert {name: max(sizes) for name, sizes in found.dims.items()} == {"B": 8, "M": 5, "N": 12}
    assert all(min(sizes) <= 3 for sizes in found.dims.values())
    (guess,) = (text for text in found.guesses if "one dim" in text)
    assert "N is 12 of x.shape[2], w.shape[0], b.shape[1]" in guess


def test_of_several_calls_only_what_differs_is_a_dim() -> None:
    found = proposal_of([call(tensor("x", rows, 64), tensor("w", 64)) for rows in (4, 32)])
    assert found.inputs == {"x": "float32[M, 64]", "w": "float32[64]"}
    assert {4, 32} <= set(found.dims["M"])


def test_integers_that_stay_below_a_size_are_indices_along_it() -> None:
    target = tensor("target", 20, dtype="int64", low=1, high=50)
    found = proposal_of([call(tensor("logits", 20, 50), target, ConstantExample(name="p", value=0.1))])
    assert found.inputs["target"] == "int64[M] in 0..N"
    assert found.inputs["p"] == 0.1
    assert found.inputs["logits"] == "float32[M, N]"


async def test_sizes_that_the_target_does_not_leave_free_are_numbers(proposing: Proposing) -> None:
    found = await proposing("pooled", "call")
    assert found.inputs == {"x": "float32[B, M, 12]", "mask": "float32[B, M]", "scale": 0.5}
    assert "Fixed, as the target does not run at other sizes: 12." in found.guesses


async def test_calls_with_other_constants_say_nothing_of_the_sizes(proposing: Proposing) -> None:
    found = await proposing("pooled", "call_with_other_constants")
    assert found.inputs == {"x": "float32[B, 5, 12]", "mask": "float32[B, 5]", "scale": 0.5}
    assert found.guesses[0] == "Taken from 2 calls; 1 with other constants or other tensors is left out."


async def test_of_a_module_the_constructor_s_arguments_are_taken_too(proposing: Proposing) -> None:
    found = await proposing("Scaled", "call_module")
    assert found.init == ("width=16", "bias=False")
    assert found.inputs == {"x": "float32[M, 16]"}


@pytest.mark.parametrize(
    ("name", "refusal", "message"),
    [
        ("idle", BadInput, "does not call"),
        ("failing", TargetBroken, "The example failing.* raised ValueError: no data"),
        ("absent", TargetNotFound, "has no function `absent`"),
    ],
)
async def test_an_example_that_shows_nothing_is_refused(
    name: str,
    refusal: type[Exception],
    message: str,
    proposing: Proposing,
) -> None:
    with pytest.raises(refusal, match=message):
        await proposing("pooled", name)


def test_what_a_loss_passes_over_is_no_index() -> None:
    target = tensor("target", 20, dtype="int64", low=-100, high=50)
    assert proposal_of([call(tensor("logits", 20, 50), target)]).inputs["target"] == "int64[M] in 0..N"


def test_a_module_s_mode_and_objects_that_cannot_be_repeated_are_said() -> None:
    trained = call(tensor("x", 3, 16)).model_copy(update={"training": True})
    assert any("training mode" in text for text in proposal_of([trained]).guesses)
    configured = trained.model_copy(update={"constructor": {"config": ["Config"]}})
    with pytest.raises(BadInput, match=r"config \(a Config\), which is no constant"):
        refuse_objects(Target(path=Path("ops.py"), name="Block"), configured)
