"""Values that should be tl.constexpr, and values that should not."""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import rounded_to_power
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.configurations import names, setting
from pytorch_to_triton.audit.analysis.launched_tensors import (
    Extent,
    callers_parameters,
    callers_size,
    rank_of,
    size_of,
    text_of,
)
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.schema.finding import Severity
from pytorch_to_triton.triton_api.name_scope import Binding, defaults_of

_COMPILED = frozenset(
    {"arange", "zeros", "full", "static_range", "static_assert", "reshape", "view", "broadcast_to"}
)
_FILLED = frozenset({"zeros", "full"})
"""Of these only the shape has to be known."""
_BUILTINS = frozenset({"range", "min", "max"})


def is_compiled_in(kernel: SourceKernel, name: str) -> bool:
    """Whether a parameter decides shapes or branches, or leaves the kernel's sight."""
    # What is loaded is known to a run only, wherever it was loaded from.
    loads = {access.call for access in kernel.accesses}
    for node in kernel.nodes:
        match node:
            case ast.Call():
                if name in kernel.parameters_in(*_constant_arguments(node, kernel), stop=loads.__contains__):
                    return True
            case ast.If(test=test) | ast.IfExp(test=test):
                if name in kernel.parameters_in(test, stop=loads.__contains__):
                    return True
    return False


def _constant_arguments(call: ast.Call, kernel: SourceKernel) -> list[ast.expr]:
    """The arguments of a call that have to be known when the kernel is compiled, or may have to be."""
    path = kernel.scope.path(call.func)
    function = (path or "").rpartition(".")[2]
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if path is not None and path.startswith("triton."):
        shape = argument(call, 0, "shape")
        return [shape] if function in _FILLED and shape else given if function in _COMPILED else []
    builtin = isinstance(call.func, ast.Name) and call.func.id in _BUILTINS
    method = path is None and isinstance(call.func, ast.Attribute)
    return [] if builtin or method else given


_GLOBAL = jit("tl.store(x_ptr + tl.arange(0, SIZE), 0.0)")


@kernel_rule(
    "critical",
    "correctness",
    bad=(f"SIZE = 4 * 32\n{_GLOBAL}", f"SIZE: tl.constexpr = -int('-128')\n{_GLOBAL}"),
    good=(f"SIZE = tl.constexpr(128)\n{_GLOBAL}",),
)
def global_not_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel reads a global that is not wrapped in tl.constexpr.

    A kernel is compiled once and keeps what it saw, so Triton refuses plain globals. An annotation alone,
    `LOG2E: tl.constexpr = 1.44`, is refused as well. The interpreter accepts both.

    Fix: write `LOG2E = tl.constexpr(1.4426950408889634)`, or pass the value as a tl.constexpr argument.
    """
    reported: set[str] = set()
    for node in kernel.nodes if not kernel.file.is_for_a_fork else ():
        if (
            not isinstance(node, ast.Name)
            or node.id in reported
            or kernel.scope.holder(node.id) is not kernel.file.scope
        ):
            continue
        binding = kernel.scope.find(node.id)
        if binding and _is_plain(binding):
            reported.add(node.id)
            yield Fault(
                node,
                f"Triton refuses the global {node.id} in a kernel: it is not a tl.constexpr.",
                f"Write `{node.id} = tl.constexpr(...)`, or pass it as an argument.",
            )


def _is_plain(binding: Binding) -> bool:
    """Whether it is assigned a value that only Python knows; None is allowed in kernels."""
    match binding.value:
        case None | ast.Constant(value=None):
            return False
        case value:
            return _is_literal(value)


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Tuple() | ast.List() | ast.Dict():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_literal(operand)
        case ast.BinOp(left=left, right=right):
            return _is_literal(left) and _is_literal(right)
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[ast.Constant()]):
            return True
    return False


_ENDS = jit(LANES, "tl.store(x_ptr + i, 0.0, mask=i < n)", takes="x_ptr, n: tl.constexpr, B: tl.constexpr")
_LAUNCH = "kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), B=64)"
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


@kernel_rule(
    "medium",
    "performance",
    bad=(_ENDS + run(_LAUNCH),),
    # The model's width.
    good=(
        _ENDS + run(_LAUNCH.replace("x.numel()", "weight.shape[0]").replace("(x", "(weight"), takes="weight"),
    ),
)
def runtime_size_as_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """A size that varies from call to call is passed as tl.constexpr.

    The kernel is compiled for each value of a tl.constexpr. A number of rows or of elements takes many
    values, and each new one stops the program for the seconds that compiling takes.

    Fix: make it an ordinary parameter: masks, loops and addresses work with it just the same.
    """
    reported: set[str] = set()
    for launch in kernel.launches:
        given = launch.given
        for name in (
            parameter
            for parameter in kernel.parameters
            if parameter in kernel.constexprs - reported and parameter in given
        ):
            spelled = size_of(given[name], launch)
            size = callers_size(spelled, launch) if spelled else None
            if not size or is_compiled_in(kernel, name):
                continue
            severity = _severity(name, size, launch, kernel)
            if severity is None:
                continue
            others = _made_from(given[name], launch, kernel) - {name}
            # A block that holds the whole size is compiled for each power of two as it is.
            if not rounded_to_power([given[other] for other in others], launch):
                reported.add(name)
                yield Fault(
                    given[name],
                    f"{name} of {kernel.name} is tl.constexpr and gets {text_of(size)}: each new value "
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
        for other, value in launch.given.items()
        if other in kernel.constexprs
        and any(isinstance(n, ast.expr) and ast.dump(n) == same for n in launch.flow.origins(value))
    )


def _varies(size: Extent, launch: LaunchSite) -> bool:
    """A first axis of several, or all elements."""
    rank = rank_of(size.tensor, launch)
    return size.axis is None or (size.axis == 0 and rank != 1)


def _is_length(name: str, size: Extent, launch: LaunchSite) -> bool:
    """Whether it is an axis before the last, and named like the length of a sequence."""
    rank = rank_of(size.tensor, launch)
    is_last = size.axis is None or size.axis == -1 or (rank is not None and size.axis == rank - 1)
    return bool(_LENGTHS.search(name)) and (not is_last or bool(_SEQUENCE.search(name)))


_AT = jit("tl.store(x_ptr + at * 64, 0.0)", takes="x_ptr, at: tl.constexpr")
_CACHE = """
class Cache:
    def append(self):
        self.length += 1

    def clear(self):
        kernel[(1,)](self.x, self.length)
