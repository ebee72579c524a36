"""What a worker's process sets before a job runs, and whose code a frame is in it."""

import os

import torch
import typing_extensions

from pytorch_to_triton.worker.integrity.frames import INSTALLED
from pytorch_to_triton.worker.runtime import enter_runtime

SHARES = {"": 0.9, "0.25": 0.25, "1": 1.0, "0": 0.9, "a lot": 0.9}


def a_process_that_uses_a_gpu_leaves_a_part_of_its_memory_to_others() -> None:
    given: list[float] = []
    torch.cuda.set_per_process_memory_fraction = given.append
    for share in SHARES:
        os.environ["PYTORCH_TO_TRITON_GPU_MEMORY_SHARE"] = share
        enter_runtime({"interpreter": False, "devices": None})
    assert not given
    assert not torch.cuda.is_initialized()
    for call, _ in torch.cuda._queued_calls:
        if call.__module__.startswith("pytorch_to_triton"):
            call()
    assert given == list(SHARES.values())


def a_package_of_torch_on_pythonpath_counts_as_installed() -> None:
    """torch imports typing_extensions, which looks at its caller's frame while a gradient is computed."""
    folder = os.path.dirname(os.path.realpath(str(typing_extensions.__file__)))
    assert folder == os.path.realpath(os.environ["PYTHONPATH"])
    assert folder in map(str, INSTALLED)
