"""What is a limit and what is a mistake: what each group of cases declares, and who asks for more."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from pytorch_to_triton.inputs.case import Case, Layout, TensorArgument
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.verdict import (
    CaseResult,
    CaseStatus,
    LimitKind,
    Violation,
    ViolationKind,
)
from pytorch_to_triton.validate.behavior import OVERFLOW, violations_of
from pytorch_to_triton.validate.judge import candidate_failed, judge_case
from pytorch_to_triton.validate.limits import limits_in, with_limits
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.run_outcome import RunOutcome
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.observation import Observation

from .builders import FAULT, LAUNCH, TENSOR, output, statistics
from .kernel_files import KERNELS, double_file
from .verdicts import Judge
from .verdicts import case as case_of

INT64: tuple[LimitKind, ...] = ("offsets",)
MIXED: tuple[LimitKind, ...] = ("dtypes",)


def case(group: Group, name: str = "N=8", layout: Layout = "contiguous", **fields: Any) -> Case:
    x = TensorArgument(name="x", dtype="bfloat16", shape=(8,), layout=layout)
    y = TensorArgument(name="y", dtype="float32", shape=(8,))
    return Case(name=name, group=group, dims={"N": 8}, arguments=(x, y), **fields)


def raised(message: str = "N must be even", statement: str = "", kind: str = "ValueError") -> RunOutcome:
    failure = Failure(type=kind, message=message, traceback="", file="/a/k.py", line=12, statement=statement)
    return RunOutcome("raised", f"raised {kind} at k.py:12: {message}", failure)


def overflow(tensor: str = "x_ptr", line: int = 12) -> Violation:
    return Violation(
        kind="load_outside",
        message="k loads from outside.",
        suggestion=OVERFLOW,
        file="k.py",
        line=line,
        tensor=tensor,
        overflow=True,
    )


# Exceptions

OUTSIDE: list[Group] = ["layout", "large_stride", "empty", "beyond", "option", "mixed"]
WITHIN: list[Group] = ["odd", "one"]
DECLARED: list[Group] = ["declared", "reduced", "dtype", "value", "special", "repeat", "combined"]


def test_every_group_of_cases_has_its_place() -> None:
    assert {*OUTSIDE, *WITHIN, *DECLARED} == set(get_args(Group))


@pytest.mark.parametrize("group", get_args(Group))
def test_any_exception_is_a_limit_beyond_the_declaration_and_a_statement_that_refuses_at_odd_sizes(
    group: Group,
) -> None:
    judged = candidate_failed(case(group), raised("division by zero", kind="ZeroDivisionError"))
    assert judged.status == ("limited" if group in OUTSIDE else "raised")
    if judged.limit is not None:
        assert "ZeroDivisionError at k.py:12: division by zero" in str(judged.limit)
        assert (judged.limit.file, judged.limit.line) == ("/a/k.py", 12)
    refuses = candidate_failed(case(group), raised(statement="raise ValueError(...)"))
    assert refuses.status == ("raised" if group in DECLARED else "limited")


MISALIGNED = raised("Misaligned address", kind="RuntimeError")
ILLEGAL = raised("CUDA error: an illegal memory access was encountered", kind="RuntimeError")
CORRUPTING = Observation(launches=(LAUNCH,), faults=(FAULT,))
FOREIGN = Observation(launches=(LAUNCH,), operators={"aten.mm": 1})


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        (RunOutcome("crashed", "ended its process"), None),
        (RunOutcome("timed_out", "ended its process"), None),
        (MISALIGNED, None),
        (ILLEGAL, None),
        (raised(), CORRUPTING),
        (raised(), FOREIGN),
    ],
)
def test_crashes_foreign_memory_and_broken_rules_are_no_refusals(
    outcome: RunOutcome, seen: Observation | None
) -> None:
    judged = candidate_failed(case("empty"), outcome, seen, Policy())
    assert (judged.status, judged.limit) == (outcome.reason, None)


def test_an_assert_without_a_message_is_named_by_its_statement() -> None:
    judged = candidate_failed(case("layout"), raised("", "assert x.is_contiguous()", "AssertionError"))
    assert judged.limit is not None
    assert judged.limit.what == "raise AssertionError at k.py:12: assert x.is_contiguous()"


def test_the_same_exception_in_several_groups_is_one_limit() -> None:
    groups: list[Group] = ["odd", "beyond", "odd"]
    results = [
        candidate_failed(case(group, name), raised(statement="raise"))
        for name, group in zip("abc", groups, strict=True)
    ]
    [limit] = limits_in(results)
    assert limit.subject == "odd sizes and sizes beyond the declared ones"
    assert limit.cases == ("a", "b", "c")


# Large strides


def spread(status: CaseStatus = "failed", *violations: Violation) -> CaseResult:
    return CaseResult(
        name="x rows far apart", group="large_stride", status=status, why="Wrong.", violations=violations
    )


def strided(status: CaseStatus, layout: Layout = "sliced") -> CaseResult:
    return CaseResult(name=f"x {layout}", group="layout", status=status, why="")


SPREAD = case("large_stride", "x rows far apart", "large_stride")
PLANNED = [SPREAD, *(case("layout", f"x {layout}", layout) for layout in get_args(Layout))]


def status_beside(result: CaseResult, *others: CaseResult, **asked: Any) -> CaseStatus:
    """What becomes of a result beside others."""
    return with_limits([result, *others], PLANNED, **asked)[0].status


def test_an_offset_that_lost_its_upper_bits_is_a_limit_with_its_first_line() -> None:
    [judged] = with_limits([spread("failed", overflow(line=14), overflow(line=12))], [SPREAD])
    assert judged.status == "limited"
    [limit] = limits_in([judged])
    assert str(limit) == (
        "offsets of x are 32-bit from line 12 on (right up to 2^31 elements of stride times index)"
    )
    assert (limit.file, limit.line, limit.fix) == ("k.py", 12, OVERFLOW)


def test_it_is_a_failure_where_the_caller_asks_or_the_declared_sizes_reach_it() -> None:
    result = spread("failed", overflow())
    assert status_beside(result, refused=INT64) == "failed"
    assert status_beside(result, refused=MIXED) == "limited"
    assert with_limits([result], [SPREAD.model_copy(update={"declared": True})])[0].status == "failed"


def test_on_a_device_that_names_no_line_other_strides_of_the_tensor_decide() -> None:
    for status in ("failed", "raised", "crashed"):
        [judged, _] = with_limits([spread(status), strided("passed")], PLANNED)
        assert judged.status == "limited"
        assert str(judged.limit).startswith("offsets of x are 32-bit (right up to")
    assert status_beside(spread("timed_out"), strided("passed")) == "timed_out"
    assert status_beside(spread()) == status_beside(spread(), strided("failed")) == "failed"
    assert status_beside(spread(), strided("failed"), strided("passed", "transposed")) == "failed"
    assert status_beside(spread(), strided("passed"), strided("failed", "transposed")) == "failed"


def test_where_each_access_is_reported_only_one_far_off_its_tensor_is_a_matter_of_offsets() -> None:
    assert status_beside(spread(), strided("passed"), every_access=True) == "failed"
    wrapped = spread("failed", overflow())
    assert status_beside(wrapped, strided("passed"), every_access=True) == "limited"


def test_another_rule_that_is_broken_at_large_strides_still_counts() -> None:
    rules: tuple[tuple[ViolationKind, CaseStatus], ...] = (
        ("torch_operator", "failed"),
        ("reads_uninitialised", "limited"),
    )
    for kind, status in rules:
        beside = Violation(kind=kind, message="It does.", suggestion="Do not.")
        assert status_beside(spread("failed", overflow(), beside)) == status


@pytest.mark.parametrize(
    ("offset", "wraps"), [(-(2**31), True), (2**31 + 9, False), (2**33, True), (9, False)]
)
def test_only_an_access_far_from_its_tensor_has_overflowed(offset: int, wraps: bool) -> None:
    elements = 2**31 + 8 if abs(offset) > 2**30 else 8
    fault = replace(FAULT, kind="load_outside", offset=offset, elements=elements)
    [found] = violations_of(SPREAD, Observation(launches=(LAUNCH,), faults=(fault,)), Policy())
    assert found.overflow is wraps


# Mixtures of dtypes

SEEN = Observation(launches=(LAUNCH,))


def mixture(seen: Observation = SEEN, **figures: Any) -> CaseResult:
    got = replace(TENSOR, dtype="bfloat16")
    other = output(**{"differs": "dtype", "candidate": got, **figures})
    return judge_case(MIXTURE, statistics(other), seen)


MIXTURE = case("mixed", "only x bfloat16")


def test_right_values_in_another_dtype_are_a_limit_and_wrong_ones_a_mistake() -> None:
    judged = mixture(right_values=True)
    assert judged.status == "limited"
    [limit] = limits_in([judged])
    assert str(limit) == (
        "x and y must share a dtype, or out is bfloat16 instead of float32 (right where they share a dtype)"
    )
    assert mixture(right_values=False).status == "failed"
    assert with_limits([judged], [MIXTURE], MIXED)[0].status == "failed"
    assert with_limits([judged], [MIXTURE], INT64)[0].status == "limited"


def test_a_limit_of_dtypes_beside_a_broken_rule_is_left_out() -> None:
    seen = Observation(launches=(LAUNCH,), operators={"aten.mm": 1})
    judged = mixture(seen, right_values=True)
    assert (judged.status, judged.limit, judged.mismatches) == ("failed", None, ())
    assert judged.why == "The candidate calls aten.mm."


def test_who_asks_for_mixtures_accepts_an_exception_that_names_dtypes() -> None:
    clear = candidate_failed(MIXTURE, raised("x is torch.bfloat16, y is torch.float32", "raise", "TypeError"))
    vague = candidate_failed(MIXTURE, raised("no", "raise"))
    assert with_limits([clear], [MIXTURE], MIXED)[0].status == "limited"
    assert with_limits([vague], [MIXTURE], MIXED)[0].status == "raised"
    assert with_limits([vague], [MIXTURE])[0].status == "limited"


def test_a_wrong_dtype_outside_of_mixtures_is_a_mistake() -> None:
    other = output(differs="dtype", candidate=replace(TENSOR, dtype="bfloat16"), right_values=True)
    assert judge_case(case("dtype"), statistics(other)).status == "failed"


# From end to end


@pytest.mark.anyio
async def test_a_tutorial_kernel_passes_with_its_limits_and_fails_where_int64_is_asked(judge: Judge) -> None:
    path = KERNELS / "honest" / "tutorial_softmax.py"
    names = ("M=4 N=64", "M=4 N=64 x rows far apart", "M=4 N=64 x transposed", "M=4 N=0")
    verdict = await judge(path, cases=names)
    assert verdict.verdict == "passed", verdict.summary
    assert [result.status for result in verdict.cases] == ["passed", *["limited"] * 3]
    offsets = next(limit for limit in verdict.limits if limit.cases == ("M=4 N=64 x rows far apart",))
    assert str(offsets) in verdict.summary
    assert str(offsets).startswith("offsets of x are 32-bit from line 22 on (right up to 2^31 elements")
    assert "tl.program_id(0).to(tl.int64)" in verdict.next_step
    strict = await judge(path, cases=names, require_int64_offsets=True)
    assert strict.verdict == "failed"
    assert case_of(strict, "M=4 N=64 x rows far apart").status == "failed"
    assert case_of(strict, "M=4 N=64 x transposed").status == "limited"


@pytest.mark.anyio
async def test_an_output_in_another_dtype_for_a_mixture_is_compared_all_the_same(
    judge: Judge, tmp_path: Path
) -> None:
    changes = (
        ('{"x": "float32[N]"}', '{"x": "float32|bfloat16[N]", "y": "float32|bfloat16[N]"}'),
        ("def reference(x):\n    return x * 2", "def reference(x, y):\n    return (x + y * 0) * 0.75"),
        ("def run(x):\n", "def run(x, y):\n"),
    )
    names = ("N=4 only x bfloat16", "N=4 only y bfloat16")
    # Rounded to bfloat16: right for that dtype only.
    right_kernel = ("x * 2, mask", "x * 0.75, mask")
    right = await judge(double_file(tmp_path, *changes, right_kernel), cases=names)
    assert [result.status for result in right.cases] == ["limited", "passed"], right.summary
    wrong = await judge(double_file(tmp_path, *changes, ("x * 2, mask", "x * 0.8, mask")), cases=names)
    assert [result.status for result in wrong.cases] == ["failed", "failed"]
    strict = await judge(
        double_file(tmp_path, *changes, right_kernel), cases=names, require_mixed_dtypes=True
    )
    assert [result.status for result in strict.cases] == ["failed", "passed"]
