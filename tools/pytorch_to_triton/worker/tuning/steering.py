"""Every autotuned launch takes the configuration that it is told to, and nothing is tuned on the way."""

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
    """The whole numbers among all arguments."""
    candidates: tuple[TuningConfig, ...]
    """The author's configurations, after his own pruning."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return str(self.tuner.base_fn.__name__)

    def compiled(self, candidate: TuningConfig) -> Any:
        """The compiled kernel, not yet loaded; None under the interpreter. Raises what compiling does."""
        return self.launch(candidate, self.args, {**self.kwargs, "warmup": True})

    def launch(self, candidate: TuningConfig, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """As the tuner launches the configuration that it chose."""
        config = config_of(candidate)
        if config.pre_hook is not None and not kwargs.get("warmup"):
            config.pre_hook(
                {**dict(zip(self.tuner.arg_names, args, strict=False)), **kwargs, **config.all_kwargs()}
            )
        return self.tuner.fn.run(*args, **kwargs, **config.all_kwargs())

    def refused(self, candidates: Sequence[TuningConfig]) -> dict[TuningConfig, str]:
        """Those that the author's own early_config_prune leaves out."""
        prune = self.tuner.early_config_prune
        fresh = [c for c in candidates if c not in self.candidates]
        if prune is None or not fresh:
            return {}
        named = dict(zip(self.tuner.arg_names, self.args, strict=False))
        left = prune([*self.tuner.configs, *map(config_of, fresh)], named, **self.kwargs)
        kept = {TuningConfig.of(config) for config in left}
        return {c: "the kernel's own early_config_prune leaves it out" for c in fresh if c not in kept}


class Steering:
    """Inside, launches of autotuned kernels take what was chosen for their site; a new site takes the first
    of its configurations that works."""

    def __init__(self) -> None:
        self.sites: dict[tuple[int, str], TuningSite] = {}
        """In the order of their first launches."""
        self._chosen: dict[TuningSite, TuningConfig] = {}

    def choose(self, site: TuningSite, candidate: TuningConfig) -> None:
        """What the site's launches take from now on."""
        self._chosen[site] = candidate

    def chosen(self, site: TuningSite) -> TuningConfig:
        """What the site's launches take."""
        return self._chosen[site]

    def __enter__(self) -> "Steering":
        self._run = Autotuner.run
        steering = self

        def run(self: Autotuner, *args: Any, **kwargs: Any) -> Any:
            return steering.launched(self, args, kwargs)

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
        return site.launch(self._chosen[site], args, kwargs)

    def first_launch(self, site: TuningSite) -> Any:
        """With the first configuration that can be launched. Raises what the last raised where none can."""
        for candidate in site.candidates:
            try:
                returned = site.launch(candidate, site.args, site.kwargs)
            except Exception:
                if candidate is site.candidates[-1]:
                    raise
            else:
                self.choose(site, candidate)
                return returned
        raise ValueError(f"{site.kernel}'s own pruning leaves no configuration")


def config_of(candidate: TuningConfig) -> Any:
    """The candidate as a triton.Config."""
    return triton.Config(dict(candidate.meta), **candidate.options)


def arguments(tuner: Autotuner, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The kernel's arguments by name, in the order of a tuner's key: positional ones, then keywords."""
    given = {**dict(zip(tuner.arg_names, args, strict=False)), **kwargs}
    return {name: value for name, value in given.items() if name in tuner.arg_names}


def key_of(tuner: Autotuner, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What Triton tells launches apart by: the arguments that the author named, and the tensors' dtypes."""
    given = arguments(tuner, args, kwargs)
    sizes = {name: plain(given[name]) for name in tuner.keys if name in given}
    dtypes = {
        f"{n} dtype": str(v.dtype).removeprefix("torch.") for n, v in given.items() if hasattr(v, "dtype")
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
    given = arguments(tuner, args, kwargs)
    sizes = {name: plain(v) for name, v in given.items() if type(plain(v)) is int}
    candidates = tuple(dict.fromkeys(TuningConfig.of(config) for config in configs))
    return TuningSite(tuner, key, sizes, candidates, args, dict(kwargs))
