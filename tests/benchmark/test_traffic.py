"""The bytes that a kernel file moves are counted from its launches, beside the least."""

from pathlib import Path

import pytest

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded

pytestmark = pytest.mark.anyio

KERNELS = """import torch
import triton
import triton.language as tl

INPUTS = {"table": "float32[V, 4]", "index": "int64[M] in 0..V"}
DIMS = {"M": [8], "V": [1000]}


@triton.jit
def rows(table_ptr, index_ptr, out_ptr, M: tl.constexpr):
    pass


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.rows = table.shape[0]
        out = torch.empty((index.shape[0], 4), device=table.device)
        rows[(1,)](table, index, out, index.shape[0])
        return out

    @staticmethod
    def backward(ctx, grad_out):
        (index,) = ctx.saved_tensors
        grad = torch.zeros((ctx.rows, 4), device=grad_out.device)
        rows[(1,)](grad_out, index, grad, index.shape[0])
        return grad, None


def run(table, index):
    return Rows.apply(table, index).transpose(0, 1)
"""


@pytest.mark.parametrize(
    ("backward", "launches", "moved"),
    [
        # Eight rows of the table, eight indices, and the result.
        (False, ("rows",), 320),
        # The gradient is filled with zeros, then written.
        (True, ("rows", "aten.zeros", "rows"), 320 + 1000 * 16 + 8 * 16 + 8 * 8 + 1000 * 16),
    ],
)
async def test_each_launch_moves_each_tensor_once_and_a_table_where_it_is_looked_up(
    worker: WorkerClient,
    interpreter: Runtime,
    tmp_path: Path,
    backward: bool,
    launches: tuple[str, ...],
    moved: int,
) -> None:
    file = tmp_path / "rows.py"
    file.write_text(KERNELS, encoding="utf-8")
    inputs = {"table": "float32[V, 4]", "index": "int64[M] in 0..V"}
    dims = {"M": 8, "V": 1000}
    case = Case(
        name="traffic",
        group="declared",
        dims=dims,
        arguments=parse_declaration(inputs, {"M": 8, "V": 1000}).arguments(dims),
    )
    arguments = {
        "candidate": Target(path=file).as_json(),
        "arguments": [argument.model_dump(mode="json") for argument in case.arguments],
        "needed": {"table": 8 * 16},
        "backward": backward,
    }
    outcome = await worker.ask(Job(kind="traffic", arguments=arguments), interpreter, seconds=60.0)
    assert outcome.answer is not None, outcome
    answer = decoded(wire.TrafficAnswer, outcome.answer)
    assert (answer.launches, answer.bytes_moved) == (launches, moved)
