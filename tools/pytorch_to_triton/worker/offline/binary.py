"""Registers, spills and stack of a compiled kernel, as NVIDIA's tools or AMD's metadata report them."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from triton import knobs

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
