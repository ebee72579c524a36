"""What the launcher must know about the checkout, without a parser of TOML: Python has one from 3.11 on."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "pytorch-to-triton"
OLDEST_PYTHON = (3, 11)
SOURCES = (ROOT / "server", ROOT / "tools")
"""The folders that hold the packages."""
CONSTRAINTS = ROOT / "constraints.txt"


def version() -> str:
    """The project's version. Raises ValueError where pyproject.toml does not have it."""
    found = re.search(r'^version = "([^"]+)"$', _project(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{ROOT / 'pyproject.toml'} names no version")
    return found[1]


def requirements() -> list[str]:
    """What the project needs, as pyproject.toml says it. Raises ValueError where that has no such list."""
    found = re.search(r"^dependencies = \[(.*?)^\]", _project(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{ROOT / 'pyproject.toml'} names no dependencies")
    return re.findall(r'"([^"]+)"', found[1])


def environments() -> Path:
    """The folder of the environments that launches made, in the user's cache folder."""
    return _cache() / "environments"


def _project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def _cache() -> Path:
    """As `places.cache()`; a test holds the two together."""
    override = os.environ.get("PYTORCH_TO_TRITON_CACHE")
    if override:
        return Path(override).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / NAME
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / NAME
