"""Autotuners that choose from too little, miss a size in their key, or change the outputs."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import (
    configuration_count,
    has_hook,
    names,
    setting,
    sizes_of_loops,
)
from pytorch_to_triton.audit.examples import LANES, ROW, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel


def _tuned(configs: str, *steps: str, key: str = '["n"]', more: str = "") -> str:
    body = steps or ("tl.store(x_ptr + tl.arange(0, B), n)",)
    return f"@triton.autotune({configs}, key={key}{more})" + jit(*body)


_MANY = 60
_GRID = '[triton.Config({"B": b}, w, s) for b in [32, 64, 128] for w in WARPS for s in STAGES]'
_ALL = "WARPS = [1, 2, 4, 8, 16]\nSTAGES = (1, 2, 3, 4, 5)\nCONFIGS = " + _GRID + "\n"


@kernel_rule(
    "low",
    "performance",
    bad=(_tuned('[triton.Config({"B": 64})]'),),
    good=(_tuned('[triton.Config({"B": 64})] + [triton.Config({"B": b}) for b in SIZES]'),),
)
def single_configuration(kernel: SourceKernel) -> Iterator[Fault]:
    """triton.autotune is given just one configuration.

    There is nothing to choose, so Triton times nothing; only the wrapper's cost at each launch is left, and
    the block sizes are hidden from the code that computes the grid.

    Fix: pass the block sizes at the launch, or give triton.autotune several configurations.
    """
    configs = setting(kernel, "configs")
    if configs is None or configuration_count(kernel) != 1 or has_hook(ast.walk(configs)):
        return
    yield Fault(
        kernel.decorators["triton.autotune"],
        f"triton.autotune has one configuration for {kernel.name}, so it chooses nothing.",
        "Pass these values at the launch, or add configurations to choose from.",
    )


@kernel_rule(
    "info",
    "performance",
    bad=(_ALL + _tuned("CONFIGS"),),
    good=(_ALL + _tuned("CONFIGS", more=', prune_configs_by={"early_config_prune": prune}'),),
)
def too_many_configurations(kernel: SourceKernel) -> Iterator[Fault]:
    """triton.autotune has very many configurations to try.

    Each one is compiled and timed at the first launch with every new key: about half a second for a small
    kernel, several for one with tl.dot. Hundreds of configurations delay the first call by minutes.

    Fix: keep those that win on real shapes, or drop unlikely ones with `prune_configs_by`.
    """
    count = configuration_count(kernel)
    if count is not None and count > _MANY and setting(kernel, "prune_configs_by") is None:
        yield Fault(
            kernel.decorators["triton.autotune"],
            f"Triton compiles and times {count} configurations of {kernel.name} at the first launch of "
            "every key.",
            "Keep those that win on real shapes, or drop unlikely ones with prune_configs_by.",
        )


_CONFIGS = '[triton.Config({"B": 64}), triton.Config({"B": 128})]'
_LOOP = (
    ROW,
    "total = tl.zeros((B,), tl.float32)",
    "for k in range(0, n, B):",
    "    total += tl.load(x_ptr + k + i, mask=k + i < n, other=0.0)",
    "tl.store(out_ptr, tl.sum(total))",
)


@kernel_rule(
    "medium",
    "performance",
    bad=(_tuned(_CONFIGS, *_LOOP, key="[]"),),
    good=(_tuned(_CONFIGS, *_LOOP, key="KEY"),),
)
def autotune_key_misses_size(kernel: SourceKernel) -> Iterator[Fault]:
    """The key of triton.autotune leaves out a size that the kernel's loop runs to.

    The configuration that won for the first such size is then used for all: a short loop and a long one
    need other block sizes and numbers of stages. With an empty key the very first launch, however small,
    decides for all.

    Fix: add the size to the key; where it changes all the time, add a parameter that holds it rounded up to
    a power of two, and name that.
    """
    key = setting(kernel, "key")
    given = names(key)
    if key is None or given is None or configuration_count(kernel) == 1:
        return
    sizes = sizes_of_loops(kernel)
    if not given and sizes:
        yield Fault(
            key,
            f"The first launch of {kernel.name} chooses the configuration for all sizes: its loop runs "
            f"as long as {', '.join(sizes)} says, and the key is empty.",
            f"Write key={_key(*sizes)}.",
            _key(*sizes),
        )
    missing = [size for size in sizes if not any(size.lower() in name.lower() for name in given)]
    if missing and {*given} & kernel.runtime_parameters:
        text = " and ".join(missing)
        yield Fault(
            key,
            f"The loop of {kernel.name} runs as long as {text} says, and the key does not name "
            f"{text}: what is best for its first value is used for all.",
            f"Add {_key(*missing)[1:-1]} to the key.",
            _key(*given, *missing),
            severity="low",
        )


def _key(*sizes: str) -> str:
    return "[" + ", ".join(f'"{name}"' for name in sizes) + "]"


_ADDED = "tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))"


@kernel_rule(
    "critical",
    "correctness",
    bad=(_tuned(_CONFIGS, LANES, "x = tl.load(x_ptr + i)", "tl.store(x_ptr + i, 2 * x)"),),
    good=(_tuned(_CONFIGS, ROW, _ADDED, more=', reset_to_zero=["out_ptr"]'),),
)
def autotune_without_reset(kernel: SourceKernel) -> Iterator[Fault]:
    """An autotuned kernel changes memory that it also reads, and nothing restores it between trials.

    Triton times every configuration on the caller's own tensors, dozens of times each. A kernel that adds
    to its output, or updates a tensor in place, does so with every trial: the first call for each key
    returns nonsense.

    Fix: name the pointer in triton.autotune's reset_to_zero (a sum that starts at zero) or restore_value
    (an update in place), or let the kernel write to another tensor.
    """
    is_choice = (configuration_count(kernel) or 0) > 1
    if not is_choice and not isinstance(setting(kernel, "configs"), ast.ListComp):
        return
    given = (setting(kernel, option) for option in ("reset_to_zero", "restore_value"))
    lists = [names(passed) for passed in given if passed is not None]
    if None in lists or _may_restore(kernel):
        return
    handled = {name for one in lists for name in one or ()}
    for access, what in _changed_accesses(kernel):
        if access.pointer and access.pointer not in handled:
            handled.add(access.pointer)
            option = "reset_to_zero" if what == "adds to" else "restore_value"
            yield Fault(
                access.call,
                f"{kernel.name} {what} {access.pointer}, and autotuning runs it many times on the "
                "caller's tensor: the first call leaves wrong values.",
                f'Add {option}=["{access.pointer}"] to triton.autotune, or write to another tensor.',
            )


def _may_restore(kernel: SourceKernel) -> bool:
    """Whether a pre_hook of the file, or what `**` hides, may restore what it likes."""
    autotune = kernel.decorators["triton.autotune"]
    hidden = isinstance(autotune, ast.Call) and any(keyword.arg is None for keyword in autotune.keywords)
    return hidden or has_hook(kernel.file.nodes)


def _changed_accesses(kernel: SourceKernel) -> Iterator[tuple[KernelAccess, str]]:
    """Each access that changes what it finds, with a verb: an atomic sum, or a store after a load."""
    same = kernel.same
    stored = {store.pointer for store in kernel.stores}
    for access in kernel.accesses:
        if access.name == "atomic_add" and access.pointer not in stored:
            yield access, "adds to"
        elif access.name == "store" and any(
            one.pointer == access.pointer and same(one.address, access.address)
            for one in kernel.loads
            if _end(one.call) < _end(access.call)
        ):
            yield access, "updates"


def _end(call: ast.Call) -> tuple[int, int]:
    return call.end_lineno or 0, call.end_col_offset or 0
