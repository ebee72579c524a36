"""The error budget lets honest rounding through, and nothing else."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth.budget import SLACK, STRICT
from pytorch_to_triton.worker.truth.compare import Comparison
from pytorch_to_triton.worker.truth.diagnostics import what_it_looks_like, where_it_fails
from pytorch_to_triton.worker.truth.error import Errors, Judgement, exact_errors, float_errors, unit_of

from .oracles import CASE, SEED, oracle, stated_truth, truth_of, values


def errors(candidate: torch.Tensor, truth: torch.Tensor, **others: torch.Tensor) -> Errors:
    """Of inputs of size 1; PyTorch is exact and nothing moves unless the others say so."""
    exact = {"nearby": truth, "pytorch": truth.to(candidate.dtype)}
    return float_errors({"candidate": candidate, "truth": truth, **exact, **others}, 1.0)


def statistics(
    candidate: torch.Tensor,
    truth: torch.Tensor,
    *,
    pytorch: torch.Tensor | None = None,
    path: str = "out",
    inputs: tuple[torch.Tensor, ...] = (torch.ones(4),),
    on_cpu: torch.Tensor | None = None,
) -> dict[str, Any]:
    """What is said of one output; `on_cpu` is what PyTorch's kernels for CPUs make of it."""
    pytorch = truth.to(candidate.dtype) if pytorch is None else pytorch
    whole = stated_truth(pytorch, truth, path, **({} if on_cpu is None else {"elsewhere": on_cpu}))
    call = CallInputs({f"x{number}": tensor for number, tensor in enumerate(inputs)}, {})
    (found,) = Comparison({path: output_of(candidate)}, whole, call).statistics()["outputs"]
    result: dict[str, Any] = found
    return result


