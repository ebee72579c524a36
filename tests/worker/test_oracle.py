"""The float64 truth: it takes the branches of the case's own dtypes, and rounds nothing."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.generate import generate_arguments
from pytorch_to_triton.worker.calls.gradients import with_gradients
from pytorch_to_triton.worker.calls.tensors import leaves
from pytorch_to_triton.worker.loading.target import load

from ..conftest import sampled
from ..validate.plans import planned
from .dtype_references import ROWS, Row, in_inference_mode, of_numbers
from .oracles import CASE, SEED, oracle, truth_of, values
from .references_of_many_operators import MANY, Reference

ROOT = Path(__file__).parents[2]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def named(value: Any) -> str:
    reference = value.reference if isinstance(value, Row) else value
    return getattr(reference, "__name__", type(reference).__name__ if isinstance(value, Row) else str(value))


def x_of(dtype: torch.dtype) -> Tensor:
    return torch.randn(7, 16, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_truth_takes_the_branches_of_the_case_s_dtype(row: Row, tmp_path: Path) -> None:
    for dtype in DTYPES:
        x, w = x_of(dtype), torch.linspace(0.5, 2, 16)
        truth = truth_of(row.reference, {"x": x, "w": w}, tmp_path / named(dtype))
        by_hand = row.formula(x.double(), w.double(), dtype)
        assert truth.precision == "float64", dtype
        assert torch.allclose(values(truth), by_hand, rtol=1e-11, atol=1e-11), dtype
        error = (values(truth.pytorch).double() - by_hand).abs() / (1 + by_hand.abs())
        assert float(error.max()) < 8 * torch.finfo(dtype).eps, dtype


def inputs_of_many(dtype: torch.dtype) -> dict[str, Tensor]:
    """What the references of many operators take."""
    x, index = x_of(dtype)[:6, :8].contiguous(), torch.tensor([3, 1, 4, 1, 5, 0])
    return {"x": x, "y": x_of(dtype).flatten()[-48:].view(8, 6), "w": x[1] + 0.5, "index": index}


@pytest.mark.parametrize("reference", MANY, ids=named)
def test_a_reference_that_is_the_same_at_every_dtype_is_run_in_float64(
    reference: Reference, tmp_path: Path
) -> None:
    for dtype in DTYPES:
        given = inputs_of_many(dtype)
        made = oracle(reference, given, tmp_path / named(dtype))
        precise = made.outputs("declared", made.run_as_it_is(CASE, SEED))
        wide = [t.double() if t.is_floating_point() else t for t in given.values()]
        plain = dict(leaves(reference(*wide)))
        assert set(plain) <= set(precise)
        for path, leaf in plain.items():
            if isinstance(leaf, Tensor):
                assert torch.allclose(
                    values(precise, path).double(), leaf.double(), rtol=1e-11, atol=1e-11
                ), (dtype, path)


@pytest.mark.gpu
@pytest.mark.anyio
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("reference", [*MANY, *(row.reference for row in ROWS[:-1])], ids=named)
async def test_on_a_gpu_references_are_followed_too(reference: Callable[..., Any], tmp_path: Path) -> None:
    dtype = torch.float16
    others = {"x": x_of(dtype), "w": torch.linspace(0.5, 2, 16)}
    inputs = inputs_of_many(dtype) if reference in MANY else others

    @functools.wraps(reference)
    def on_the_gpu(*given: Any) -> Any:
        with torch.device("cuda"):
            return reference(*given)

    made = dataclasses.replace(oracle(on_the_gpu, inputs, tmp_path), device="cuda")
    own = made.run_as_it_is(CASE, SEED)
    precise = made.outputs("declared", own)
    for path, output in own.outputs.items():
        if output.traits["type"] == "Tensor" and output.tensor is not None:
            exact = values(precise, path).double()
            error = (output.tensor.double() - exact).abs() / (1 + exact.abs())
            assert float(error.max()) < 32 * torch.finfo(dtype).eps


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_gradients_follow_too_and_are_float64(row: Row, tmp_path: Path) -> None:
    if row.reference is in_inference_mode:
        return
    dtype = torch.float16
    x, w, start = x_of(dtype), torch.linspace(0.5, 2, 16), x_of(dtype).flip(0)
    if row.reference is of_numbers:
        start = start.float()
    truth = truth_of(row.reference, {"x": x, "w": w}, tmp_path, {"out": start})
    leaf = x.double().requires_grad_()
    (by_hand,) = torch.autograd.grad(row.formula(leaf, w.double(), dtype), leaf, start.double())
    assert truth.precision == "float64"
    assert torch.allclose(values(truth, "gradient of x"), by_hand, rtol=1e-11, atol=1e-11)


def test_whether_a_tensor_of_no_elements_has_a_gradient_is_not_compared() -> None:
    def total(inputs: CallInputs) -> Tensor:
        chosen, rejected = inputs.arguments["chosen"], inputs.arguments["rejected"]
        return chosen.sum() + rejected.sum()

    given = {"chosen": torch.ones(3), "rejected": torch.ones(0)}
    found = with_gradients(total, CallInputs(given, {}, {"out": torch.ones(())}))
    assert {*found} == {"out", "gradient of chosen"}


def through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


def through_numpy_by_dtype(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2) + (1e-2 if x.dtype == torch.float16 else 1e-6)


def turned_in_place(x: Tensor) -> Tensor:
    y = (x * 2).t_()
    return y.unsqueeze_(0) if y.dtype == x.dtype else y


def bits(x: Tensor) -> Tensor:
    return x.view(torch.int16) & 0x7FFF


@pytest.mark.parametrize(
    ("reference", "precision"),
    [
        (through_numpy, "float64"),
        (turned_in_place, "float64"),
        (through_numpy_by_dtype, "own"),
        (bits, "own"),
    ],
    ids=named,
)
def test_what_cannot_be_followed_is_run_on_other_dtypes_only_where_it_takes_the_same_steps(
    reference: Callable[[Tensor], Tensor], precision: str, tmp_path: Path
) -> None:
    x = x_of(torch.float16)
    truth = truth_of(reference, {"x": x}, tmp_path)
    assert truth.precision == precision
    assert torch.equal(values(truth), reference(x).to(values(truth).dtype))


def test_a_cast_rounds_only_to_a_dtype_that_no_input_has(tmp_path: Path) -> None:
    def casts(x: Tensor, w: Tensor) -> dict[str, Tensor]:
        wide = x.float() / 3
        return {
            "back": wide.to(x.dtype).float(), "meant": wide.to(torch.float16).float(),
            "stored": torch.zeros(7, 16, dtype=torch.float16).copy_(wide), "whole": (wide * 9).int(),
        }  # fmt: skip

    x = x_of(torch.bfloat16)
    truth = truth_of(casts, {"x": x, "w": torch.ones(2)}, tmp_path)
    exact = x.double() / 3
    assert torch.equal(values(truth, "out.back"), exact)
    assert torch.equal(values(truth, "out.meant"), exact.half().double())
    assert torch.equal(values(truth, "out.stored"), exact.half().double())
    assert torch.equal(values(truth, "out.whole"), (exact * 9).int())


@pytest.mark.parametrize("dtype", DTYPES, ids=named)
def test_random_numbers_are_those_of_the_case_s_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    def draws(x: Tensor) -> tuple[Tensor, ...]:
        noise = torch.randn_like(x) + torch.rand(16, dtype=x.dtype) + torch.empty_like(x).normal_()
        return noise, torch.nn.functional.dropout(x, 0.5), torch.bernoulli(x.sigmoid())

    truth = truth_of(draws, {"x": x_of(dtype)}, tmp_path)
    assert truth.precision == "float64"
    for path in truth.pytorch:
        error = (values(truth.pytorch, path).double() - values(truth, path)).abs().max()
        assert float(error) < 8 * torch.finfo(dtype).eps


def test_nearby_moves_as_far_as_float32_rounds(tmp_path: Path) -> None:
    def normalised(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (16,))

    truth = truth_of(normalised, {"x": x_of(torch.float16)}, tmp_path)
    moved = (values(truth.nearby) - values(truth)).abs().max()
    assert 2.0**-26 < float(moved) < 2.0**-18


def test_inputs_that_are_exact_stay_on_their_side_of_a_threshold_and_what_is_computed_does_not(
    tmp_path: Path,
) -> None:
    def shrunk(x: Tensor) -> tuple[Tensor, Tensor]:
        tripled = x * 3.0
        return torch.where(x > 0.5, x, 0.0), torch.where(tripled > 1.5, tripled, 0.0)

    moving = oracle(shrunk, {"x": torch.full((64,), 0.5)}, tmp_path)
    staying = dataclasses.replace(moving, exact=(0.5,))
    for each, moved in ((moving, [True, True]), (staying, [False, True])):
        truth = each.truth(CASE, SEED).with_more_samples()
        assert [bool(values(truth.nearby, path).any()) for path in ("out[0]", "out[1]")] == moved


def test_conjugates_and_negated_parts_are_computed(tmp_path: Path) -> None:
    def products(x: Tensor) -> Tensor:
        z = torch.view_as_complex(x)
        return torch.view_as_real(z * z.conj() + z) + z.conj().imag[:, None]

    x = x_of(torch.float32)[:, :2].contiguous()
    truth = truth_of(products, {"x": x}, tmp_path)
    assert truth.precision == "float64"
    assert torch.allclose(values(truth), products(x.double()), rtol=1e-12)


def test_pytorch_errs_at_neighboring_inputs_as_it_does_at_the_case_s(tmp_path: Path) -> None:
    """A row is one sum of rounded products: its 64 elements bear a single error."""

    def repeated_sums(x: Tensor, w: Tensor) -> Tensor:
        return (x * w).sum(-1, keepdim=True).expand(-1, 64)

    generator = torch.Generator().manual_seed(5)
    given = {name: torch.randn(256, 16, generator=generator).bfloat16() for name in ("x", "w")}
    truth = truth_of(repeated_sums, given, tmp_path)
    eager, rounded = values(truth.pytorch), values(truth.with_more_roundings().rounded)
    once, several = ((sample - values(truth)).abs()[:, 0] for sample in (eager.double(), rounded))
    assert 1.2 < float(several.mean() / once.mean()) < 3
    little = once < once.quantile(0.1)
    assert float((several[little] > 4 * once[little]).double().mean()) > 0.8


def test_where_the_reference_refuses_neighboring_inputs_they_show_no_error(tmp_path: Path) -> None:
    def refusing(x: Tensor) -> Tensor:
        if bool(((x - 1).abs() > 1e-3).any()):
            raise ValueError("not 1")
        return x / 3

    truth = truth_of(refusing, {"x": torch.ones(8, dtype=torch.bfloat16)}, tmp_path)
    assert torch.equal(values(truth), values(truth.with_more_roundings().rounded))


def test_a_huge_reference_is_not_run_for_neighboring_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def scaled(x: Tensor) -> Tensor:
        runs.append(x.dtype)
        return x / 3

    monkeypatch.setattr("pytorch_to_triton.worker.truth.oracle.HUGE_BYTES", 0)
    truth = truth_of(scaled, {"x": x_of(torch.float16)}, tmp_path)
    before = len(runs)
    truth.with_more_roundings()
    assert len(runs) == before > 0


def test_what_a_module_keeps_from_call_to_call_stays_apart(tmp_path: Path) -> None:
    module = Counting()
    truth = truth_of(module, {"x": x_of(torch.bfloat16)}, tmp_path)
    assert truth.precision == "float64"
    assert type(module.seen) is Tensor


def test_an_output_whose_shape_depends_on_moved_values_is_still_compared(tmp_path: Path) -> None:
    truth = truth_of(distinct, {"x": torch.tensor([1.0, 1.0, 2.0])}, tmp_path)
    assert values(truth).tolist() == [1, 2]
    assert truth.nearby["out"].traits["shape"] == [2]


def distinct(x: Tensor) -> Tensor:
    return x.unique()


class Counting(nn.Module):
    """Keeps its last input."""

    seen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x * 2
        return self.seen


FILES = sorted([*ROOT.glob("reference_kernels/*.py"), *ROOT.glob("tests/kernels/honest/*.py")])


@pytest.mark.parametrize("path", sampled(FILES, 5), ids=lambda path: path.stem)
def test_references_of_good_kernels_are_run_in_float64(path: Path, tmp_path: Path) -> None:
    reference = load({"path": path, "name": None}, "reference")
    contents = vars(reference.contents)
    plan = planned(contents["INPUTS"], contents["DIMS"], *contents.get("REQUIRES", ()), limit=2**12, seed=1)
    for case in [case for case in plan.cases if case.group in ("declared", "reduced", "dtype")][-2:]:
        given = generate_arguments(case.model_dump(mode="json"), 1)
        made = oracle(reference.call, given, tmp_path / case.name.replace("/", "_"))
        own = made.run_as_it_is(CASE, SEED)
        precise = made.outputs("declared", own)
        tensors = [leaf.tensor for leaf in precise.values() if leaf.tensor is not None]
        assert tensors
        assert not any(tensor.dtype in DTYPES for tensor in tensors)
