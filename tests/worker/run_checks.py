"""Runs the checks of the files named, those of each folder in one process; prints [name, failure] for each.

A check is a function without parameters. Those of `cuda_checks` run on the fake GPU, but for around.py.
The processes are forked once torch is imported.

python run_checks.py FILE...
"""

import contextlib
import importlib.util
import inspect
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType

from triton.runtime.errors import InterpreterError

from pytorch_to_triton.worker.interpreter import install
from pytorch_to_triton.worker.interpreter.fake_cuda import fake_gpu


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(kind: type[BaseException], call: Callable[..., object], *args: object) -> str:
    """The message of the error that a call raises."""
    try:
        call(*args)
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")


refusal = partial(refused, InterpreterError)


def failure_of(check: Callable[[], None], around: contextlib.AbstractContextManager[None]) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()), around:
            check()
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    if os.environ["TRITON_INTERPRET"] == "1":
        install()
    sys.stdout.flush()
    for _, files in groupby(map(Path, sys.argv[1:]), key=lambda path: path.parent):
        if (pid := os.fork()) == 0:
            try:
                run(files)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(pid, 0)[1] != 0:
            sys.exit(1)


def run(files: Iterable[Path]) -> None:
    """The checks of these files, in this process."""
    for path in files:
        sys.path.insert(0, str(path.parent))
        on_fake_gpu = path.parent.name == "cuda_checks" and path.stem != "around"
        for name, check in list(vars(loaded(path)).items()):
            if (
                inspect.isfunction(check)
                and check.__module__ == path.stem
                and not inspect.signature(check).parameters
            ):
                around = fake_gpu() if on_fake_gpu else contextlib.nullcontext()
                print(json.dumps([f"{path.stem}.{name}", failure_of(check, around)]), flush=True)


if __name__ == "__main__":
    main()
