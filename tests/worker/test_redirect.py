"""Staged copies are imported in the place of their originals, however a file is imported."""

import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from pytorch_to_triton.worker.loading import redirect
from pytorch_to_triton.worker.loading.staging import stage, without
from pytorch_to_triton.worker.loading.target import Loaded, load
from pytorch_to_triton.worker.loading.target_file import TargetLoadFailed, TargetSyntax


@pytest.fixture(autouse=True)
def imports(tmp_path: Path) -> Iterator[None]:
    """What a test imports or redirects is forgotten after it."""
    path, finders = list(sys.path), list(sys.meta_path)
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:], sys.meta_path[:] = path, finders
    redirect._STAGED.clear()
    redirect._ORIGINALS.clear()
    redirect._TARGETS.clear()
    importlib.invalidate_caches()


def written(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source), encoding="utf-8")
    return path


def staged_for_candidate(path: Path, folder: Path) -> dict[str, str]:
    return {str(path): str(stage(path, without(path.read_text(), ["reference"], ["run"]), folder))}


def loaded_candidate(path: Path, folder: Path, name: str | None = None) -> Loaded:
    return load({"path": str(path), "name": name}, "candidate", staged_for_candidate(path, folder))


def raises_gone() -> Any:
    return pytest.raises(RuntimeError, match="the reference is not available while the candidate runs")


def test_source_with_an_error_is_left_for_loading_to_report(tmp_path: Path) -> None:
    path = written(tmp_path / "broken.py", "def reference(x):\n    return (x\n")
    with pytest.raises(TargetSyntax, match=rf"{path}, line 2: '\(' was never closed"):
        loaded_candidate(path, tmp_path / "staged")


def test_messages_name_the_original_and_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path / "kernel.py", "def reference(x):\n    return x\n\n\nfrom kernel import nothing\n"
    )
    with pytest.raises(TargetLoadFailed) as raised:
        loaded_candidate(path, tmp_path / "staged")
    assert "(line 5)" in str(raised.value)
    assert "staged" not in str(raised.value)
    text = "def half(x):\n    return missing\n\n\nhalf(1)\n"
    with pytest.raises(TargetLoadFailed, match=r"\(line 2\)"):
        loaded_candidate(written(tmp_path / "calling.py", text), tmp_path / "staged_call")


KERNEL = """
    from pathlib import Path
    DATA = Path(__file__).parent / "data.txt"

    def reference(x):
        return x + 1

    def run(x):
        return x, DATA.read_text()
    """


def test_a_sibling_that_imports_the_kernel_gets_the_staged_copy(tmp_path: Path) -> None:
    kernel = written(tmp_path / "user" / "kernel_beside.py", KERNEL)
    written(tmp_path / "user" / "data.txt", "data")
    user = written(
        tmp_path / "user" / "wrapper_beside.py",
        """
        import kernel_beside
        from kernel_beside import reference

        def run(x):
            return reference(x)

        def late(x):
            from kernel_beside import reference as again
            return again(x)
        """,
    )
    copies = staged_for_candidate(kernel, tmp_path / "staged")
    wrapper = load({"path": str(user), "name": "run"}, "candidate", copies)
    assert wrapper.contents.kernel_beside.run(1) == (1, "data")
    assert wrapper.contents.kernel_beside.__file__ == copies[str(kernel)]
    for cheat in (wrapper.call, wrapper.contents.late):
        with raises_gone():
            cheat(1)
    assert redirect.original(copies[str(kernel)]) == kernel
    assert redirect.in_original_terms(f"in {copies[str(kernel)]}:3") == f"in {kernel}:3"


def test_a_link_to_the_kernel_gets_the_staged_copy_too(tmp_path: Path) -> None:
    kernel = written(tmp_path / "real" / "kernel_linked.py", "def reference(x):\n    return x\n")
    user = written(
        tmp_path / "user" / "wrapper_of_link.py",
        "from kernel_linked import reference\ndef run(x):\n    return reference(x)\n",
    )
    (tmp_path / "user" / "kernel_linked.py").symlink_to(kernel)
    copies = staged_for_candidate(kernel, tmp_path / "staged")
    wrapper = load({"path": str(user), "name": "run"}, "candidate", copies)
    with raises_gone():
        wrapper.call(1)


def test_a_package_whose_init_imports_the_target_gets_the_staged_copy(tmp_path: Path) -> None:
    package = tmp_path / "project" / "staged_package"
    written(package / "__init__.py", "from .inner.kernel import reference, run\n")
    written(package / "inner" / "__init__.py", "")
    written(package / "inner" / "offsets.py", "OFFSET = 5\n")
    kernel = written(
        package / "inner" / "kernel.py",
        """
        from .offsets import OFFSET

        def reference(x):
            return x + OFFSET

        def run(x):
            return x + OFFSET
        """,
    )
    found = loaded_candidate(kernel, tmp_path / "staged")
    outer: ModuleType = sys.modules["staged_package"]
    assert found.call(1) == 6
    assert found.contents.__name__ == "staged_package.inner.kernel"
    assert found.contents.__package__ == "staged_package.inner"
    assert outer.run is found.call
    with raises_gone():
        outer.reference(1)
    assert inspect.getsource(found.call) == "def run(x):\n    return x + OFFSET\n"
    assert found.call.__code__.co_firstlineno == 7


def test_a_target_that_is_a_package_s_init_keeps_its_submodules(tmp_path: Path) -> None:
    package = tmp_path / "staged_init"
    written(package / "part.py", "ONE = 1\n")
    kernel = written(
        package / "__init__.py",
        "from .part import ONE\ndef reference(x):\n    return x\ndef run(x):\n    return x + ONE\n",
    )
    found = loaded_candidate(kernel, tmp_path / "copies")
    assert found.call(1) == 2
    with raises_gone():
        found.contents.reference(1)


def test_bytecode_left_beside_a_staged_copy_is_not_run(tmp_path: Path) -> None:
    path = written(tmp_path / "bytecode_kernel.py", "def run(x):\n    return 1\n")
    staged = stage(path, path.read_text(), tmp_path / "staged")
    before = staged.stat()
    staged.write_text("def run(x):\n    return 2\n")
    os.utime(staged, ns=(before.st_atime_ns, before.st_mtime_ns))
    subprocess.run([sys.executable, "-m", "py_compile", str(staged)], check=True)
    stage(path, path.read_text(), tmp_path / "staged")
    os.utime(staged, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load({"path": str(path), "name": None}, "candidate", {str(path): str(staged)}).call(0) == 1
