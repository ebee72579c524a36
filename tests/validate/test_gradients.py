"""With `--backward` the gradients are outputs too."""

from pathlib import Path

import pytest

from .kernel_files import Change, changed_file, double_file
from .verdicts import ANY, Judge, case, most_wrong

pytestmark = pytest.mark.anyio

FUNCTION = """

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return double(x)

    @staticmethod
    def backward(ctx, grad):
        return BACKWARD


def run(x):
    return RESULT
"""


SQUARED = """

class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        KEEP
        return double(x)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * KEPT


def run(x):
    return Squared.apply(x)
"""


def squared_file(folder: Path, keep: str, kept: str) -> Path:
    """The kernel squares; the backward pass needs x, and PyTorch computes it."""
    function = SQUARED.replace("KEEP", keep).replace("KEPT", kept)
    return double_file(
        folder,
        ("return x * 2", "return x * x"),
        ("index, x * 2", "index, x * x"),
        ("\n\ndef run(x):\n    return double(x)\n", function),
    )


def doubled_file(
    folder: Path, backward: str, result: str = "Doubled.apply(x)", changes: tuple[Change, ...] = ()
) -> Path:
    function = FUNCTION.replace("BACKWARD", backward).replace("RESULT", result)
    return double_file(folder, ("\n\ndef run(x):\n    return double(x)\n", function), *changes)


async def test_a_right_backward_pass_passes_in_every_kind_of_case(judge: Judge, tmp_path: Path) -> None:
    cases = ("N=9", "N=4", "N=0", "N=1", "N=9 x sliced", "N=9 nan in x")
    verdict = await judge(doubled_file(tmp_path, "double(grad)"), backward=True, cases=cases)
    assert verdict.verdict == "passed", verdict.summary
    assert {result.status for result in verdict.cases} == {"passed"}
    assert [output.path for output in verdict.cases[0].outputs] == ["out", "gradient of x"]
    assert "--backward" in verdict.replay


async def test_a_wrong_backward_pass_fails_and_only_where_gradients_are_compared(
    judge: Judge, tmp_path: Path
) -> None:
    path = doubled_file(tmp_path, "double(double(grad))")
    verdict = await judge(path, backward=True, cases=("N=9",))
    assert verdict.verdict == "failed"
    _, mismatch = most_wrong(verdict)
    assert (mismatch.output, mismatch.kind) == ("gradient of x", "constant_factor")
    assert "gradient of x is wrong in every element: the right values times a constant 2" in verdict.summary
    assert (await judge(path, cases=("N=9",))).verdict == "passed"


@pytest.mark.parametrize("result", ["double(double(x))", "double(x) if x.numel() < 9 else double(x)[:1]"])
async def test_what_is_wrong_only_where_no_gradients_are_asked_for_is_refused(
    judge: Judge, tmp_path: Path, result: str
) -> None:
    taken = f"Doubled.apply(x) if torch.is_grad_enabled() else {result}"
    path = doubled_file(tmp_path, "double(grad)", taken)
    verdict = await judge(path, backward=True, cases=("N=9",))
    assert verdict.verdict == "failed"
    assert [v.kind for v in verdict.cases[0].violations] == ["wrong_without_gradients"]
    assert "wrong under torch.no_grad()" in verdict.summary


@pytest.mark.parametrize(
    ("where", "case_name"), [("not x.is_contiguous()", "N=9 x sliced"), ("x.numel() == 1", "N=1")]
)
async def test_no_gradients_are_asked_for_in_every_layout_and_size(
    judge: Judge, tmp_path: Path, where: str, case_name: str
) -> None:
    taken = f"double(double(x)) if {where} and not torch.is_grad_enabled() else Doubled.apply(x)"
    path = doubled_file(tmp_path, "double(grad)", taken)
    verdict = await judge(path, backward=True, cases=("N=9", case_name))
    assert {result.name: result.status for result in verdict.cases} == {"N=9": "passed", case_name: "failed"}


async def test_what_raises_only_where_no_gradients_are_asked_for_is_refused(
    judge: Judge, tmp_path: Path
) -> None:
    path = doubled_file(tmp_path, "double(grad)", "Doubled.apply(x) if torch.is_grad_enabled() else 1 / 0")
    verdict = await judge(path, backward=True, cases=("N=9",))
    assert (verdict.verdict, verdict.cases[0].status) == ("failed", "raised")


async def test_a_backward_pass_meets_gradients_that_are_not_contiguous(judge: Judge, tmp_path: Path) -> None:
    path = doubled_file(tmp_path, "double(grad.as_strided(grad.shape, (1,)))")
    verdict = await judge(path, backward=True, cases=("N=9", "N=9 x sliced"))
    assert {result.name: result.status for result in verdict.cases} == {
        "N=9": "passed",
        "N=9 x sliced": "failed",
    }


