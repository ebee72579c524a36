"""Runs every check of this folder, those of around.py outside and all others inside `standing_in()`; prints
[name, failure] for each."""

import contextlib
import importlib.util
import inspect
import io
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from pytorch_to_triton.worker.interpreter import install
from pytorch_to_triton.worker.interpreter.fake_cuda import standing_in


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def failure_of(check: Callable[[], None], around: contextlib.AbstractContextManager[None]) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()), around:
            check()
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    install()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem == "run":
            continue
        module = loaded(path)
        for name, check in list(vars(module).items()):
            if (
                inspect.isfunction(check)
                and check.__module__ == path.stem
                and not inspect.signature(check).parameters
            ):
                around = contextlib.nullcontext() if path.stem == "around" else standing_in()
                print(json.dumps([f"{path.stem}.{name}", failure_of(check, around)]), flush=True)


if __name__ == "__main__":
    main()
