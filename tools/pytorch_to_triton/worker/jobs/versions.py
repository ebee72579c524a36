"""Job `versions`: which versions are installed, and which devices there are."""

import platform
from typing import Any

import torch
import triton

from ..job_report import JobReport
from ..runtime import interpreting


def work(report: JobReport) -> dict[str, Any]:
    """Versions of Python, torch and Triton, and the devices that compiled kernels can run on."""
    report.during("versions")
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "interpreter": interpreting(),
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
        "devices": [] if interpreting() else _devices(),
    }


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
