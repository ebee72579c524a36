"""Kernels compiled otherwise than their launches say, for the rest of this process."""

import os
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.backends import backends

from .wire.validation import Compilation

FEW_WARPS = 4
DEFAULT_WARPS = 4
"""Of a launch that names none."""


def compile_otherwise(how: Compilation) -> None:
    """Have Triton compile so; call it before anything is compiled, as Triton asks for its assembler once."""
    os.environ.update(how.environment)
    for backend in backends.values():
        compiler: Any = backend.compiler
        compiler.parse_options = with_options(compiler.parse_options, how)
        compiler.hash = with_name(compiler.hash, how)
    if how.one_stage:
        loop: Any = tl.range
        loop.__init__ = init_range_without_stages(loop.__init__)


def with_options(parse: Callable[..., Any], how: Compilation) -> Callable[..., Any]:
    """In the place of a backend's parse_options."""

    def parse_options(backend: Any, options: dict[str, Any]) -> Any:
        if "arch" in options:  # parsed before: a launch's options come a second time when it is compiled
            return parse(backend, options)
        changed = dict(options)
        if how.one_stage:
            changed["num_stages"] = 1
        if how.other_warps:
            changed["num_warps"] = 1 if options.get("num_warps", DEFAULT_WARPS) == FEW_WARPS else FEW_WARPS
        return parse(backend, changed)

    return parse_options


def with_name(hashed: Callable[[Any], str], how: Compilation) -> Callable[[Any], str]:
    """In the place of a backend's hash, a part of the key in Triton's cache: that knows nothing of loops."""
    return lambda backend: f"{hashed(backend)}-one_stage" if how.one_stage else hashed(backend)


def init_range_without_stages(init: Callable[..., None]) -> Callable[..., None]:
    """In the place of tl.range.__init__: a loop that asks for stages of its own takes the launch's."""

    def __init__(loop: Any, *arguments: Any, **options: Any) -> None:
        init(loop, *arguments, **options)
        loop.num_stages = None

    return __init__