def row(seed: int = 0, size: int = 200) -> torch.Tensor:
    return torch.randn(3, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_rounding_once_is_within_the_budget() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        found = errors(row().to(dtype), row())
        assert not found.failing.any()
        assert float(found.candidate.max()) <= 0.5


def test_a_small_difference_of_large_terms_is_measured_by_its_row() -> None:
    truth = row()
    truth[0, 5] = 1e-12
    assert not errors((truth + 2e-7).float(), truth).failing.any()


def test_an_error_of_a_shorter_dtype_fails() -> None:
    truth = row()
    assert errors(truth.half().float(), truth).failing.float().mean() > 0.9


def test_the_budget_grows_with_pytorchs_own_error() -> None:
    truth = row()
    off = (truth + 3e-6).float()
    assert errors(off, truth).failing.any()
    assert not errors(off, truth, pytorch=(truth - 2e-6).float()).failing.any()


def test_an_ill_conditioned_result_is_measured_by_how_far_the_truth_moves() -> None:
    truth = torch.zeros(2, 20, dtype=torch.float64)
    off = (truth + 3e-5).float()
    assert errors(off, truth).failing.all()
    assert not errors(off, truth, nearby=truth + 1e-5).failing.any()


def test_what_pytorch_errs_at_other_inputs_counts_in_its_own_row_alone() -> None:
    truth = torch.ones(3, 20, dtype=torch.float64)
    rounded, one_step, far = truth.clone(), truth.clone(), truth.clone()
    rounded[1] += 3e-6
    one_step[1, 2] += 3e-6
    far[1] += 10
    off = (truth + 3e-6).float()
    found = errors(off, truth, rounded=rounded)
    assert found.failing.all(dim=1).tolist() == [True, False, True]
    assert not found.failing[1].any()
    for other in (one_step, far):
        assert errors(off, truth, rounded=other).failing.all()


def test_nan_and_infinity_belong_where_pytorch_has_them_and_nowhere_else() -> None:
    truth = row()
    truth[0, 0], truth[0, 1] = torch.nan, torch.inf
    assert not errors(truth.float(), truth).failing.any()
    for place, value in (((0, 0), 1.0), ((0, 1), torch.nan), ((0, 1), -torch.inf), ((1, 1), torch.nan)):
        wrong = truth.float()
        wrong[place] = value
        found = errors(wrong, truth)
        assert found.failing.nonzero().tolist() == [list(place)]


def test_next_to_the_largest_number_infinity_is_one_rounding_away_and_its_opposite_is_not() -> None:
    truth = torch.tensor([65519.0, 3.0, -65525.0, 65519.0, 60000.0], dtype=torch.float64)
    pytorch = torch.tensor([65504.0, 3.0, -65504.0, 65504.0, 60000.0]).half()
    candidate = torch.tensor([torch.inf, 3.0, -torch.inf, -torch.inf, torch.inf]).half()
    found = errors(candidate, truth, pytorch=pytorch)
    assert found.failing.tolist() == [False, False, False, True, True]


def test_where_pytorch_overflows_nothing_is_judged() -> None:
    truth = row() * 1e6
    found = errors(torch.zeros(3, 200).half(), truth, pytorch=truth.half())
    assert not found.failing[truth.half().isinf()].any()
    assert (found.judgement[truth.half().isinf()] == Judgement.UNJUDGED).all()


def test_where_pytorch_is_finite_and_far_off_the_candidate_is_compared_with_both() -> None:
    truth = row()
    pytorch = truth.clone()
    pytorch[0, :4] += 50.0
    pytorch[0, 4] = torch.inf
    candidate = truth.clone()
    candidate[0, 0] = pytorch[0, 0]
    candidate[0, 1] = pytorch[0, 1] + 1e-6
    candidate[0, 3] += 25.0
    found = errors(candidate.float(), truth, pytorch=pytorch.float())
    assert found.judgement[0, :5].tolist() == [
        Judgement.AS_PYTORCH,
        Judgement.AS_PYTORCH,
        Judgement.AS_TRUTH,
        Judgement.UNCONFIRMED,
        Judgement.UNJUDGED,
    ]
    assert not found.judgement[0, 5:].any()
    assert not found.judgement[1:].any()


def test_one_wild_element_of_pytorchs_does_not_excuse_the_others() -> None:
    truth = row()
    pytorch = truth.float()
    pytorch[2, 7] = 1e6
    assert errors((truth * 1.01).float(), truth, pytorch=pytorch).failing.float().mean() > 0.9


def test_a_row_in_which_pytorch_errs_more_excuses_no_other_row() -> None:
    truth = torch.cat([row(seed) for seed in range(10)])
    pytorch = truth.clone()
    pytorch[4] += 1e-5
    failing = errors((truth + 1e-5).float(), truth, pytorch=pytorch.float()).failing
    assert not failing[4].any()
    assert failing.all(dim=1).sum() == len(truth) - 1


def failing_integers(
    *, pytorch: list[int], truth: list[int], nearby: list[int], candidate: list[int]
) -> list[bool]:
    sides = {"pytorch": pytorch, "truth": truth, "nearby": nearby, "candidate": candidate}
    failing: list[bool] = exact_errors({n: torch.tensor(side) for n, side in sides.items()}).failing.tolist()
    return failing


def test_integers_are_exact_but_for_what_pytorch_gets_wrong_itself() -> None:
    failing = failing_integers(
        pytorch=[1, 2, 3, 4], truth=[1, 2, 3, 5], nearby=[1, 2, 3, 4], candidate=[1, 7, 3, 5]
    )
    assert failing == [False, True, False, False]


def test_among_indices_that_rounding_chooses_any_is_right_but_no_other_and_not_where_it_is_settled() -> None:
    pytorch, truth, nearby = [7, 2, 5, 5, 0, 3], [5, 2, 5, 5, 0, 3], [0, 4, 1, 5, 0, 3]
    failing = failing_integers(pytorch=pytorch, truth=truth, nearby=nearby, candidate=[1, 3, 9, 6, 0, 3])
    assert failing == [False, False, True, True, False, False]


def test_exact_ties_have_a_rule_and_a_quantised_number_is_one_of_two() -> None:
    assert all(failing_integers(pytorch=[0, 2], truth=[0, 2], nearby=[5, 7], candidate=[5, 7]))
    quantised = failing_integers(
        pytorch=[3, 4, 4, 6], truth=[4, 4, 4, 6], nearby=[3, 5, 5, 6], candidate=[5, 3, 5, 7]
    )
    assert quantised == [True, True, False, True]


def test_diagnostics_of_a_single_number_are_plain() -> None:
    outputs = {"candidate": torch.tensor(2.0), "truth": torch.tensor(3.0)}
    failing = torch.tensor(True)
    assert where_it_fails(failing)["first"] == []
    assert what_it_looks_like(outputs, failing, {})["factor"] is None


def test_diagnostics_name_the_factor_the_transposition_and_the_input() -> None:
    truth = row()
    failing = torch.ones(3, 200, dtype=torch.bool)

    def seen(candidate: torch.Tensor, **inputs: torch.Tensor) -> dict[str, object]:
        return what_it_looks_like({"candidate": candidate, "truth": truth}, failing, inputs)

    factor = seen((truth * 0.75).float())["factor"]
    assert isinstance(factor, float)
    assert abs(factor - 0.75) < 1e-6
    assert seen(truth.mT.contiguous().reshape(3, 200).float())["transposed"] is True
    assert seen(row(1).float(), x=row(2), y=row(1))["equals_input"] == "y"
    assert seen(truth.half().float())["rounded_to"] == "float16"


def test_what_float64_itself_cannot_resolve_is_no_error() -> None:
    nothing = torch.zeros(4, 32, dtype=torch.float64)
    size = unit_of(nothing, nothing, torch.finfo(torch.float32), inputs_rms=3.0)
    assert float(size.min()) == 3.0 * torch.finfo(torch.float64).eps


def test_fixed_tolerances_are_met_or_not_whatever_the_budget_says() -> None:
    truth = row()
    for off, meets in ((1e-6, (True, True)), (1e-4, (False, True)), (1e-2, (False, False))):
        found = statistics((truth + off).float(), truth, pytorch=(truth + off).float())
        assert found["failing"] == 0
        assert (found["meets_strict"], found["meets_loose"]) == meets


def test_no_tolerance_is_met_where_a_nan_is_wrong() -> None:
    wrong = row().float()
    wrong[0, 0] = torch.nan
    found = statistics(wrong, row())
    assert (found["meets_strict"], found["meets_loose"]) == (False, False)


def test_every_dtype_with_a_slack_has_a_fixed_tolerance() -> None:
    assert SLACK.keys() == STRICT.keys()


def test_a_result_of_one_value_is_marked_as_constant() -> None:
    assert statistics(torch.full((3, 4), 2.0), torch.full((3, 4), 2.0, dtype=torch.float64))["constant"]
    assert not statistics(row().float(), row())["constant"]
    assert not statistics(torch.ones(1), torch.ones(1, dtype=torch.float64))["constant"]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_wrong_values_in_eight_bits_are_found_and_shown(dtype: torch.dtype) -> None:
    wrong = row().to(dtype)
    wrong[1, 3] = 8.0
    for path in ("out", "gradient of x"):
        found = statistics(wrong, row(), path=path, inputs=(torch.tensor([torch.inf]).to(dtype),))
        assert found["failing"] == 1
        assert found["diagnostics"]["values"]["candidate"] == 8.0


def test_failing_elements_of_one_diagonal_are_given_by_column_minus_row() -> None:
    def diagonal(offset: int) -> object:
        return where_it_fails(torch.eye(5, dtype=torch.bool).roll(offset, 1).triu(offset))["diagonal"]

    assert [diagonal(0), diagonal(2)] == [0, 2]
    assert where_it_fails(torch.ones(5, 5, dtype=torch.bool))["diagonal"] is None
    assert where_it_fails(torch.ones(5, dtype=torch.bool))["diagonal"] is None


def test_steps_between_failing_elements_have_the_greatest_common_divisor() -> None:
    failing = torch.zeros(16, dtype=torch.bool)
    failing[[0, 4, 10]] = True
    assert where_it_fails(failing)["flat"]["step"] == 2


NAN, INF = float("nan"), float("inf")
INFINITE = torch.tensor([INF, 1.0])


def failing_among(candidate: list[float], truth: list[float], **about: Any) -> int:
    found = statistics(torch.tensor(candidate), torch.tensor(truth, dtype=torch.float64), **about)
    failing: int = found["failing"]
    return failing


def test_nan_and_infinity_are_one_in_a_gradient_and_neither_is_a_number() -> None:
    right = [INF, NAN, INF], [NAN, INF, -INF]
    assert failing_among(*right, path="gradient of x") == 0
    assert failing_among(*right) == 3
    assert failing_among([NAN, 1.0], [1.0, NAN], path="gradient of x") == 2


def test_the_gradient_of_what_met_no_element_may_be_zero() -> None:
    zero, empty = ([0.0], [NAN]), (torch.ones(4), torch.empty(0))
    assert failing_among(*zero, path="gradient of x", inputs=empty) == 0
    assert failing_among(*zero, path="gradient of x") == failing_among(*zero, inputs=empty) == 1
    assert failing_among([2.0, 0.0], [NAN, 1.0], path="gradient of x", inputs=empty) == 2


def test_infinite_is_as_good_as_nan_where_an_infinite_input_may_meet_its_opposite() -> None:
    assert failing_among([INF], [NAN], inputs=(INFINITE, torch.tensor([1]))) == 0
    assert failing_among([1.0, NAN, -INF, INF], [NAN, INF, INF, 1.0], inputs=(INFINITE,)) == 4
    for others in ((INFINITE, torch.tensor([NAN])), (torch.ones(2),)):
        assert failing_among([INF], [NAN], inputs=others) == 1


@pytest.mark.parametrize(
    ("returned", "there", "failing"), [(0.0, 0.0, 0), (0.0, NAN, 1), (0.5, 0.0, 1), (0.5, None, 1)]
)
def test_zero_in_place_of_nan_is_right_where_another_kernel_of_pytorch_returns_it(
    returned: float, there: float | None, failing: int
) -> None:
    """Attention's rows of -inf on an H200: NaN in float32, zeros in bfloat16 and on a CPU."""
    on_cpu = None if there is None else torch.tensor([there, 1.0])
    assert failing_among([returned, 1.0], [NAN, 1.0], inputs=(INFINITE,), on_cpu=on_cpu) == failing


def test_a_case_on_a_gpu_can_be_asked_of_pytorchs_kernels_for_cpus(tmp_path: Path) -> None:
    """The second name of the CPU takes the GPU's place."""
    module = nn.Linear(3, 2)
    here = oracle(module, {"input": torch.ones(4, 3)}, tmp_path, {"out": torch.ones(4, 2)})
    assert here.truth(CASE, SEED).elsewhere() == {}
    found = dataclasses.replace(here, device="cpu:0").truth(CASE, SEED).elsewhere()
    assert set(found) == {"out", "gradient of input", "gradient of weight", "gradient of bias"}


def test_where_everything_cancels_pytorchs_own_rounding_is_the_measure() -> None:
    nothing = torch.zeros(64, 1, dtype=torch.float64)
    rounding = torch.full((64, 1), 1.5e-5)
    for candidate in (torch.zeros(64, 1), -rounding):
        found = errors(candidate, nothing, pytorch=rounding)
        assert not found.judgement.any()
    assert errors(20 * rounding, nothing, pytorch=rounding).failing.all()
    assert errors(rounding, nothing, pytorch=torch.zeros(64, 1)).failing.all()


def test_a_small_result_of_small_inputs_is_no_cancellation() -> None:
    small = 1e-13 * row()
    assert not errors(small.float(), small).failing.any()
    assert errors(1.5 * small.float(), small).failing.any()


def test_an_infinite_weight_takes_either_sign_of_what_is_zero_but_for_rounding(tmp_path: Path) -> None:
    """x - mean is a quarter of a rounding error in the first two columns, and 1 in the others."""
    x = torch.tensor([[1.0, 1.0, 2.0078125, 0.0]] * 8).bfloat16()
    weight = torch.full((4,), INF).bfloat16()

    def scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (4,)) * weight

    truth = truth_of(scaled, {"x": x, "weight": weight}, tmp_path)
    call = CallInputs({"x": x, "weight": weight}, {})
    right = values(truth.pytorch)
    for columns, failing in ((slice(0, 2), 0), (slice(2, 4), 16)):
        candidate = right.clone()
        candidate[:, columns] *= -1
        (found,) = Comparison({"out": output_of(candidate)}, truth, call).statistics()["outputs"]
        assert found["failing"] == failing
