"""What launches and autotuners name or pass, held to the parameters of the kernel."""

import ast
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from pytorch_to_triton.audit.analysis.configurations import (
    FOREIGN_OPTIONS,
    OPTIONS,
    configuration_count,
    configurations,
    names,
    setting,
)
from pytorch_to_triton.audit.examples import jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import defaults_of

_FILL = jit("tl.store(x_ptr + tl.arange(0, B), n)", takes="x_ptr, n, B: tl.constexpr")


def _launched(passed: str) -> str:
    return _FILL + run(f"kernel[(1,)]({passed})")


def _tuned(setting: str = "", config: str = '"B": b', launch: str = "x, 3") -> str:
    configs = f"[triton.Config({{{config}}}, num_warps=4) for b in (64, 128)]"
    return f'\n@triton.autotune({configs}, key=["n"]{setting}){_launched(launch)}'


_TUNED = frozenset({"num_warps", "num_stages", "num_ctas"})


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        _launched("x, x.numel(), BLOCK_SIZE=128"),
        _launched("x, x.numel(), 128, 4"),
        _tuned(config='"BLOCK_SIZE": b'),
        _tuned(', restore_value=["x"]'),
        _tuned().replace('["n"]', '["rows"]'),
        _tuned(launch="x, 3, num_warps=8"),
    ),
    good=(
        _launched("x, n=x.numel(), B=128, num_warps=8, waves_per_eu=2, debug=True"),
        # Some configurations leave the parameter to the launch.
        _tuned(config='"B": b}) for b in [1]] + [triton.Config({', launch="x, 3, B=64"),
    ),
)
def parameter_mismatch(kernel: SourceKernel) -> Iterator[Fault]:
    """A launch or an autotuner names what is no parameter of the kernel, leaves one out, or sets one twice.

    The launch raises an error: most often a parameter was renamed, or a name is misspelled. A name in the key
    of triton.autotune is silently ignored; the configuration that won for the first size is then used for
    all.

    Fix: use the kernel's own parameter names, and for the rest num_warps, num_stages, num_ctas or maxnreg;
    pass one argument for each parameter that has no default, and leave to triton.autotune what it chooses.
    """
    given = kernel.node.args
    if not kernel.plain or given.vararg or given.kwarg or kernel.file.is_for_a_fork:
        return
    yield from _of_autotuner(kernel)
    chosen = [frozenset(configuration.values) for configuration in configurations(kernel)]
    tuned = frozenset.intersection(*chosen) | _TUNED if chosen else frozenset()
    known = {*kernel.parameters} | OPTIONS
    for launch in kernel.launches:
        for keyword in launch.call.keywords:
            if keyword.arg and keyword.arg not in known | FOREIGN_OPTIONS:
                message = f"{kernel.name} has no parameter {keyword.arg}, and Triton has no such option."
                yield Fault(keyword, message, _meant(keyword.arg, known))
        for name, value in {**launch.options, **launch.given}.items():
            if name in tuned:
                message = f"Autotuning sets {name}, and this launch of {kernel.name} passes it again."
                yield Fault(value, message, f"Leave {name} out of the launch.")
        yield from _of_count(kernel, launch)


def _of_autotuner(kernel: SourceKernel) -> Iterator[Fault]:
    """Names in configurations, in the key, and in what is reset, where Triton itself resets it."""
    known = {*kernel.parameters} | OPTIONS | FOREIGN_OPTIONS
    for configuration in configurations(kernel):
        if unknown := sorted(configuration.values.keys() - known):
            known.update(unknown)
            message = (
                f"A configuration sets {' and '.join(unknown)}, and {kernel.name} has no such parameter."
            )
            yield Fault(
                configuration.call, message, " ".join(_meant(name, kernel.constexprs) for name in unknown)
            )
    is_reset = setting(kernel, "pre_hook") is None and (configuration_count(kernel) or 0) > 1
    for option in ("key", *(("reset_to_zero", "restore_value") if is_reset else ())):
        for name, place in (names(setting(kernel, option)) or {}).items():
            if name not in kernel.parameters:
                follows = "it is ignored" if option == "key" else "a launch raises KeyError"
                yield Fault(
                    place,
                    f"{option} of triton.autotune: {kernel.name} has no parameter {name}, {follows}.",
                    _meant(name, kernel.parameters),
                    severity="medium" if option == "key" else None,
                )


def _of_count(kernel: SourceKernel, launch: LaunchSite) -> Iterator[Fault]:
    """Too many arguments, or none for a parameter; nothing where `*` hides some."""
    if any(isinstance(argument, ast.Starred) for argument in launch.call.args):
        return
    count, most = len(launch.call.args), len(kernel.parameters)
    if count > most:
        message = f"{kernel.name} has {most} parameters; this launch passes {count} arguments."
        yield Fault(launch.call, message, "Leave out what the kernel does not take.")
    elif missing := _missing(kernel, launch):
        message = f"This launch of {kernel.name} passes nothing for {', '.join(missing)}."
        yield Fault(launch.call, message, f"Add {', '.join(f'{name}=...' for name in missing)}.")


def _missing(kernel: SourceKernel, launch: LaunchSite) -> list[str]:
    """The parameters that get no argument; empty where other decorators or `**` may pass some."""
    keywords = {keyword.arg for keyword in launch.call.keywords}
    if None in keywords or len(kernel.decorators) > 1:
        return []
    left = kernel.parameters[len(launch.call.args) :]
    return [name for name in left if name not in keywords | defaults_of(kernel.node).keys()]


def _meant(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}?" if close else f"Leave {name} out, or add the parameter."
