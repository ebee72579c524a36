"""A drafted file has the kernels that the sizes at hand take, and says where its limits are."""

import ast
from pathlib import Path

import pytest

from pytorch_to_triton.convert.finish.converted import recipe_of, submitted_file
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.draft.schedule.conditions import any_of
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from ...conftest import Written
from ..drafting import drafted

pytestmark = pytest.mark.anyio

ROWS = (
    'INPUTS = {{"x": "float32[M, N]"}}\nDIMS = {{"M": [1, 3], "N": {lengths}}}\n\n\n'
    "def f(x):\n    return torch.softmax(x, -1)\n"
)
SHORT, BOTH = ROWS.format(lengths=[9, 100]), ROWS.format(lengths=[900, 20000])
POOLED = (
    'INPUTS = {"x": "float32[B, T, D]", "mask": "int64[B, T] in 0..2"}\n'
    'DIMS = {"B": [3], "T": [1, 9], "D": [16, 33]}\n\n\n'
    "def f(x, mask):\n"
    "    mask = mask.unsqueeze(-1).expand(x.size()).float()\n"
    "    return F.normalize((x * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)\n"
)


LOSS = (
    'INPUTS = {"x": "float32[M, N]", "target": "int64[M] in 0..N"}\nDIMS = {"M": [1, 8], "N": [5, 100]}\n\n\n'
    "def f(x, target):\n"
    "    log_p = torch.log_softmax(x, -1)\n"
    "    picked = log_p.gather(1, target[:, None]).squeeze(1)\n"
    "    return -(0.9 * picked + 0.1 * log_p.mean(-1)).mean()\n"
)
LONG_LOSS = LOSS.replace("[5, 100]", "[900, 20000]")
DIVERGENCE = (
    'INPUTS = {"x": "float32[M, N]", "y": "float32[M, N]"}\nDIMS = {"M": [1, 8], "N": [5, 100]}\n\n\n'
    "def f(x, y):\n"
    "    return F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction='batchmean')\n"
)
LONG_NORM = (
    'INPUTS = {"x": "float32[M, 65536]", "weight": "float32[65536]"}\nDIMS = {"M": [1, 2]}\n\n\n'
    "def f(x, weight):\n    return F.layer_norm(x, (65536,), weight)\n"
)
COLUMNS = 'INPUTS = {"x": "float32[M, 20]"}\nDIMS = {"M": [90, 5000]}\n\n\ndef f(x):\n    return x.sum(0)\n'
PYRAMID = (
    'INPUTS = {"x": "float32[N, 3, 2, 2]", "y": "float32[N, 3, 3, 3]", "z": "float32[N, 3, H, W]"}\n'
    'DIMS = {"N": [2], "H": [3, 7], "W": [2, 9]}\n\n\n'
    "def f(x, y, z):\n"
    '    how = {"size": z.shape[2:], "mode": "bilinear", "align_corners": True}\n'
    "    return F.interpolate(x, **how) + F.interpolate(y, **how) + z\n"
)
TERMS = (
    'INPUTS = {"x": "float32[M, N]", "z": "float32[M, D]"}\n'
    'DIMS = {"M": [1, 8], "N": [5, 100], "D": [3, 20]}\n\n\n'
    "def f(x, z):\n    return (x.abs().sum(-1) + 0.5 * z.logsumexp(-1)).mean()\n"
)
PASSED, LIMITED = "passed", "limited"


