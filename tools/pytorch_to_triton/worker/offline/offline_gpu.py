"""A GPU that is not there: Triton compiles for it, code written for it finds it, nothing runs on it.

CPU tensors stand for the GPU's as they do under the interpreter (`interpreter/fake_cuda.py`); what is
asked about the device itself is answered for the GPU that kernels are compiled for.
"""

import contextlib
import dataclasses
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from ..interpreter.autotuning import InterpreterDriver
from ..interpreter.cuda_answers import DEVICE, PROPERTIES, ordinal
from ..interpreter.fake_cuda import fake_gpu
from ..replacement import all_replaced
from ..wire import OfflineGpu

USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
"""`cuobjdump --dump-resource-usage`."""
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
"""`ptxas -v`."""
PTX_TARGET = re.compile(r"^\.target (\w+)", re.MULTILINE)
METADATA = re.compile(r"^\s+-?\s*\.(\w+): +(\d+)$", re.MULTILINE)
"""Of the code object, at the end of AMD's assembly: llvm.org/docs/AMDGPUUsage.html."""
REGISTER_BYTES = 4


def resources(kernel: Any) -> dict[str, Any]:
    """What one thread of the kernel occupies; the fields of Resources in schema/compiled.py.

    `kernel` is a CompiledKernel. Raises RuntimeError where NVIDIA's tools fail.
    """
    target = kernel.metadata.target
    if target.backend == "hip":
        return amd_resources(kernel.asm["amdgcn"], kernel.metadata.shared)
    registers = registers_and_spills(kernel.asm["cubin"], target.backend)
    # Spills are kept on the stack; without one there is no need to assemble once more.
    spills = spill_bytes(kernel.asm["ptx"], target.arch) if registers["stack_bytes"] else (0, 0)
    return {
        **registers,
        "spill_store_bytes": spills[0],
        "spill_load_bytes": spills[1],
        "shared_bytes": kernel.metadata.shared,
        "scalar_registers": None,
    }


def registers_and_spills(binary: bytes, backend: str) -> dict[str, int]:
    """`registers` and `stack_bytes` of a cubin; zeros for other binaries, whose assembly has them."""
    if backend != "cuda":
        return {"registers": 0, "stack_bytes": 0}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        printed = output_of([knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name])
    usage = USAGE.search(printed)
    if usage is None:
        raise RuntimeError(f"cuobjdump did not report the registers: {printed}")
    return {"registers": int(usage[1]), "stack_bytes": int(usage[2])}


def spill_bytes(ptx: str, arch: int) -> tuple[int, int]:
    """Bytes of spill stores and spill loads in a thread's instructions."""
    from triton.backends.nvidia.compiler import get_ptxas

    gpu = PTX_TARGET.search(ptx)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = [get_ptxas(arch).path, "-v", f"--gpu-name={gpu[1]}" if gpu else "", str(source)]
        printed = output_of([*command, "-o", str(Path(folder, "kernel.cubin"))])
    match = SPILLS.search(printed)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def output_of(command: list[str]) -> str:
    """What the command prints on both streams. Raises RuntimeError where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout + done.stderr


def amd_resources(assembly: str, shared_bytes: int) -> dict[str, Any]:
    """From the metadata of AMD's assembly. VGPRs include accumulation registers where they share a file."""
    counts = {name: int(value) for name, value in METADATA.findall(assembly)}
    return {
        "registers": counts["vgpr_count"],
        "scalar_registers": counts["sgpr_count"],
        "stack_bytes": counts["private_segment_fixed_size"],
        "spill_store_bytes": counts["vgpr_spill_count"] * REGISTER_BYTES,
        "spill_load_bytes": None,
        "shared_bytes": max(shared_bytes, counts["group_segment_fixed_size"]),
    }


def properties_of(gpu: OfflineGpu) -> Any:
    """`torch.cuda.get_device_properties`."""
    return dataclasses.replace(
        PROPERTIES,
        name=gpu.name,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        multi_processor_count=gpu.sms,
        warp_size=gpu.warp_size,
        max_threads_per_multi_processor=gpu.warps * gpu.warp_size,
        regs_per_multiprocessor=gpu.registers,
        shared_memory_per_block_optin=gpu.shared_bytes_per_block,
        shared_memory_per_multiprocessor=gpu.shared_bytes,
    )


class OfflineDriver(InterpreterDriver):
    """What `triton.runtime.driver.active` answers for the absent GPU."""

    def __init__(self, gpu: OfflineGpu) -> None:
        super().__init__()
        self.gpu = gpu

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(self.gpu.backend, self.gpu.compiler_arch, self.gpu.warp_size)

    def set_current_device(self, device: int) -> None:
        ordinal(device)

    def get_active_torch_device(self) -> torch.device:
        return DEVICE

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return self.gpu.capability

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {
            "multiprocessor_count": self.gpu.sms,
            "max_num_regs": self.gpu.registers,
            "max_shared_mem": self.gpu.shared_bytes_per_block,
            "warpSize": self.gpu.warp_size,
        }

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return run_once

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0)

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def launcher_cls(self, src: Any, metadata: Any) -> Callable[..., None]:
        """A launcher that launches nothing, for wrappers that hold a compiled kernel and call it."""
        return lambda *args: None

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Module, function, registers a thread, spilled registers a thread, threads a block at most."""
        resources = registers_and_spills(binary, self.gpu.backend)
        return None, None, resources["registers"], resources["stack_bytes"] // 4, 1024

    def unload_module(self, module: Any) -> None:
        pass


def run_once(kernel_call: Callable[[], Any], quantiles: Any = None, **_: Any) -> list[float]:
    """A benchmark that calls once and times nothing: all configurations tie."""
    kernel_call()
    return [0.0] * (len(quantiles) if quantiles else 1)


def compile_for(gpu: OfflineGpu) -> None:
    """From now on, in this process, Triton compiles for `gpu`."""
    driver.set_active(OfflineDriver(gpu))


@contextlib.contextmanager
def on(gpu: OfflineGpu) -> Iterator[None]:
    """Inside, code written for a GPU finds `gpu`, with CPU tensors for its memory."""

    def about(answer: Any) -> Callable[..., Any]:
        def call(device: Any = None) -> Any:
            ordinal(device)
            return answer

        return call

    answers = {
        "get_device_properties": about(properties_of(gpu)),
        "get_device_name": about(gpu.name),
        "get_device_capability": about(gpu.capability),
        "get_arch_list": lambda: [gpu.name],
    }
    with fake_gpu(), all_replaced((torch.cuda, name, answer) for name, answer in answers.items()):
        yield
