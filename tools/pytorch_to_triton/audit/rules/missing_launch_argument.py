"""A launch passes fewer or more arguments than the kernel has parameters.

The launch raises TypeError before anything runs.

Fix: pass one argument for each parameter that has no default; tl.constexpr parameters count, too.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)
"""
_TUNED = '@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])\n' + _KERNEL
BAD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, BLOCK=128)
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel())
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), 128, 4)
""",
    _TUNED
    + """
def run(x):
    kernel[(1,)](x, x.numel(), 128, 4)
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), BLOCK=128, num_warps=8)
""",
    _KERNEL
    + """
def run(x, sizes, options):
    kernel[(1,)](x, *sizes)
    kernel[(1,)](x, **options)
""",
    _TUNED
    + """
def run(x):
    kernel[(1,)](x, x.numel())
""",
    """
def tuned(function):
    return function

@tuned
"""
    + _KERNEL
    + """
def run(x):
    kernel[(1,)](x)
""",
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr = 16):
    i = tl.arange(0, B)

def run(x):
    kernel[(1,)](x)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Launches of a kernel of this file whose decorators are all known."""
    if not kernel.plain or kernel.node.args.vararg or kernel.node.args.kwarg:
        return
    name = kernel.node.name
    for launch in kernel.launches:
        if any(isinstance(argument, ast.Starred) for argument in launch.call.args):
            continue
        count, most = len(launch.call.args), len(kernel.parameters)
        if count > most:
            message = f"{name} has {most} parameters; this launch passes {count} arguments."
            yield Fault(launch.call, message, "Leave out what the kernel does not take.")
        elif missing := _missing(kernel, launch):
            message = f"This launch of {name} passes nothing for {', '.join(missing)}."
            yield Fault(launch.call, message, f"Add {', '.join(f'{one}=...' for one in missing)}.")


def _missing(kernel: SourceKernel, launch: LaunchSite) -> list[str]:
    """The parameters that get no argument; empty where other decorators or `**` may pass some."""
    keywords = {keyword.arg for keyword in launch.call.keywords}
    if None in keywords or len(kernel.decorators) > 1:
        return []
    given = kernel.node.args
    positional = [*given.posonlyargs, *given.args]
    optional = {parameter.arg for parameter in positional[len(positional) - len(given.defaults) :]}
    optional |= {p.arg for p, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default}
    left = kernel.parameters[len(launch.call.args) :]
    return [name for name in left if name not in keywords | optional]