@pytest.mark.parametrize("special", ["grad.item() == 1", "grad.item() != 1"])
async def test_a_backward_pass_of_a_number_starts_with_one_and_with_others(
    judge: Judge, tmp_path: Path, special: str
) -> None:
    """As `loss.backward()` does, and the gradient of a scaled loss: kernels may have a way for either."""
    number = (
        ('INPUTS = {"x": "float32[N]"}', 'INPUTS = {"x": "float32[]"}'),
        ('DIMS = {"N": [4, 9]}', "DIMS = {}"),
    )
    path = doubled_file(tmp_path, f"double(double(grad)) if {special} else double(grad)", changes=number)
    verdict = await judge(path, backward=True)
    assert verdict.verdict == "failed"
    assert verdict.violations == ()
    assert most_wrong(verdict)[1].output == "gradient of x"


async def test_a_gradient_that_is_none_is_missing(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(doubled_file(tmp_path, "None"), backward=True, cases=("N=9",))
    _, mismatch = most_wrong(verdict)
    assert (mismatch.output, mismatch.kind) == ("gradient of x", "missing_output")


async def test_a_kernel_without_a_backward_pass_raises(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(double_file(tmp_path), backward=True, cases=("N=9",))
    assert verdict.verdict == "failed"
    assert case(verdict, "N=9").status == "raised"
    assert "no output has a grad_fn" in verdict.summary


SCALED = """
import torch
from torch import nn
import triton
import triton.language as tl


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * self.weight


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    x = tl.load(x_ptr + index, mask=mask)
    y = tl.load(y_ptr + index, mask=mask)
    tl.store(out_ptr + index, x * y, mask=mask)


def product(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        product_kernel[(triton.cdiv(x.numel(), 8),)](x, y, out, x.numel(), BLOCK=8)
    return out


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return product(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return product(grad, weight), product(grad, x)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return Scaled.apply(x, self.weight)


def get_inputs():
    return [torch.rand(5)]


def get_init_inputs():
    return [5]
"""


async def test_the_gradients_of_a_modules_parameters_are_compared(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(changed_file(tmp_path, SCALED), backward=True, cases=("get_inputs()",))
    assert verdict.verdict == "passed", verdict.summary
    paths = {output.path for output in verdict.cases[0].outputs}
    assert paths == {"out", "gradient of x", "gradient of weight"}


async def test_a_wrong_gradient_of_a_parameter_is_named(judge: Judge, tmp_path: Path) -> None:
    wrong: Change = ("product(grad, x)\n", "product(grad, product(x, x))\n")
    path = changed_file(tmp_path, SCALED, wrong)
    verdict = await judge(path, backward=True, cases=("get_inputs()",))
    assert verdict.verdict == "failed"
    assert [mismatch.output for mismatch in verdict.cases[0].mismatches] == ["gradient of weight"]


async def test_pytorchs_own_autograd_may_be_allowed(judge: Judge, tmp_path: Path) -> None:
    plain = double_file(tmp_path, ("    return double(x)\n", "    return x + x\n"))
    verdict = await judge(plain, backward=True, cases=("N=9", "N=0", "N=9 x sliced"), allow_torch=ANY)
    assert verdict.verdict == "passed", verdict.summary


async def test_a_gradient_that_is_the_one_that_came_in_needs_no_kernel(judge: Judge, tmp_path: Path) -> None:
    reference = ("    return x * 2\n", "    return x + 2\n")
    kernel = ("out_ptr + index, x * 2", "out_ptr + index, x + 2")
    path = doubled_file(tmp_path, "grad", changes=(reference, kernel))
    verdict = await judge(path, backward=True, cases=("N=9", "N=4"))
    assert verdict.verdict == "passed", verdict.summary


async def test_a_gradient_is_right_alone_and_after_another_forward_pass_too(
    judge: Judge, tmp_path: Path
) -> None:
    cases = ("N=9", "N=9 called again")
    saved = squared_file(tmp_path, "ctx.save_for_backward(x)", "ctx.saved_tensors[0]")
    verdict = await judge(saved, backward=True, cases=cases, allow_torch=ANY)
    assert verdict.verdict == "passed", verdict.summary
    on_the_class = squared_file(tmp_path, "Squared.x = x", "Squared.x")
    verdict = await judge(on_the_class, backward=True, cases=cases, allow_torch=ANY)
    assert [result.status for result in verdict.cases] == ["passed", "failed"]
    kinds = [violation.kind for violation in case(verdict, "N=9 called again").violations]
    assert kinds == ["wrong_gradients_apart"]


async def test_the_gradient_that_a_backward_pass_is_given_stays_as_it_is(
    judge: Judge, tmp_path: Path
) -> None:
    path = doubled_file(tmp_path, "grad.copy_(double(grad))")
    verdict = await judge(path, backward=True, cases=("N=9",))
    assert verdict.verdict == "failed"
    assert "writes to the gradient of out that it is given" in verdict.summary
