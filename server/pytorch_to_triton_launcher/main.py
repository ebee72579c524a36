"""Which way a launch takes: straight into a ready environment, or through making one."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence

from pytorch_to_triton_launcher.environment import Environment, find
from pytorch_to_triton_launcher.making import Making, watch
from pytorch_to_triton_launcher.problem import Problem
from pytorch_to_triton_launcher.session import Session

MISSING_REQUIREMENT = 3
INTERRUPTED = 130
PATIENCE_SECONDS = 0.3
"""How long environments are looked at before the client is answered meanwhile."""
NOT_STDIO = ("--http", "--help", "-h")


def main(arguments: Sequence[str]) -> int:
    """Run a command of the program. Returns only where it could not be started."""
    given = list(arguments)
    making = Making()
    search = _Search(making)
    try:
        if given[:1] == ["serve"] and not set(NOT_STDIO) & set(given):
            found = search.early()
            if found is None:
                return Session(search, making, given[1:]).run()
        else:
            watch(making, search.thread)
            found = search.result()
    except Problem as problem:
        return _refuse(problem, as_json="--json" in given)
    except KeyboardInterrupt:
        making.end()
        return INTERRUPTED
    _start(found, given)
    return 0


class _Search:
    """Finding an environment, or making it, in a thread of its own."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._decided = threading.Event()
        self._found: Environment | None = None
        self._problem: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def early(self) -> Environment | None:
        """The environment if it is found at once."""
        self.thread.join(PATIENCE_SECONDS)
        return self._found

    def must_make(self) -> bool:
        """Whether there is none and it is being made, as soon as that is known."""
        self._decided.wait()
        return self._found is None and self._problem is None

    def result(self) -> Environment:
        """The environment, as soon as there is one. Raises Problem."""
        self.thread.join()
        if self._problem is not None:
            raise self._problem
        assert self._found is not None
        return self._found

    def _run(self) -> None:
        try:
            self._found = find()
            self._decided.set()
            self._found = self._found or self._making.run()
        except BaseException as problem:  # raised where it is waited for
            self._problem = problem
        finally:
            self._decided.set()


def _start(environment: Environment, arguments: list[str]) -> None:
    """Become the program."""
    command = environment.command(arguments)
    sys.stderr.flush()
    os.execve(command[0], command, environment.variables())


def _refuse(problem: Problem, *, as_json: bool) -> int:
    print(f"error: {problem.message}\n{problem.hint}", file=sys.stderr)
    if as_json:
        described = {"kind": "missing_requirement", "message": problem.message, "hint": problem.hint}
        print(json.dumps({"error": described}, indent=2))
    return MISSING_REQUIREMENT
