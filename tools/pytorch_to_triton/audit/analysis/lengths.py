"""How many lanes a block has at most, by literals, the launch, defaults and the autotuner."""

import ast

from pytorch_to_triton.audit.analysis.configurations import configurations
from pytorch_to_triton.audit.analysis.launch_sizes import constant
from pytorch_to_triton.audit.call_arguments import whole_number
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel


def most_lanes(length: str, kernel: SourceKernel, launch: LaunchSite) -> int | None:
    """The most that a length of the kernel comes to; None where nothing bounds it."""
    if length not in kernel.parameters:
        return int(length) if length.isdigit() else _of_file(length, kernel)
    given = launch.given(kernel).get(length)
    if given is not None:
        return _most(given, launch)
    if "triton.heuristics" in kernel.decorators:
        return None
    chosen = [one.values.get(length) for one in configurations(kernel)]
    if chosen:
        lengths = [_most(value, launch) if value is not None else None for value in chosen]
        known = [one for one in lengths if one is not None]
        return max(known) if len(known) == len(lengths) else None
    if "triton.autotune" in kernel.decorators:
        return None
    return _default(length, kernel)


def _of_file(name: str, kernel: SourceKernel) -> int | None:
    """What a constant of the file comes to, `BLOCK = tl.constexpr(1024)` among them."""
    binding = kernel.file.scope.find(name)
    match binding.value if binding else None:
        case ast.Call(args=[number]) as call if (kernel.file.scope.path(call.func) or "").endswith(
            ".constexpr"
        ):
            return whole_number(number)
        case value:
            return whole_number(value)


def _default(parameter: str, kernel: SourceKernel) -> int | None:
    given = kernel.node.args
    plain = [one.arg for one in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(reversed(plain), reversed(given.defaults), strict=False))
    defaults |= {
        one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value
    }
    return whole_number(defaults.get(parameter))


def _most(value: ast.expr, launch: LaunchSite) -> int | None:
    """What a value comes to, or the number that `min(1024, ...)` keeps it from passing."""
    if (number := constant(value, launch)) is not None:
        return number
    match launch.flow.resolved(value):
        case ast.Call(func=ast.Name(id="min"), args=[*parts], keywords=[]):
            known = [number for part in parts if (number := _most(part, launch)) is not None]
            return min(known, default=None)
    return None
