"""A draft is the same in every process: nothing in it follows the order in which a set is iterated."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..drafting import sourced

pytestmark = [pytest.mark.anyio, pytest.mark.corpora]

NORMED = """
import torch.nn.functional as F

INPUTS = {"x": "float32[N, 16, H, W]", "weight": "float32[16, 16, 3, 3]", "scale": "float32[16]"}
DIMS = {"N": [2, 16], "H": [5, 32], "W": [7, 32]}


def normed(x, weight, scale):
    return F.group_norm(F.gelu(F.conv_transpose2d(x, weight)), 4, scale)
"""
DRAFTING = """
import pickle, sys
from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.draft.library import PURE

origin = pickle.load(sys.stdin.buffer)
print(draft(origin.traced.graph, origin.source, 3, ways=PURE).text)
"""


async def test_drafts_do_not_depend_on_the_seed_of_hashes(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "normed.py"
    path.write_text(NORMED, encoding="utf-8")
    origin = pickle.dumps(await sourced(worker, interpreter, Target(path=path, name="normed")))
    first, other = (_drafted(origin, seed) for seed in ("0", "1"))
    assert "normed_pooled" in first, "the axes of a row are found from a set of reductions"
    assert other == first


def _drafted(origin: bytes, seed: str) -> str:
    """The last stage, drafted in a process with that seed."""
    command, variables = [sys.executable, "-c", DRAFTING], {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, input=origin, env=variables, capture_output=True, check=True)
    return done.stdout.decode()
