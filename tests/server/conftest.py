import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from pytorch_to_triton.jobs import client as jobs_client
from pytorch_to_triton.jobs.client import WorkerClient

KERNEL = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}


def reference(x):
    return 2 * x


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, FACTOR * x, mask=offsets < n)


def run(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        double_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out
"""
SPINNING = """
import os
import pathlib

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4]}


def reference(x):
    return x


def run(x):
    pathlib.Path(MARKER).write_text(str(os.getpid()))
    while True:
        pass
"""


@pytest.fixture(scope="session")
def server(cache: Path) -> StdioServerParameters:
    """How an assistant starts the server."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "pytorch_to_triton_server", "serve", "--allow-dir", "/"],
        # A client passes on little of its environment; the tree that is tested is to be the one that serves.
        env={"PYTORCH_TO_TRITON_CACHE": str(cache), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )


@pytest.fixture(scope="session")
async def client(anyio_backend: str, server: StdioServerParameters) -> AsyncIterator[Client]:
    """A client of one real server for all tests: its fork server starts once."""
    async with Client(server) as client:
        yield client


@pytest.fixture(scope="module")
def kept_open(worker: WorkerClient) -> Iterator[None]:
    """Commands and servers in this process share the client of all tests, which has imported torch."""

    @asynccontextmanager
    async def open_client(*_: object) -> AsyncIterator[WorkerClient]:
        yield worker

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_client, "open_client", open_client)
        yield


@pytest.fixture
def right_kernel(tmp_path: Path) -> Path:
    file = tmp_path / "double.py"
    file.write_text(KERNEL.replace("FACTOR", "2"))
    return file


@pytest.fixture
def wrong_kernel(tmp_path: Path) -> Path:
    file = tmp_path / "treble.py"
    file.write_text(KERNEL.replace("FACTOR", "3"))
    return file


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Written by the spinning kernel when it runs; holds its process id."""
    return tmp_path / "spinning"


@pytest.fixture
def spinning_kernel(tmp_path: Path, marker: Path) -> Path:
    file = tmp_path / "spin.py"
    file.write_text(SPINNING.replace("MARKER", repr(str(marker))))
    return file
