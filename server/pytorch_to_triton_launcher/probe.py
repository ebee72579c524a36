"""Run by a Python that may serve as the environment: prints what it lacks, as JSON.

Its arguments are the oldest version of Python and the requirements of pyproject.toml.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata, util

MODULES = {"torch": "torch", "triton": "triton"}
"""Builds for other GPUs and channels bear other names as distributions; their modules do not."""


def lacking(oldest: str, requirements: list[str]) -> list[str]:
    """What is absent or too old, in words; empty if nothing is."""
    if sys.version_info[:2] < _numbers(oldest):
        return ["Python {}.{} (needs {} or newer)".format(*sys.version_info[:2], oldest)]
    return [problem for problem in map(_problem, requirements) if problem]


def _problem(requirement: str) -> str | None:
    wanted, _, marker = (part.strip() for part in requirement.partition(";"))
    if "'Linux'" in marker and sys.platform != "linux":
        return None
    found = re.match(r"([A-Za-z0-9._-]+)\s*(.*)", wanted)
    if found is None:
        return f"{wanted} (not understood)"
    name, bounds = found[1], found[2]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        known = name in MODULES and util.find_spec(MODULES[name]) is not None
        return None if known else name
    fits = all(_fits(version, bound.strip()) for bound in bounds.split(",") if bound.strip())
    return None if fits else f"{name} {version} (needs {bounds})"


def _fits(version: str, bound: str) -> bool:
    found = re.match(r"(>=|<=|==|<|>)\s*(.+)", bound)
    if found is None:
        return True
    ours, theirs = _numbers(version), _numbers(found[2])
    length = max(len(ours), len(theirs))
    ours += (0,) * (length - len(ours))
    theirs += (0,) * (length - len(theirs))
    return {
        ">=": ours >= theirs,
        "<=": ours <= theirs,
        "==": ours == theirs,
        "<": ours < theirs,
        ">": ours > theirs,
    }[found[1]]


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release: (2, 13, 0) of 2.13.0+cpu."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


if __name__ == "__main__":
    print(json.dumps(lacking(sys.argv[1], sys.argv[2:])))
