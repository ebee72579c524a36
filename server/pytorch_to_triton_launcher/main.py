"""Which way a launch takes: straight into a ready environment, or through making one."""

from __future__ import annotations

import json
import sys

from pytorch_to_triton_launcher.environment import Problem, become, usable_python
from pytorch_to_triton_launcher.making import make
from pytorch_to_triton_launcher.stand_in import serve

MISSING_REQUIREMENT, INTERRUPTED = 3, 130


def main(arguments: list[str]) -> int:
    """Run a command of the program. Returns only where it could not be started."""
    try:
        if arguments[:1] == ["serve"] and not {"--http", "--help", "-h"} & {*arguments}:
            serve(arguments)
        become(usable_python() or make(), arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Problem as problem:
        message, hint = problem.args
        print(f"error: {message}\n{hint}", file=sys.stderr)
        if "--json" in arguments:
            described = {"kind": "missing_requirement", "message": message, "hint": hint}
            print(json.dumps({"error": described}, indent=2))
    return MISSING_REQUIREMENT
