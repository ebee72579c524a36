"""What the launcher knows about its checkout, without a parser of TOML: Python has one from 3.11 on."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "server" / "launch.py"
OLDEST_PYTHON = "3.11"
_PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = re.findall(r'^version = "([^"]+)"$', _PROJECT, re.MULTILINE)[0]
_LISTED = re.findall(r"^dependencies = \[(.*?)^\]", _PROJECT, re.MULTILINE | re.DOTALL)[0]
REQUIREMENTS = re.findall(r'"([^"]+)"', _LISTED)


def environments() -> Path:
    """The folder of the environments that launches made, below `places.cache()`: a test compares the two."""
    named = os.environ.get("PYTORCH_TO_TRITON_CACHE")
    if named:
        return Path(named).expanduser().resolve() / "environments"
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    base = "" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME", "").strip()
    return Path(base or usual) / "pytorch-to-triton" / "environments"
