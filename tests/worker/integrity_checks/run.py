"""Runs the checks of the files named in this one process; prints [name, failure] for each.

python run.py NAME...
"""

import contextlib
import importlib.util
import inspect
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from pytorch_to_triton.worker.interpreter import install


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def failure_of(check: Callable[[], None]) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            check()
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    if os.environ.get("TRITON_INTERPRET") == "1":
        install()
    for name in sys.argv[1:]:
        path = Path(__file__).with_name(f"{name}.py")
        module = loaded(path)
        for label, check in list(vars(module).items()):
            if (
                inspect.isfunction(check)
                and check.__module__ == path.stem
                and not inspect.signature(check).parameters
            ):
                print(json.dumps([f"{path.stem}.{label}", failure_of(check)]), flush=True)


if __name__ == "__main__":
    main()
