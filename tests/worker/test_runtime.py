"""What a worker's process sets before a job runs."""

import subprocess
import sys

# In a process of its own: what torch keeps for the moment at which it takes hold of a GPU is global.
SHARES_ONCE_A_GPU_IS_USED = """
import os, sys
import torch
from pytorch_to_triton.worker.runtime import enter_runtime

shares = []
torch.cuda.set_per_process_memory_fraction = shares.append
for given in sys.argv[1:]:
    os.environ["PYTORCH_TO_TRITON_GPU_MEMORY_SHARE"] = given
    enter_runtime({"interpreter": False, "devices": None})
    assert not shares and not torch.cuda.is_initialized()
    for call, _ in torch.cuda._queued_calls:
        if call.__module__.startswith("pytorch_to_triton"):
            call()
    torch.cuda._queued_calls.clear()
    print(*shares)
    shares.clear()
"""


def test_a_process_that_uses_a_gpu_leaves_a_part_of_its_memory_to_others() -> None:
    shares = {"": "0.9", "0.25": "0.25", "1": "1.0", "0": "0.9", "a lot": "0.9"}
    done = subprocess.run(
        [sys.executable, "-c", SHARES_ONCE_A_GPU_IS_USED, *shares],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == list(shares.values()), done.stderr
