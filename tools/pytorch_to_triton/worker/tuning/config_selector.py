"""Every autotuned launch takes the configuration selected for it, and nothing is tuned on the way; and what
autotuned kernels chose by themselves, read from Triton's own tuners once calls were made.

Triton 3.6 to 3.9 have these alike: a tuner's `cache` (configuration by key), `configs`, `keys`, `arg_names`
and `base_fn`, the `device_caches` of the kernel behind it, whose compiled kernels know their signature, and
`best_config`, which the first launch sets. They differ in `bench_time`, the seconds of the last tuning: from
3.8 on it is not set where pruning leaves one configuration. A key names no tensors, only their dtypes.
"""

import gc
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import triton
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


@dataclass(frozen=True, eq=False)
class TuningSite:
    """An autotuned kernel at one key, with the launch at which it was met first."""

    tuner: Autotuner
    key: dict[str, Any]
    """Sizes by name, dtypes as `x_ptr dtype`."""
    sizes: dict[str, int]
    """The integers among all arguments."""
    configs: tuple[TuningConfig, ...]
    """The author's configurations, after their own pruning."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return str(self.tuner.base_fn.__name__)

    def compiled(self, config: TuningConfig) -> Any:
        """The compiled kernel, not yet loaded; None under the interpreter. Raises what compiling does."""
        return self.launch(config, self.args, {**self.kwargs, "warmup": True})

    def launch(self, config: TuningConfig, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """As the tuner launches the configuration that it chose."""
        chosen = triton_config(config)
        if chosen.pre_hook is not None and not kwargs.get("warmup"):
            chosen.pre_hook(
                {**dict(zip(self.tuner.arg_names, args, strict=False)), **kwargs, **chosen.all_kwargs()}
            )
        return self.tuner.fn.run(*args, **kwargs, **chosen.all_kwargs())

    def refused(self, configs: Sequence[TuningConfig]) -> dict[TuningConfig, str]:
        """Those that the author's own early_config_prune leaves out."""
        prune = self.tuner.early_config_prune
        fresh = [c for c in configs if c not in self.configs]
        if prune is None or not fresh:
            return {}
        named = dict(zip(self.tuner.arg_names, self.args, strict=False))
        left = prune([*self.tuner.configs, *map(triton_config, fresh)], named, **self.kwargs)
        kept = {TuningConfig.of(config) for config in left}
        return {c: "the kernel's own early_config_prune leaves it out" for c in fresh if c not in kept}


class ConfigSelector:
    """Inside, launches of autotuned kernels take what was selected for their site; a new site takes the
    first of its configurations that works."""

    def __init__(self) -> None:
        self.sites: dict[tuple[int, str], TuningSite] = {}
        """In the order of their first launches."""
        self._selected: dict[TuningSite, TuningConfig] = {}

    def select(self, site: TuningSite, config: TuningConfig) -> None:
        """What the site's launches take from now on."""
        self._selected[site] = config

    def selected(self, site: TuningSite) -> TuningConfig:
        """What the site's launches take."""
        return self._selected[site]

    def __enter__(self) -> "ConfigSelector":
        self._run = Autotuner.run
        selector = self

        def run(self: Autotuner, *args: Any, **kwargs: Any) -> Any:
            return selector.launched(self, args, kwargs)

        Autotuner.run = run
        return self

    def __exit__(self, *error: object) -> None:
        Autotuner.run = self._run

    def launched(self, tuner: Autotuner, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One launch, in place of Triton's own."""
        key = key_of(tuner, args, kwargs)
        identity = (id(tuner), json.dumps(key))
        if identity not in self.sites:
            site = site_of(tuner, key, args, kwargs)
            returned = self.first_launch(site)
            self.sites[identity] = site
            return returned
        site = self.sites[identity]
        return site.launch(self._selected[site], args, kwargs)

    def first_launch(self, site: TuningSite) -> Any:
        """With the first configuration that can be launched. Raises what the last raised where none can."""
        for config in site.configs:
            try:
                returned = site.launch(config, site.args, site.kwargs)
            except Exception:
                if config is site.configs[-1]:
                    raise
            else:
                self.select(site, config)
                return returned
        raise ValueError(f"{site.kernel}'s own pruning leaves no configuration")


def triton_config(config: TuningConfig) -> Any:
    """The config as a triton.Config."""
    return triton.Config(dict(config.meta), **config.options)


def arguments(tuner: Autotuner, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The kernel's arguments by name, in the order of a tuner's key: positional ones, then keywords."""
    arguments_by_name = {**dict(zip(tuner.arg_names, args, strict=False)), **kwargs}
    return {name: value for name, value in arguments_by_name.items() if name in tuner.arg_names}


def key_of(tuner: Autotuner, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What Triton distinguishes launches by: the arguments that the author named, and the tensors' dtypes."""
    bound = arguments(tuner, args, kwargs)
    sizes = {name: plain(bound[name]) for name in tuner.keys if name in bound}
    dtypes = {
        f"{n} dtype": str(v.dtype).removeprefix("torch.") for n, v in bound.items() if hasattr(v, "dtype")
    }
    return {**sizes, **dtypes}


def site_of(
    tuner: Autotuner, key: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TuningSite:
    """The site of this launch, its configurations pruned by the author's own functions."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        configs = tuner.prune_configs(kwargs)
    finally:
        tuner.nargs = None
    bound = arguments(tuner, args, kwargs)
    sizes = {name: plain(v) for name, v in bound.items() if type(plain(v)) is int}
    configs = tuple(dict.fromkeys(TuningConfig.of(config) for config in configs))
    return TuningSite(tuner, key, sizes, configs, args, dict(kwargs))
