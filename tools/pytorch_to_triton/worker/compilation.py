"""Kernels compiled otherwise than launches say, for the rest of this process, and by which assemblers."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton import knobs
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


BUNDLED = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
SM_90 = 90
"""Whose assembler counts as Triton's where there is no device."""


def assemblers(architecture: int = SM_90) -> list[dict[str, str]]:
    """The one that Triton takes for `architecture`, then one of each other version, the newest first.

    Empty where Triton finds none of its own.
    """
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        assembler = get_ptxas(architecture)
    except Exception:  # whatever a Triton without NVIDIA's backend, or with a broken one, raises
        return []
    by_version = {
        tool.version: tool for tool in map(knobs.NvidiaTool.from_path, installed_assemblers()) if tool
    }
    others = [by_version[version] for version in by_version if version != assembler.version]
    others.sort(key=lambda tool: [*map(int, tool.version.split("."))], reverse=True)
    return [{"version": tool.version, "path": tool.path} for tool in (assembler, *others)]


def installed_assemblers() -> list[str]:
    """Every program that may be one."""
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [folder / "bin" for folder in (*homes, *sorted(Path("/usr/local").glob("cuda*")))]
    paths = [BUNDLED / "ptxas", BUNDLED / "ptxas-blackwell", *(folder / "ptxas" for folder in folders)]
    paths += [Path(on_path) for on_path in (shutil.which("ptxas"),) if on_path]
    return [str(path) for path in paths if os.access(path, os.X_OK)]
