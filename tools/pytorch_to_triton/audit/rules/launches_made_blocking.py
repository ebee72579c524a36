"""A file makes every launch wait until its kernel has finished.

CUDA_LAUNCH_BLOCKING=1 is for finding the launch that fails. Left on, the GPU is idle between any two kernels.

Fix: set it on the command line for the one run that is debugged.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.environment import switched_on
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "medium"
CATEGORY = "performance"
BAD = (
    """
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
""",
    """
import os as system
system.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")
""",
)
GOOD = (
    """
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
""",
    """
import os
if os.environ.get("DEBUG"):
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
""",
    """
settings = {}
settings["CUDA_LAUNCH_BLOCKING"] = "1"
""",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Settings at the top of a file, under no condition; tests may do so."""
    if is_trial(file):
        return
    for statement in switched_on(file, "CUDA_LAUNCH_BLOCKING"):
        message = "This file makes the CPU wait for every kernel that the process launches."
        yield Fault(statement, message, "Delete the line; set the variable on the command line to debug.")