@pytest.mark.parametrize(
    ("text", "kernels", "cases"),
    [
        pytest.param(
            SHORT, 1, {"M=3 N=16384": PASSED, "M=3 N=16385": LIMITED, "M=3 N=0": PASSED}, id="short"
        ),
        pytest.param(
            BOTH, 2, {"M=3 N=16384": PASSED, "M=3 N=16385": PASSED, "M=3 N=20000": PASSED}, id="both"
        ),
        pytest.param(
            POOLED, 1, {"B=3 T=9 D=33": PASSED, "B=2 T=1 D=8193": LIMITED, "B=0 T=2 D=5": PASSED}, id="pooled"
        ),
        # Up to 8,192 rows, 2,048 programs have four each, then five.
        pytest.param(
            LOSS,
            2,
            {"M=8193 N=5": PASSED, "M=1 N=1": PASSED, "M=3 N=16384": PASSED, "M=2 N=16385": LIMITED},
            id="loss",
        ),
        # Rows of 5 are few beside those of 4,096, but not for a kernel of one long row a program.
        pytest.param(
            LOSS.replace("[5, 100]", "[5, 4096]"),
            4,
            {"M=9 N=5": PASSED, "M=3 N=1025": PASSED},
            id="short beside long",
        ),
        pytest.param(LONG_LOSS, 4, {"M=3 N=16384": PASSED, "M=3 N=16385": PASSED}, id="loss of both"),
        pytest.param(LONG_NORM, 4, {"M=2": PASSED}, id="rows of whole chunks"),
        pytest.param(
            COLUMNS, 3, {"M=512": PASSED, "M=513": PASSED, "M=0": PASSED}, id="columns of any length"
        ),
        pytest.param(PYRAMID, 1, {"N=2 H=5 W=7": PASSED, "N=1 H=1 W=1": PASSED}, id="steps of several sizes"),
        pytest.param(
            TERMS,
            2,
            {"M=7 N=33 D=9": PASSED, "M=3 N=1 D=2000": PASSED, "M=2 N=9 D=16385": LIMITED},
            id="rows of two tensors",
        ),
        pytest.param(DIVERGENCE, 2, {"M=7 N=33": PASSED, "M=130 N=1000": PASSED}, id="divergence"),
    ],
)
async def test_up_to_its_limits_a_draft_agrees_with_pytorch(
    text: str,
    kernels: int,
    cases: dict[str, str],
    written: Written,
    worker: WorkerClient,
    interpreter: Runtime,
    tmp_path: Path,
) -> None:
    target = written(text)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(3,))
    assert Path(file).read_text(encoding="utf-8").count("@triton.jit") == kernels
    request = ValidationRequest(
        candidate=Target(path=Path(file)), reference=target, cases=tuple(cases), seed=3
    )
    verdict = await validate(worker, request, interpreter)
    assert [case.status for case in verdict.cases] == list(cases.values()), verdict.summary
    if LIMITED in cases.values():
        assert "convert again with larger sizes" in verdict.summary


def test_sizes_that_one_of_several_ways_takes_are_within_the_limits() -> None:
    limit = any_of(["M <= 255 and N > 65536", "N <= 8192"])
    sizes = [{"M": 3, "N": 100000}, {"M": 300, "N": 8192}, {"M": 3, "N": 8193}, {"M": 300, "N": 100000}]
    assert [holds(limit, dims) for dims in sizes] == [True, True, False, False]


async def test_a_finished_file_hands_to_pytorch_what_is_beyond_the_limits(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    target = await resolve(worker, ConversionRequest(target=written(SHORT)), interpreter)
    draft = target.convertible().drafted(3)
    for file in (draft.file, submitted_file(target, draft.text)):
        finished = files(recipe_of(target, file, drafted=True), measured="").texts
        assert "N <= 16384 does not hold" in finished["f_triton.py"]


async def test_rows_are_on_their_way_only_as_far_as_shared_memory_holds_them(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    target = written(DIVERGENCE.replace("[5, 100]", "[5, 12288]"))
    draft = (await resolve(worker, ConversionRequest(target=target), interpreter)).convertible().drafted(3)
    stages = {c["STAGES"] for k in draft.kernels for c in k.printed.schedule.configs if "STAGES" in c}
    assert stages == {1}  # Two rows of 16,384 float32 take 128 KiB.


async def test_no_variable_hides_a_function_of_the_drafted_file(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    text = (
        'INPUTS = {"table": "float32[V, D]", "index": "int64[M] in 0..V"}\n'
        'DIMS = {"V": [4], "D": [8], "M": [1, 5]}\n\n\n'
        "def f(table, index):\n    return table[index] * index[:, None]\n"
    )
    request = ConversionRequest(target=written(text), backward=True)
    tree = ast.parse((await resolve(worker, request, interpreter)).convertible().drafted(3).text)
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert "dtype_of_offsets" in functions
    assert not functions & stored
