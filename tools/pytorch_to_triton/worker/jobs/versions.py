"""Job `versions`: which versions are installed, and which devices there are."""

import platform
from typing import Any

import torch
import triton

from ..compilation import SM_90, assemblers
from ..job_report import JobReport
from ..runtime import interpreting


def work(report: JobReport) -> dict[str, Any]:
    """Versions of Python, torch, Triton and ptxas, and the devices that compiled kernels can run on."""
    report.during("versions")
    devices = [] if interpreting() else _devices()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "interpreter": interpreting(),
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
        "devices": devices,
        "assemblers": [] if interpreting() or torch.version.hip else assemblers(_architecture(devices)),
    }


def _architecture(devices: list[dict[str, Any]]) -> int:
    """90 for compute capability 9.0."""
    if not devices:
        return SM_90
    major, minor = devices[0]["capability"]
    return int(10 * major + minor)


def _devices() -> list[dict[str, Any]]:
    if not torch.cuda.is_available():
        return []
    return [
        {
            "name": torch.cuda.get_device_name(i),
            "capability": list(torch.cuda.get_device_capability(i)),
            "memory_bytes": torch.cuda.get_device_properties(i).total_memory,
            "uuid": str(getattr(torch.cuda.get_device_properties(i), "uuid", "")) or None,
        }
        for i in range(torch.cuda.device_count())
    ]
