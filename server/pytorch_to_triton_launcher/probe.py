"""Run by a Python that may serve as the environment: prints what it lacks, as JSON.

Its arguments are requirements as in pyproject.toml, that of Python itself the first.
"""

from __future__ import annotations

import json
import operator
import re
import sys
from importlib import metadata, util

COMPARED = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt, ">": operator.gt}


def lacking(requirement: str) -> str | None:
    """What is absent or of another release, in words; None if nothing is."""
    wanted, _, marker = requirement.partition(";")
    if "'Linux'" in marker and sys.platform != "linux":
        return None
    name, bounds = re.findall(r"([\w.-]+)\s*(.*)", wanted)[0]
    try:
        version = sys.version.split()[0] if name == "Python" else metadata.version(name)
    except metadata.PackageNotFoundError:
        # Builds for other GPUs have other names as distributions, but not as modules.
        return None if name in ("torch", "triton") and util.find_spec(name) else name
    parts = re.findall(r"([<>=]+)\s*([\d.]+)", bounds)
    fits = all(COMPARED[sign](numbers(version), numbers(bound)) for sign, bound in parts)
    return None if fits else f"{name} {version} (needs {bounds.strip()})"


def numbers(version: str) -> list[int]:
    """A release's numbers, 0 for those it does not state: [2, 13, 0, 0] of 2.13.0+cpu."""
    stated = re.findall(r"\d+", re.split(r"[^\d.]", version)[0])
    return [*map(int, stated), 0, 0, 0, 0][:4]


if __name__ == "__main__":
    print(json.dumps([*filter(None, map(lacking, sys.argv[1:]))]))