"""
_CHANGES = re.compile(
    r"(?:(?:cur(?:rent)?|start|token|cache|past|write|decode|kv|new)_)?(?:pos|position)"
    r"|(?:(?:time|train|global|cur(?:rent)?|decode)_?)?step(?:_?(?:idx|index|count))?"
    r"|(?:rng_?|random_?|philox_?)?seed|iteration|epoch|(?:past|cached?|kv|context|ctx)_?len(?:gth)?",
    re.IGNORECASE,
)
"""Names of what is another number at each call."""


@kernel_rule(
    "medium",
    "performance",
    bad=(_AT.replace("at", "position") + run("kernel[(1,)](x, position)", takes="x, position"),),
    good=(_AT.replace("tl.store(", "if at > 0:\n        return\n    tl.store(") + _CACHE,),
)
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
        for name, value in launch.given.items():
            if name not in kernel.constexprs - reported or not _changes(name, value, launch, kernel.file):
                continue
            if not is_compiled_in(kernel, name):
                reported.add(name)
                yield Fault(
                    value,
                    f"{name} of {kernel.name} is tl.constexpr and gets {ast.unparse(value)}, which "
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
    return frozenset(
        name
        for name in callers_parameters(launch) - defaults_of(launch.function).keys()
        if len(launch.flow.scope.bindings.get(name, ())) == 1
    )


def _grows(attribute: str, launch: LaunchSite, file: SourceFile) -> bool:
    """Whether a method of the launching class adds to an attribute, or assigns it and reads it as well."""
    text = f"self.{attribute}"
    classes = (node for node in file.nodes if isinstance(node, ast.ClassDef) and launch.function in node.body)
    for method in (
        statement for owner in classes for statement in owner.body if isinstance(statement, ast.FunctionDef)
    ):
        nodes = [node for node in ast.walk(method) if method.name != "__init__"]
        uses = {type(one.ctx) for one in nodes if isinstance(one, ast.Attribute) and ast.unparse(one) == text}
        steps = [ast.unparse(one.target) for one in nodes if isinstance(one, ast.AugAssign)]
        if text in steps or {ast.Store, ast.Load} <= uses:
            return True
    return False
