"""NVIDIA's assemblers on this machine."""

import os
import shutil
from pathlib import Path

import triton
from triton import knobs

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
