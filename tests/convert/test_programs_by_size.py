"""Functions that are another program at other sizes: one draft holds them all, as PyTorch computes them."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime

from ..conftest import Written
from .conftest import Comparing, Resolving
from .drafting import in_file, written_drafts
from .eager_calls import calls, draft_of

pytestmark = pytest.mark.anyio

GRADIENTS = Path(__file__).parent / "jobs" / "gradients_beside_eager.py"
SOURCE = """import torch
import torch.nn.functional as F

INPUTS = {{"x": "{dtypes}[M, N]"}}
DIMS = {dims}


def f(x):
    {body}
"""
PROGRAMS: Mapping[str, tuple[dict[str, list[int]], str]] = {
    "another formula for long rows": (
        {"M": [1, 5], "N": [3, 40]}, "return x.softmax(-1) if x.shape[-1] > 32 else x.log_softmax(-1)",
    ),
    "the shorter side first": (
        {"M": [3, 9], "N": [5, 9]},
        "y = x.T if len(x) > x.size(1) else x; y = y @ y.T @ y; return y.T if len(x) > x.size(1) else y",
    ),
    "odd rows padded": (
        {"M": [2], "N": [4, 7]},
        "x = F.pad(x, (0, 1)) if x.shape[1] % 2 else x; return x[:, ::2] - x[:, 1::2]",
    ),
    "a size that is one number": ({"M": [3], "N": [7, 12]}, "return x * (2.0 if x.shape[1] == 7 else 3.0)"),
    "a loop over columns": (
        {"M": [1, 3], "N": [2, 5]},
        "y = x[:, 0]\n    for t in range(1, x.shape[1]):\n        y = 0.5 * y + x[:, t]\n    return y",
    ),
    "another formula for one row": ({"M": [1, 4], "N": [9]}, "return x * 2.0 if len(x) == 1 else x.exp()"),
    "the last two columns, of one": ({"M": [3], "N": [1, 6]}, "return x[:, -2:] * 2.0 + x[:, :1]"),
    "a dim dropped where it is one": ({"M": [1, 4], "N": [9]}, "return x.squeeze().exp()"),
    "two dims dropped": ({"M": [1, 4], "N": [1, 6]}, "return x[None].squeeze() * 2.0"),
    "windows as wide as a row": (
        {"M": [6], "N": [4, 9]}, "return F.conv2d(x[None, None], x.new_ones(1, 1, 4, 4)).squeeze()",
    ),
    "pairs below the diagonal": (
        {"M": [3, 5], "N": [4]},
        "i, j = torch.tril_indices(len(x), len(x), offset=-1); return (x @ x.T)[i, j]",
    ),
    "pairs above the diagonal": (
        {"M": [4], "N": [3]}, "i, j = torch.triu_indices(len(x), len(x), 1); return (x @ x.T)[i, j]",
    ),
    "three kinds of rows": (
        {"M": [2], "N": [3, 12, 40]},
        "n = x.shape[1]; return x.sum(1) if n < 8 else x.amax(1) if n < 32 else x.mean(1)",
    ),
    "at most so many columns": ({"M": [2], "N": [3, 40]}, "return x[:, :16].sum(1) + x[:, -1]"),
}  # fmt: skip
"""The declared sizes, and the body."""
IN_BOTH_DTYPES = ("another formula for long rows", "the shorter side first", "a size that is one number")
"""For every change; the others in float32."""


@pytest.mark.parametrize("all_in_both", [False, pytest.param(True, marks=pytest.mark.corpora)])
async def test_a_draft_holds_at_all_declared_sizes(
    all_in_both: bool, resolved: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    drafts = []
    for name, (dims, body) in PROGRAMS.items():
        dtypes = "float32|bfloat16" if all_in_both or name in IN_BOTH_DTYPES else "float32"
        target = in_file(tmp_path, name, SOURCE.format(dtypes=dtypes, dims=dims, body=body))
        origin = (await resolved(target)).convertible()
        files = written_drafts(origin, target, tmp_path)
        points = [{"M": m, "N": n} for m in dims["M"] for n in dims["N"]]
        assert all(holds(text, point) for text in origin.traced.holds_where for point in points), name
        declaration = parse_declaration({"x": f"{dtypes}[M, N]"}, dims)
        drafts.append(draft_of(name, target, files, calls(declaration, points)))
    assert await compared(*drafts) == {name: [] for name in PROGRAMS}


async def test_gradients_are_those_of_the_program_of_the_size(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    functions = []
    for name in ("another formula for long rows", "a loop over columns"):
        dims, body = PROGRAMS[name]
        target = in_file(tmp_path, name, SOURCE.format(dtypes="float32", dims=dims, body=body))
        files = written_drafts((await resolved(target, backward=True)).convertible(), target, tmp_path)
        for m, n in product(*dims.values()):
            functions.append(
                {
                    "name": f"{name} {m} {n}",
                    "source": str(target.path),
                    "files": files,
                    "shapes": {"x": [m, n]},
                }
            )
    job = Job(kind=str(GRADIENTS), arguments={"functions": functions})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer == {given["name"]: "" for given in functions}, outcome.detail


async def test_sizes_come_before_dtypes_and_equal_kernels_are_printed_once(
    resolved: Resolving, written: Written
) -> None:
    body = "x = x.T if x.size(0) > x.size(1) else x; return x.float().exp()"
    dims = {"M": [3, 9], "N": [5]}
    target = written(SOURCE.format(dtypes="float32|bfloat16", dims=dims, body=body))
    text = (await resolved(target)).convertible().drafted(3).text
    assert "if M > N:" in text or "if M <= N:" in text
    assert "drafted for" not in text.split("def run(")[1]
    assert text.count("@triton.jit") == 2
