"""A verdict can be repeated, bit for bit: its case, its smallest case, its command."""

import shlex
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest, command
from pytorch_to_triton_server.commands import build_app

from .kernel_files import corpus_file, double_file
from .verdicts import Judge, most_wrong, statuses

pytestmark = pytest.mark.anyio

DROPS_FROM_32 = (
    "tl.store(out_ptr + index, x * 2, mask=mask)",
    "tl.store(out_ptr + index, x * 2, mask=mask & (index < 32))",
)


@pytest.fixture(scope="module")
def drops_from_32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wrong: elements from 32 on stay zero."""
    zeros = ("torch.empty_like(x)", "torch.zeros_like(x)")
    sizes = ('{"N": [4, 9]}', '{"N": [8, 100]}')
    return double_file(tmp_path_factory.mktemp("kernels"), DROPS_FROM_32, zeros, sizes)


@pytest.fixture(scope="module")
async def found(anyio_backend: str, judge: Judge, drops_from_32: Path) -> Verdict:
    """The verdict on it, with a seed of its own choice."""
    return await judge(drops_from_32, seed=None)


async def test_a_case_comes_again_bit_for_bit_with_the_seed_of_the_verdict(
    judge: Judge, drops_from_32: Path, found: Verdict
) -> None:
    telling, _ = most_wrong(found)
    again = await judge(drops_from_32, seed=found.seed, cases=(telling.name,))
    assert again.cases == (telling,)
    assert again.summary.removeprefix("1 of 1 case is wrong. ") in found.summary
    other = await judge(drops_from_32, seed=found.seed ^ 1, cases=(telling.name,))
    assert other.cases[0].mismatches[0].first != telling.mismatches[0].first


async def test_the_smallest_case_is_just_past_what_is_right_and_comes_again(
    judge: Judge, drops_from_32: Path, found: Verdict
) -> None:
    assert found.smallest == "N=33"
    assert shlex.split(found.replay)[-4:] == ["--seed", str(found.seed), "--case", "N=33"]
    once, twice = [await judge(drops_from_32, seed=found.seed, cases=("N=33",)) for _ in range(2)]
    assert once.cases == twice.cases
    assert once.cases[0].mismatches[0].kind == most_wrong(found)[1].kind == "all_zero"
    assert once.smallest is None
    assert statuses(await judge(drops_from_32, seed=found.seed, cases=("N=32",))) == {"passed"}


async def test_every_dimension_is_made_smaller(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(corpus_file(tmp_path, "wrong/one_column_wrong"))
    assert most_wrong(verdict)[0].name == "M=6 N=20"
    assert verdict.smallest == "M=1 N=1"
    assert "--case 'M=1 N=1'" in verdict.replay


async def test_a_smaller_case_keeps_what_makes_the_large_one_fail(judge: Judge, tmp_path: Path) -> None:
    path = double_file(tmp_path, ("x * 2, mask", "tl.where(x == x, x * 2, 0.0), mask"))
    verdict = await judge(path)
    telling, mismatch = most_wrong(verdict)
    assert (telling.group, mismatch.kind) == ("combined", "not_propagated")
    assert verdict.smallest is not None
    assert verdict.smallest.split()[1:] == ["nan", "in", "x"]
    assert size_of(verdict.smallest) < size_of(telling.name)


async def test_a_smaller_case_that_fails_for_another_reason_is_passed_over(
    judge: Judge, tmp_path: Path
) -> None:
    zeros = ("torch.empty_like(x)", "torch.zeros_like(x)")
    sizes = ('{"N": [4, 9]}', '{"N": [8, 100]}')
    other_mistake = (
        "x = tl.load(x_ptr + index, mask=mask)",
        "x = tl.load(x_ptr + index, mask=mask) + (n < 4)",
    )
    verdict = await judge(double_file(tmp_path, DROPS_FROM_32, zeros, sizes, other_mistake))
    assert most_wrong(verdict)[1].kind == "all_zero"
    assert verdict.smallest == "N=33"


def size_of(name: str) -> int:
    return int(name.split()[0].removeprefix("N="))


# The command


def parsed(words: str) -> dict[str, object]:
    """What the command line reads `words` as, by the name of each option."""
    program, name, *arguments = shlex.split(words)
    assert Path(program).name == "pytorch-to-triton"
    group = get_command(build_app())
    assert isinstance(group, typer.core.TyperGroup)
    return dict(group.commands[name].make_context(name, arguments).params)


REQUESTS = {
    "a kernel file": ValidationRequest(candidate=Target(path=Path("/a/kernel.py"))),
    "a path with spaces and quotes": ValidationRequest(
        candidate=Target(path=Path("/it's a/$X dir/k.py"), name="run")
    ),
    "everything": ValidationRequest(
        candidate=Target(path=Path("/a/b.py"), name="fast"),
        reference=Target(path=Path("/a/b.py"), name="Slow"),
        options=parse_options(
            ["x=float32|int8[M, N] in -3..4", "eps=1e-05", "mode=tanh", "no=None", "dims=[0,1]", "keep=true"],
            ["M=1,7", "N=64,66"],
        ),
        allow_torch=frozenset({"mm", "addmm"}),
        backward=True,
        require_int64_offsets=True,
        require_mixed_dtypes=True,
        seconds=7.5,
    ),
}  # fmt: skip
RUNTIME = Runtime(python="/other/python", interpreter=True)


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
@pytest.mark.parametrize("named", [None, "M=3 N=5 x transposed"])
def test_the_command_reads_back_as_the_request(request_: ValidationRequest, named: str | None) -> None:
    read = parsed(command(request_, RUNTIME, 2**48 - 1, named))
    inputs, dims, allowed = (read.pop(name) for name in ("input", "dim", "allow_torch"))
    assert isinstance(inputs, list | tuple)
    assert isinstance(dims, list | tuple)
    assert isinstance(allowed, list | tuple)
    assert parse_options(inputs, dims) == request_.options
    assert frozenset(allowed) == request_.allow_torch
    expected = {
        "kernel": str(request_.candidate),
        "reference": str(request_.reference) if request_.reference else None,
        "device": "interpreter",
        "python": "/other/python",
        "timeout": request_.seconds,
        "seed": 2**48 - 1,
        "case": [named] if named else [],
        **{n: getattr(request_, n) for n in ("backward", "require_int64_offsets", "require_mixed_dtypes")},
    }
    assert expected.items() <= read.items()


async def test_the_command_of_a_passed_verdict_names_the_cases_that_were_requested(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = await judge(double_file(tmp_path), cases=("N=4", "N=5"))
    assert verdict.verdict == "passed"
    words = shlex.split(verdict.replay)
    assert [words[i + 1] for i, word in enumerate(words) if word == "--case"] == ["N=4", "N=5"]
