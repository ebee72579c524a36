"""A draft is the same in every process: nothing in it follows the order in which a set is iterated."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..drafting import in_file, sourced

pytestmark = [pytest.mark.anyio, pytest.mark.corpora]

HEAD = "import torch\nimport torch.nn.functional as F\n\n"
FUNCTIONS = {
    "a group norm behind a transposed convolution": """
INPUTS = {"x": "float32[N, 16, H, W]", "weight": "float32[16, 16, 3, 3]", "scale": "float32[16]"}
DIMS = {"N": [2, 16], "H": [5, 32], "W": [7, 32]}


def f(x, weight, scale):
    return F.group_norm(F.gelu(F.conv_transpose2d(x, weight)), 4, scale)
""",
    "weights of a mean image": """
INPUTS = {"x": "float32[B, T, H, W]"}
DIMS = {"B": [2, 16], "T": [3, 64], "H": [5, 32], "W": [7, 32]}


def f(x):
    return torch.softmax(x.mean(dim=1).flatten(1), dim=-1).view(-1, x.shape[2], x.shape[3])
""",
    "a permuted image beside its totals": """
INPUTS = {"x": "float32[N, C, H, W]"}
DIMS = {"N": [2, 16], "C": [3, 8], "H": [5, 32], "W": [7, 32]}


def f(x):
    return x.permute(0, 2, 3, 1) * x.sum(dim=(1, 3))[:, :, None, None], x.amax(dim=(0, 2))
""",
}
DRAFTING = """
import pickle, sys
from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.draft.library import PURE

for origin in pickle.load(sys.stdin.buffer):
    print(draft(origin.traced.graph, origin.source, 3, ways=PURE).text)
"""


async def test_drafts_do_not_depend_on_the_seed_of_hashes(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    targets = [in_file(tmp_path, name, HEAD + text) for name, text in FUNCTIONS.items()]
    origins = pickle.dumps([await sourced(worker, interpreter, target) for target in targets])
    first, other = (_drafted(origins, seed) for seed in ("0", "1"))
    assert first.count("@triton.jit") > len(FUNCTIONS), "there is something to compare"
    assert other == first


def _drafted(origins: bytes, seed: str) -> str:
    """The last stages, drafted in a process with that seed."""
    command, variables = [sys.executable, "-c", DRAFTING], {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, input=origins, env=variables, capture_output=True, check=True)
    return done.stdout.decode()
