"""Numbers of rows and of elements of the callers' tensors, in kernels that need them at run time only."""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.compiled_in import is_compiled_in
from pytorch_to_triton.audit.analysis.configurations import names, setting
from pytorch_to_triton.audit.analysis.launched_tensors import callers_size, rank_of, text_of
from pytorch_to_triton.audit.analysis.passed import Extent, size_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.schema.finding import Severity

_KERNEL = """
@triton.jit
def kernel(x_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    f"""
{_KERNEL}
def run(x):
    kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), B=64)
""",
)
GOOD = (
    # The model's width.
    f"""
{_KERNEL}
def run(weight):
    kernel[(1,)](weight, weight.shape[0], B=64)
""",
)
_OF_A_MODEL = re.compile(
    r"weight|bias|expert|embed|(?:^|_|\.)"
    r"(?:w\d*|b|gamma|beta|cos|sin|params?|table|kernel|filters?|lora\w*|cache|scales?)(?:_|$|\.)",
    re.IGNORECASE,
)
"""Names of tensors whose sizes a model fixes."""
_LENGTHS = re.compile(r"seq|len|tok|ctx|context|time|steps|frames|^t$|rows|batch", re.IGNORECASE)
"""Names of sizes that differ from call to call."""
_SEQUENCE = re.compile(r"seq|tok|ctx|context|time", re.IGNORECASE)
"""Of which the last axis may be one, as of a batch of tokens."""


@kernel_rule("medium", "performance", BAD, GOOD)
def runtime_size_as_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """A size that varies from call to call is passed as tl.constexpr.

    The kernel is compiled for each value of a tl.constexpr. A number of rows or of elements takes many
    values, and each new one stops the program for the seconds that compiling takes.

    Fix: make it an ordinary parameter: masks, loops and addresses work with it just the same.
    """
    found: set[str] = set()
    for launch in kernel.launches:
        given = launch.given(kernel)
        for name in (one for one in kernel.parameters if one in kernel.constexprs - found and one in given):
            spelled = size_of(given[name], launch)
            size = callers_size(spelled, launch) if spelled else None
            if not size or is_compiled_in(kernel, name):
                continue
            severity = _severity(name, size, launch, kernel)
            if severity is None:
                continue
            others = _made_from(given[name], launch, kernel) - {name}
            if not any(_rounds_up(given[other], launch) for other in others):
                found.add(name)
                yield Fault(
                    given[name],
                    f"{name} of {kernel.node.name} is tl.constexpr and gets {text_of(size)}: each new value "
                    "recompiles the kernel.",
                    _suggestion(name, others, kernel),
                    severity=severity,
                )


def _severity(name: str, size: Extent, launch: LaunchSite, kernel: SourceKernel) -> Severity | None:
    """What it weighs; a width, which models rarely change, only where no autotuner compiles for it too."""
    if _OF_A_MODEL.search(size.tensor):
        return None
    if _varies(size, launch):
        return "medium"
    if _is_length(name, size, launch):
        return "low"
    return None if "triton.autotune" in kernel.decorators else "info"


def _suggestion(name: str, others: frozenset[str], kernel: SourceKernel) -> str:
    if not any(isinstance(node, ast.Name) and node.id == name for node in kernel.nodes):
        return f"Leave {name} out: the kernel does not read it."
    too = f", and so {' and '.join(sorted(others))}, computed from it" if others else ""
    keyed = name in (names(setting(kernel, "key")) or ())
    retuned = f" Take {name} out of the autotuner's key too: each new value is tuned again." if keyed else ""
    return f"Declare {name} without tl.constexpr{too}.{retuned}"


def _made_from(size: ast.expr, launch: LaunchSite, kernel: SourceKernel) -> frozenset[str]:
    """The tl.constexpr parameters of the launch whose values are computed from a size."""
    same = ast.dump(size)
    return frozenset(
        other
        for other, value in launch.given(kernel).items()
        if other in kernel.constexprs
        and any(isinstance(n, ast.expr) and ast.dump(n) == same for n in launch.flow.origins(value))
    )


def _rounds_up(value: ast.expr, launch: LaunchSite) -> bool:
    """Whether a block of the launch holds the whole size: it is compiled for each power of two as it is."""
    return any(path == "triton.next_power_of_2" for path, _ in launch.flow.calls(value))


def _varies(size: Extent, launch: LaunchSite) -> bool:
    """A first axis of several, or all elements."""
    rank = rank_of(size.tensor, launch)
    return size.axis is None or (size.axis == 0 and rank != 1)


def _is_length(name: str, size: Extent, launch: LaunchSite) -> bool:
    """Whether it is an axis before the last, and named like the length of a sequence."""
    rank = rank_of(size.tensor, launch)
    is_last = size.axis is None or size.axis == -1 or (rank is not None and size.axis == rank - 1)
    return bool(_LENGTHS.search(name)) and (not is_last or bool(_SEQUENCE.search(name)))
