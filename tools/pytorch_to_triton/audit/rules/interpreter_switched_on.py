"""A file switches Triton's interpreter on.

TRITON_INTERPRET=1 runs every kernel of the process on the CPU, program by program in NumPy: results are
right and take thousands of times as long. Set at the top of a file, it holds for everyone who imports it.

Fix: set it where tests are run: `TRITON_INTERPRET=1 pytest`.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.environment import switched_on
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "high"
CATEGORY = "performance"
BAD = (
    """
import os
os.environ["TRITON_INTERPRET"] = "1"
""",
    """
from os import environ
environ.setdefault("TRITON_INTERPRET", "1")
""",
)
GOOD = (
    """
import os
os.environ["TRITON_INTERPRET"] = "0"
""",
    """
import os
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
""",
    """
import os
interpreted = os.environ["TRITON_INTERPRET"] == "1"
""",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Settings at the top of a file, under no condition; tests may do so."""
    if is_trial(file):
        return
    for statement in switched_on(file, "TRITON_INTERPRET"):
        yield Fault(
            statement,
            "This file switches the interpreter on: kernels run on the CPU, thousands of times slower.",
            "Delete the line, and set TRITON_INTERPRET=1 where tests are run.",
        )
