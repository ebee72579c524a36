"""tl.constexpr parameters that are given such numbers, in kernels that need them at run time only."""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.compiled_in import is_compiled_in
from pytorch_to_triton.audit.analysis.launched_tensors import callers_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, position: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + position * B + i, 0.0)
"""
_RUN = """
def run(x, position):
    kernel[(1,)](x, {}, B=64)
"""
_CACHE = """
class Cache:
    def __init__(self, x):
        self.x = x
        self.length = 0

    def append(self, row):
        self.length {} 1

    def clear(self):
        kernel[(1,)](self.x, self.length, B=64)
"""
BAD = (
    _KERNEL + _RUN.format("position"),
    _KERNEL + _CACHE.format("+="),
)
GOOD = (
    _KERNEL.replace("    i =", "    if position > 0:\n        return\n    i =") + _RUN.format("position"),
)
_CHANGES = re.compile(
    r"(?:(?:cur(?:rent)?|start|token|cache|past|write|decode|kv|new)_)?(?:pos|position)"
    r"|(?:(?:time|train|global|cur(?:rent)?|decode)_?)?step(?:_?(?:idx|index|count))?"
    r"|(?:rng_?|random_?|philox_?)?seed|iteration|epoch|(?:past|cached?|kv|context|ctx)_?len(?:gth)?",
    re.IGNORECASE,
)
"""Names of what is another number at each call."""


@kernel_rule("medium", "performance", BAD, GOOD)
def changing_value_as_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """A number that changes from call to call is passed as tl.constexpr.

    The kernel is compiled for each value of a tl.constexpr. A position, a step, a seed or a length that
    grows is another one at nearly every call, and each stops the program for the seconds that compiling
    takes.

    Fix: make it an ordinary parameter: arithmetic, masks and loops work with it just the same.
    """
    reported: set[str] = set()
    for launch in kernel.launches:
        if is_trial(kernel.file, launch.function):
            continue
        for name, value in launch.given(kernel).items():
            if name not in kernel.constexprs - reported or not _changes(name, value, launch, kernel.file):
                continue
            if not is_compiled_in(kernel, name):
                reported.add(name)
                yield Fault(
                    value,
                    f"{name} of {kernel.node.name} is tl.constexpr and gets {ast.unparse(value)}, which "
                    "changes from call to call: each value recompiles the kernel.",
                    f"Declare it as `{name}` without tl.constexpr.",
                )


def _changes(name: str, value: ast.expr, launch: LaunchSite, file: SourceFile) -> bool:
    """Whether names say so of what a caller passes, or another method assigns it."""
    match launch.flow.resolved(value):
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return _changes(name, inner, launch, file)
        case ast.Name(id=given) if given in _without_default(launch):
            return all(_CHANGES.fullmatch(one) for one in (name, given))
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return _grows(attribute, launch, file)
    return False


def _without_default(launch: LaunchSite) -> frozenset[str]:
    """The parameters of the launching function without default, never assigned anew."""
    if launch.function is None:
        return frozenset()
    given = launch.function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = positional[len(positional) - len(given.defaults) :]
    defaults += [one for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
    optional = {one.arg for one in defaults}
    return frozenset(
        name
        for name in callers_parameters(launch) - optional
        if len(launch.scope.bindings.get(name, ())) == 1
    )


def _grows(attribute: str, launch: LaunchSite, file: SourceFile) -> bool:
    """Whether a method of the launching class adds to an attribute, or assigns it and reads it as well."""
    text = f"self.{attribute}"
    classes = (node for node in file.nodes if isinstance(node, ast.ClassDef) and launch.function in node.body)
    for method in (one for owner in classes for one in owner.body if isinstance(one, ast.FunctionDef)):
        nodes = [node for node in ast.walk(method) if method.name != "__init__"]
        uses = {type(one.ctx) for one in nodes if isinstance(one, ast.Attribute) and ast.unparse(one) == text}
        steps = [ast.unparse(one.target) for one in nodes if isinstance(one, ast.AugAssign)]
        if text in steps or {ast.Store, ast.Load} <= uses:
            return True
    return False
