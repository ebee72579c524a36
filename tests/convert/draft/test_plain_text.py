"""A drafted file has nothing in it that does nothing."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ...conftest import Written
from ..conftest import Judging
from ..drafting import drafted
from .graphs import drafted as drafted_at
from .graphs import single

pytestmark = pytest.mark.anyio

ROUNDED = (
    'INPUTS = {{"x": "{dtype}[M, N]"}}\nDIMS = {{"M": [3], "N": [9, 20]}}\n\n\n'
    "def f(x):\n    return x.float().exp().to(torch.bfloat16)\n"
)
IN_TURN = (
    'INPUTS = {"x": "bfloat16[M, 2*N]", "b": "bfloat16[2*N]"}\nDIMS = {"M": [3], "N": [9, 70]}\n\n\n'
    "def f(x, b):\n    h = x + b\n    return F.silu(h[..., ::2]) * h[..., 1::2]\n"
)
INTERLEAVED = (
    'INPUTS = {"x": "float32[M, N]", "y": "float32[M, N]"}\nDIMS = {"M": [3], "N": [400, 700]}\n\n\n'
    "def f(x, y):\n    return torch.stack((x * y, x - y), dim=-1).flatten(1)\n"
)
TURNED = (
    'INPUTS = {"x": "bfloat16[B, T, H, 64]", "at": "int64[T] in 0..4096"}\n'
    'DIMS = {"B": [2], "T": [1, 7], "H": [8, 9]}\n\n\n'
    "def f(x, at):\n    rates = 10000.0 ** (-torch.arange(32, device=x.device, dtype=torch.float32) / 32)\n"
    "    angles = at[:, None].float() * rates\n"
    "    c, s = (t[None, :, None, :] for t in (angles.cos(), angles.sin()))\n"
    "    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)\n"
    "    return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2).to(x.dtype)\n"
)


QUANTISED = (
    'INPUTS = {"x": "bfloat16[T, 2*H]"}\nDIMS = {"T": [3], "H": [256, 640]}\n\n\n'
    "def f(x):\n    gate, up = x.float().chunk(2, dim=-1)\n"
    "    y = (F.silu(gate) * up).unflatten(-1, (-1, 128))\n"
    "    scale = y.abs().amax(-1).clamp(min=1e-10) / 448.0\n"
    "    q = (y / scale.unsqueeze(-1)).clamp(-448.0, 448.0).flatten(-2)\n"
    "    return q.to(torch.float8_e4m3fn), scale\n"
)


@pytest.mark.parametrize(
    ("dtype", "casts"),
    [("float32", []), ("bfloat16", ["float32"]), ("float32|bfloat16", ["float32"])],
)
async def test_a_value_is_cast_only_to_another_dtype(
    dtype: str, casts: list[str], written: Written, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    (file,) = await drafted(worker, interpreter, written(ROUNDED.format(dtype=dtype)), tmp_path, stages=(3,))
    assert re.findall(r"\.to\(tl\.(\w+)\)", Path(file).read_text(encoding="utf-8")) == casts


@pytest.mark.parametrize(("text", "access"), [(IN_TURN, "tl.split("), (INTERLEAVED, "tl.join(")])
async def test_neighbours_that_are_told_apart_are_one_access(
    text: str,
    access: str,
    written: Written,
    worker: WorkerClient,
    interpreter: Runtime,
    judged: Judging,
    tmp_path: Path,
) -> None:
    target = written(text)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(3,))
    source = Path(file).read_text(encoding="utf-8")
    assert access in source
    inputs = 1 if text is INTERLEAVED else 2
    assert source.count("tl.load(") + source.count("tl.store(") == 3
    assert source.count(access) == inputs
    verdict = await judged(file, target, seed=3)
    assert verdict.verdict == "passed", verdict.summary


async def test_neighbours_in_heads_are_one_access_and_tables_of_one_angle_one_kernel(
    written: Written, worker: WorkerClient, interpreter: Runtime, judged: Judging, tmp_path: Path
) -> None:
    target = written(TURNED)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(3,))
    source = Path(file).read_text(encoding="utf-8")
    assert (source.count("@triton.jit"), source.count("tl.split("), source.count("tl.join(")) == (2, 1, 1)
    verdict = await judged(file, target, seed=3)
    assert verdict.verdict == "passed", verdict.summary


def test_a_grid_has_no_axis_of_one_block() -> None:
    bias = single("add.Tensor", ("x", "w"), ("B", "100", "M"), x=("B", "100", "M"), w=("100", "1"))
    narrow = single("add.Tensor", ("x", "w"), ("B", "M", "64"), x=("B", "M", "64"), w=("64",))
    assert "pid_col" in drafted_at(bias, 3, {"B": [8], "M": [4096]}).text
    assert "pid_col" not in drafted_at(narrow, 3, {"B": [8], "M": [4096]}).text


def test_what_is_small_beside_another_call_takes_its_kernel() -> None:
    sums = single("sum.dim_IntList", ("x", [0]), ("N",), x=("M", "N"))
    of_both, of_few = (drafted_at(sums, 3, {"M": rows, "N": [512]}) for rows in ([7, 8192], [7, 64]))
    assert [k.name for k in of_both.kernels] == ["f_partial_kernel", "f_final_kernel"]
    assert [k.name for k in of_few.kernels] == ["f_kernel", "f_in_passes_kernel"]
    together = drafted_at(sums, 3, {"M": [400, 8192], "N": [512]})
    assert len(together.kernels) == 3


async def test_groups_of_a_chunk_are_quantised_where_they_are_computed(
    written: Written, worker: WorkerClient, interpreter: Runtime, judged: Judging, tmp_path: Path
) -> None:
    """torch writes the size of a half as (2*H + 1) // 2, and of a group by way of it."""
    target = written(QUANTISED)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(3,))
    source = Path(file).read_text(encoding="utf-8")
    assert source.count("@triton.jit") == 3  # the kernel, a maximum that keeps NaN, a rounded quotient
    assert source.count("tl.load(") == 2
    assert "out[0]: [T, H]\n    out[1]: [T, H // 128]" in source
    verdict = await judged(file, target, seed=3)
    assert verdict.verdict == "passed", verdict.summary
