"""@triton.autotune, and queries of the device, where nothing can be timed and there is no device."""

from typing import Any

import torch
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.errors import InterpreterError

from ..untimed_tuning import StaticAssertionFailed, UntimedTuning


class InterpreterDriver:
    """Answers what wrappers ask of `triton.runtime.driver.active`."""

    utils: "InterpreterDriver"
    multiprocessors = 3
    """Several, as programs that share out blocks show mistakes only then; no power of two, as in GPUs."""

    def __init__(self) -> None:
        self.utils = self

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(backend="cpu", arch=0, warp_size=32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Registers and shared memory (bytes) are what every CUDA GPU grants a block."""
        return {
            "multiprocessor_count": self.multiprocessors,
            "max_num_regs": 65536,
            "max_shared_mem": 49152,
            "warpSize": 32,
        }

    def get_benchmarker(self) -> Any:
        raise InterpreterError("the interpreter cannot time a kernel: benchmarks need a GPU")


def static_assert(condition: Any, message: str = "") -> None:
    if not condition:
        raise StaticAssertionFailed(message)


def install() -> None:
    tl.static_assert = static_assert
    UntimedTuning(trials=0)
    driver.set_active(InterpreterDriver())
