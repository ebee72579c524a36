"""The first function that launches, with everything that is missing."""

import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import (
    BENCHMARKS,
    TESTS,
    has_comment,
    is_named_near,
    is_trial,
    launchers,
    public_names,
)
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import SourceFile

_COPY = jit(LANES, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)")
_RUN = run('"""Copies x to out."""', "kernel[(1,)](x, out, x.numel(), B=16)").replace(
    "run", "copy_unknown_block"
)
_TEST = "\ndef test_copy():\n    copy_unknown_block(1, 2)\n"
_BENCHMARK = "\ndef measure(x):\n    return triton.testing.do_bench(lambda: copy_unknown_block(x, x))\n"
_REFERS = re.compile(
    r"(?:^|_)(?:ref|reference|torch|pytorch|naive|eager|golden|expected|baseline|native|test|check)(?:_|$)",
    re.IGNORECASE,
)
_MEASURES = re.compile(r"do_bench|perf_report|[Bb]enchmark|timeit|cuda\.Event")
_METHODS = frozenset({"forward", "backward", "setup_context"})
"""What they are for is known; the class says the rest."""


@file_rule(
    "info",
    "best practices",
    # No reference.
    bad=(_COPY + _RUN + _BENCHMARK,),
    good=((_COPY + _RUN).replace("copy_", "_copy_") + _TEST + _BENCHMARK,),
)
def incomplete_kernel_file(file: SourceFile) -> Iterator[Fault]:
    """A file with kernels lacks a reference, a test, a benchmark or a docstring.

    A few lines of PyTorch say what a kernel is meant to compute; a test over odd sizes, all dtypes and
    layouts shows that it does, for a kernel that is right for one shape is often wrong for the next.
    Without a measurement nobody knows whether it is faster than PyTorch, and which shapes and dtypes it
    takes cannot be read from the launch. One finding stands for all such files of a folder.

    Fix: add a function such as `softmax_reference`, a test that compares the two, a benchmark with
    triton.testing.do_bench, and docstrings that say what is computed from which shapes and dtypes.
    """
    first = min(launchers(file), key=lambda function: function.lineno, default=None)
    if first is None or is_trial(file):
        return
    missing = dict(_missing(file))
    if missing:
        yield Fault(first, f"{file.path.name} has {', '.join(missing)}.", " ".join(missing.values()))


def _missing(file: SourceFile) -> Iterator[tuple[str, str]]:
    """What is missing, and what to do about it."""
    imported = [binding for binding in file.scope.bindings if binding not in ("torch", "triton")]
    if not any(_REFERS.search(name) for name in (*imported, *(f.name for f, _ in file.functions))):
        yield "no reference", "Add a few lines of PyTorch that compute the same."
    names = public_names(file)
    has_test = any(function.name.startswith("test_") for function, _ in file.functions)
    if names and not has_test and not is_named_near(names, file.path, *TESTS):
        yield (
            "no test in it or near it",
            "Compare it with PyTorch over odd sizes, all dtypes and layouts that are not contiguous.",
        )
    if names and not _MEASURES.search(file.text) and not is_named_near(names, file.path, *BENCHMARKS):
        yield "no benchmark in it or near it", "Time it against PyTorch with triton.testing.do_bench."
    if silent := list(_without_docstring(file)):
        yield (
            f"no docstring for {' and '.join(silent)}",
            "Say what it computes, and which shapes, dtypes and layouts it takes.",
        )


def _without_docstring(file: SourceFile) -> Iterator[str]:
    """Public functions that launch, with neither docstring nor comment at their head."""
    for function in launchers(file):
        name = function.name
        is_private = name.startswith("_") or name in _METHODS
        if not is_private and not is_trial(file, function) and not has_comment(function, file):
            yield name
