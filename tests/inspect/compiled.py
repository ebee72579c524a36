"""Compiled kernels about which there is nothing to say, but for what is changed."""

from pathlib import Path
from typing import Any

from pytorch_to_triton.schema.compiled import CompiledKernel, InspectedKernel, KernelArgument, ResourceUsage

NOTHING_USED = {
    "registers": 32,
    "scalar_registers": None,
    "stack_bytes": 0,
    "spill_store_bytes": 0,
    "spill_load_bytes": 0,
    "shared_bytes": 0,
}


def resources(**changed: Any) -> ResourceUsage:
    return ResourceUsage.model_validate(NOTHING_USED | changed)


def compiled(**changed: Any) -> CompiledKernel:
    """A kernel of 4 warps."""
    launched = {"configuration": None, "arguments": (), "grid": (1,), "num_warps": 4, "num_stages": 3}
    plain = {"number": 0, "name": "k", "file": Path("/k.py"), "line": 1, **launched, "num_ctas": 1}
    return CompiledKernel.model_validate(plain | changed)


def inspected(label: str = "k", remarks: Any = (), **changed: Any) -> InspectedKernel:
    kernel = compiled(name=label.partition("#")[0], **changed)
    return InspectedKernel(label=label, compiled=kernel, instructions=None, occupancy=None, remarks=remarks)


def argument(name: str, kind: str, value: int | None = None, *, divisible: bool = True) -> KernelArgument:
    return KernelArgument(name=name, type=kind, value=value, divisible_by_16=divisible)
