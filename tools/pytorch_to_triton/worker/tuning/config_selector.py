"""Every autotuned launch takes the configuration selected for it, and nothing is tuned on the way."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import triton
from triton.runtime.autotuner import Autotuner

from .tuning_config import TuningConfig, plain


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
