"""A setting for debugging is left on.

TRITON_INTERPRET=1 runs every kernel of the process on the CPU, thousands of times slower, and
CUDA_LAUNCH_BLOCKING=1 leaves the GPU idle between any two kernels; set at the top of a file, they hold for
everyone who imports it. debug=True compiles tl.device_assert and checks of integer overflow into a kernel:
more instructions and more registers at every launch.

Fix: set such variables on the command line of the run that is debugged, TRITON_DEBUG=1 for debug=True.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.environment import switched_on
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile, SourceKernel

SEVERITY = "high"
CATEGORY = "performance"
_KERNEL = "\n@triton.jit{}\ndef kernel(x_ptr{}):\n    tl.store(x_ptr, 0.0)\n"
_RUN = "\ndef run(x, debug):\n    kernel[(1,)](x, debug={})\n"
BAD = (
    'import os\nos.environ["TRITON_INTERPRET"] = "1"\n',
    'from os import environ\nenviron.setdefault("TRITON_INTERPRET", "1")\n',
    'import os\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"\n',
    'import os as system\nsystem.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")\n',
    _KERNEL.format("(debug=True)", ""),
    _KERNEL.format("", "") + _RUN.format("True"),
)
GOOD = (
    'import os\nos.environ["TRITON_INTERPRET"] = "0"\n',
    'import os\nif not torch.cuda.is_available():\n    os.environ["TRITON_INTERPRET"] = "1"\n',
    'import os\ninterpreted = os.environ["TRITON_INTERPRET"] == "1"\n',
    'import os\nos.environ["CUDA_LAUNCH_BLOCKING"] = "0"\n',
    'import os\nif os.environ.get("DEBUG"):\n    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\n',
    'settings = {}\nsettings["CUDA_LAUNCH_BLOCKING"] = "1"\n',
    _KERNEL.format("(debug=False)", ""),
    _KERNEL.format("", ", debug: tl.constexpr") + _RUN.format("True"),
    _KERNEL.format("", "") + _RUN.format("debug"),
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Variables that are set at the top of a file, under no condition, and debug=True; tests may do so."""
    if is_trial(file):
        return
    for statement in switched_on(file, "TRITON_INTERPRET"):
        yield Fault(
            statement,
            "This file switches the interpreter on: kernels run on the CPU, thousands of times slower.",
            "Delete the line, and set TRITON_INTERPRET=1 where tests are run.",
        )
    for statement in switched_on(file, "CUDA_LAUNCH_BLOCKING"):
        yield Fault(
            statement,
            "This file makes the CPU wait for every kernel that the process launches.",
            "Delete the line; set the variable on the command line to debug.",
            severity="medium",
        )
    for kernel in file.kernels:
        yield from _in_debug_mode(kernel)


def _in_debug_mode(kernel: SourceKernel) -> Iterator[Fault]:
    if "debug" in kernel.parameters:
        return
    calls = [one for one in kernel.decorators.values() if isinstance(one, ast.Call)]
    calls += [launch.call for launch in kernel.launches]
    for keyword in (keyword for call in calls for keyword in call.keywords):
        match keyword:
            case ast.keyword(arg="debug", value=ast.Constant(value=True)):
                message = f"{kernel.node.name} is compiled with assertions and overflow checks."
                yield Fault(keyword, message, "Leave debug=True out.", severity="low")
