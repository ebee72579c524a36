"""Every autotuned launch takes the configuration selected for it, and nothing is tuned on the way; and what
autotuned kernels chose by themselves, read from Triton's own tuners once calls were made.

Triton 3.6 to 3.9 have these alike: a tuner's `cache` (configuration by key), `configs`, `keys`, `arg_names`
and `base_fn`, `prune_configs`, which is called once for each new key, and `best_config`, which the first
launch sets. They differ in `bench_time`, the seconds of the last tuning: from 3.8 on it is not set where
pruning leaves one configuration.
"""

import gc
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import triton
from triton.runtime.autotuner import Autotuner

from ..loading.redirect import original
from .tuning_config import config_json, plain

FOREIGN = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy", __name__.partition(".")[0]})
"""Packages whose globals and classes hold no kernels of the user's; the last one is this worker."""
NAMED_KEYS: dict[Autotuner, dict[tuple[Any, ...], dict[str, Any]]] = {}
"""Of each tuner, its cache's keys with names."""


def note_keys() -> None:
    """From now on, each key that a kernel is tuned for is noted with its names: tuners keep values alone."""
    prune = Autotuner.prune_configs

    def noted(tuner: Autotuner, kwargs: dict[str, Any]) -> Any:
        parts = key_parts(tuner, tuple((tuner.nargs or {}).values()), kwargs)
        NAMED_KEYS.setdefault(tuner, {})[tuple(parts.values())] = named_key(parts)
        return prune(tuner, kwargs)

    Autotuner.prune_configs = noted


def chosen_configs(modules: Iterable[ModuleType]) -> list[dict[str, Any]]:
    """What each autotuned kernel that `modules` hold chose since `note_keys`, an entry a key: `kernel`,
    `file`, `line` (of its first decorator), `key`, `config`, `seconds`.

    `key` holds sizes by name and dtypes as `x_ptr dtype`. A kernel with a single configuration chooses
    nothing: its key is empty. `seconds` is what the tuning took, None where that is not known of this key
    alone.
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
    names = NAMED_KEYS.get(tuner, {})
    used = [(names[key], config) for key, config in tuner.cache.items() if key in names]
    if len(tuner.configs) == 1 and hasattr(tuner, "best_config"):
        used = [({}, tuner.configs[0])]
    seconds = getattr(tuner, "bench_time", None) if len(tuner.cache) == 1 else None
    for key, config in used:
        yield {
            "kernel": tuner.base_fn.__name__,
            "file": str(original(code.co_filename)),
            "line": code.co_firstlineno,
            "key": key,
            "config": config_json(config),
            "seconds": seconds,
        }


@dataclass(frozen=True, eq=False)
class TuningSite:
    """An autotuned kernel at one key, with the launch at which it was met first."""

    tuner: Autotuner
    key: dict[str, Any]
    """Sizes by name, dtypes as `x_ptr dtype`."""
    sizes: dict[str, int]
    """The integers among all arguments."""
    configs: tuple[triton.Config, ...]
    """The author's configurations, after their own pruning."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def kernel(self) -> str:
        return str(self.tuner.base_fn.__name__)

    def launch(self, config: triton.Config, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """As the tuner launches the configuration that it chose."""
        if config.pre_hook is not None and not kwargs.get("warmup"):
            config.pre_hook({**named(self.tuner, args), **kwargs, **config.all_kwargs()})
        return self.tuner.fn.run(*args, **kwargs, **config.all_kwargs())

    def refused(self, configs: Sequence[triton.Config]) -> dict[triton.Config, str]:
        """Those that the author's own early_config_prune leaves out."""
        prune = self.tuner.early_config_prune
        fresh = [c for c in configs if c not in self.configs]
        if prune is None or not fresh:
            return {}
        kept = {*prune([*self.tuner.configs, *fresh], named(self.tuner, self.args), **self.kwargs)}
        return {c: "the kernel's own early_config_prune leaves it out" for c in fresh if c not in kept}


class ConfigSelector:
    """Inside, launches of autotuned kernels take what was selected for their site; a new site takes the
    first of its configurations that works."""

    def __init__(self) -> None:
        self.sites: dict[tuple[int, str], TuningSite] = {}
        """In the order of their first launches."""
        self._selected: dict[TuningSite, triton.Config] = {}

    def select(self, site: TuningSite, config: triton.Config) -> None:
        """What the site's launches take from now on."""
        self._selected[site] = config

    def selected(self, site: TuningSite) -> triton.Config:
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
        key = named_key(key_parts(tuner, args, kwargs))
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


def named(tuner: Autotuner, args: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(tuner.arg_names, args, strict=False))


def arguments(tuner: Autotuner, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The kernel's arguments by name, in the order of a tuner's key: positional ones, then keywords."""
    given = {**named(tuner, args), **kwargs}
    return {name: value for name, value in given.items() if name in tuner.arg_names}


def key_parts(tuner: Autotuner, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What Triton distinguishes launches by: the arguments that the author named, and the tensors' dtypes."""
    bound = arguments(tuner, args, kwargs)
    sizes = {name: bound[name] for name in tuner.keys if name in bound}
    return {**sizes, **{f"{n} dtype": str(v.dtype) for n, v in bound.items() if hasattr(v, "dtype")}}


def named_key(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts as JSON."""
    return {n: v.removeprefix("torch.") if n.endswith(" dtype") else plain(v) for n, v in parts.items()}


def site_of(
    tuner: Autotuner, key: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TuningSite:
    """The site of this launch, its configurations pruned by the author's own functions."""
    tuner.nargs = named(tuner, args)
    try:
        configs = tuner.prune_configs(kwargs)
    finally:
        tuner.nargs = None
    bound = arguments(tuner, args, kwargs)
    sizes = {name: plain(v) for name, v in bound.items() if type(plain(v)) is int}
    return TuningSite(tuner, key, sizes, tuple(dict.fromkeys(configs)), args, dict(kwargs))
