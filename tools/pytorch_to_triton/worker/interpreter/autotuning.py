"""@triton.autotune, and queries of the device, where nothing can be timed and there is no device."""

from types import ModuleType
from typing import Any

import torch
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import InterpretedFunction

from ..untimed_tuning import StaticAssertionFailed, UntimedTuning
from .launching import may_wait

ROOM_TO_WAIT = 13
"""Multiprocessors where kernels may wait: as many programs run at once as share a row of ten thousand
elements, not a longer one."""


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


def make_room_to_wait(contents: ModuleType) -> None:
    """More multiprocessors where a kernel of the file may wait for programs that run at the same time."""
    kernels = (value.fn for value in vars(contents).values() if isinstance(value, InterpretedFunction))
    if any(map(may_wait, kernels)):
        InterpreterDriver.multiprocessors = ROOM_TO_WAIT


def static_assert(condition: Any, message: str = "") -> None:
    if not condition:
        raise StaticAssertionFailed(message)


def install() -> None:
    tl.static_assert = static_assert
    UntimedTuning(trials=0)
    driver.set_active(InterpreterDriver())
