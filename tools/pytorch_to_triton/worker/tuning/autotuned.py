"""What autotuned kernels chose: read from Triton's own tuners once calls were made.

Triton 3.6 to 3.9 have these alike: a tuner's `cache` (configuration by key), `configs`, `keys`, `arg_names`
and `base_fn`, the `device_caches` of the kernel behind it, whose compiled kernels know their signature, and
`best_config`, which the first launch sets. They differ in `bench_time`, the seconds of the last tuning: from
3.8 on it is not set where pruning leaves one configuration. A key names no tensors, only their dtypes.
"""

import gc
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from triton.runtime.autotuner import Autotuner

from ..loading.redirect import original
from .tuning_config import TuningConfig, plain

FOREIGN = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy", __name__.partition(".")[0]})
"""Packages whose globals and classes hold no kernels of the user's; the last one is this worker."""
DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "i1": "bool", "u1": "bool",
}  # fmt: skip
"""torch's dtypes by Triton's names for them in a signature."""
OF_TORCH = "torch."


def chosen_configs(modules: Iterable[ModuleType]) -> list[dict[str, Any]]:
    """What each autotuned kernel that `modules` hold chose, an entry a key: `kernel`, `file`, `line` (of its
    first decorator), `key`, `config`, `seconds`.

    `key` holds sizes by name and dtypes as `x_ptr dtype`; names that are unknown are `key 1`, `dtype 1`.
    A kernel with a single configuration chooses nothing: its key is empty. `seconds` is what the tuning
    took, None where that is not known of this key alone.
    """
    return [choice for tuner in tuners_in(modules) for choice in choices_of(tuner)]


def tuners_in(modules: Iterable[ModuleType]) -> Iterator[Autotuner]:
    """Every tuner that can be reached from the modules: through globals of the functions in them, closures,
    classes, instances, containers and wrappers such as triton.heuristics.

    A forked process copies every page that it touches: the walk keeps out of what is not the user's.
    """
    visited = {id(vars(module)) for name, module in list(sys.modules.items()) if is_foreign(name, module)}
    ahead: list[Any] = [*modules]
    while ahead:
        thing = ahead.pop()
        if id(thing) in visited:
            continue
        visited.add(id(thing))
        if issubclass(type(thing), Autotuner):
            yield thing
        elif not (issubclass(type(thing), type) and is_foreign_name(str(thing.__module__))):
            ahead += filter(gc.is_tracked, gc.get_referents(thing))


def is_foreign(name: str, module: Any) -> bool:
    """Whether the entry of sys.modules is a module of Python's, torch's, Triton's or numpy's."""
    return is_foreign_name(name) and isinstance(module, ModuleType)


def is_foreign_name(module: str) -> bool:
    return module.partition(".")[0] in FOREIGN


def choices_of(tuner: Autotuner) -> Iterator[dict[str, Any]]:
    """One tuner's entries; none where it was never launched, or where a library keeps them its own way."""
    if not isinstance(tuner.cache, dict):
        return
    code = tuner.base_fn.__code__
    used = [(named_key(tuner, key), config) for key, config in tuner.cache.items()]
    if len(tuner.configs) == 1 and hasattr(tuner, "best_config"):
        used = [({}, tuner.configs[0])]
    seconds = getattr(tuner, "bench_time", None) if len(tuner.cache) == 1 else None
    for key, config in used:
        yield {
            "kernel": tuner.base_fn.__name__,
            "file": str(original(code.co_filename)),
            "line": code.co_firstlineno,
            "key": key,
            "config": TuningConfig.of(config).as_json,
            "seconds": seconds,
        }


def named_key(tuner: Autotuner, key: Sequence[Any]) -> dict[str, Any]:
    """The parts of a cache's key by name: the values of the tuner's keys, then the tensors' dtypes."""
    sizes = [name for name in tuner.keys if name in tuner.arg_names]
    if len(key) < len(sizes) or any(is_dtype(part) for part in key[: len(sizes)]):
        # An argument that was left to its default is missing in the key.
        values = [part for part in key if not is_dtype(part)]
        sizes = [f"key {number}" for number, _ in enumerate(values, 1)]
    dtypes = [str(part).removeprefix(OF_TORCH) for part in key[len(sizes) :]]
    tensors = tensors_of(tuner, dtypes)
    return {
        **{name: plain(value) for name, value in zip(sizes, key, strict=False)},
        **dict(zip(tensors, dtypes, strict=True)),
    }


def is_dtype(part: Any) -> bool:
    """Whether a part of a key is torch's dtype as text."""
    return isinstance(part, str) and part.startswith(OF_TORCH)


def tensors_of(tuner: Autotuner, dtypes: Sequence[str]) -> list[str]:
    """`x_ptr dtype` for each dtype of a key: by a compiled signature, else by the parameters' names."""
    compiled = {names for names, types in pointers(tuner) if list(types) == list(dtypes)}
    named = tuple(name for name in tuner.arg_names if "ptr" in name.lower())
    signatures = compiled or {named}
    if len(signatures) == 1 and len(names := next(iter(signatures))) == len(dtypes):
        return [f"{name} dtype" for name in names]
    return [f"dtype {number}" for number, _ in enumerate(dtypes, 1)]


def pointers(tuner: Autotuner) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names and dtypes of the pointers of each compiled kernel; nothing under the interpreter."""
    kernel = tuner.fn
    while not hasattr(kernel, "device_caches") and not inspect.isfunction(kernel):
        kernel = kernel.fn
    for caches in getattr(kernel, "device_caches", {}).values():
        for compiled in caches[0].values():
            signature = getattr(getattr(compiled, "src", None), "signature", {})
            types = {n: t for n, t in signature.items() if isinstance(t, str) and t.startswith("*")}
            # A pointer to what may only be read is `*k` and its type.
            short = [t.removeprefix("*").removeprefix("k") for t in types.values()]
            yield tuple(types), tuple(DTYPES.get(t, t) for t in short)
