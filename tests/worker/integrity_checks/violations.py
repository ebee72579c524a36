"""What an author's file must not do is recorded, and does not happen."""

from pathlib import Path

from author import Author, act, kinds

from pytorch_to_triton.worker.wire.observation import SandboxViolation

TOUCHES = {"touches_files"}


def a_violation_names_what_was_done_and_where() -> None:
    author = Author(act("import os", "open(os.path.join(SECRET, 'values.bin'))"))
    author.act()
    (record,) = author.sandbox.violations
    assert record == SandboxViolation(
        kind="touches_files",
        what=f"opens {author.secret.resolve() / 'values.bin'}",
        file=str(author.file),
        line=4,
    )


REFUSED = {
    "native_code": (
        ("import ctypes", "ctypes.CDLL(None)"),
        ("import ctypes", "ctypes.string_at(id(0), 4)"),
        ("import ctypes", "ctypes.cast(id(0), ctypes.py_object)"),
        ("import ctypes", "ctypes.c_int.from_address(id(0))"),
        ("import torch", "torch.ops.load_library('/tmp/none.so')"),
    ),
    "inspects_the_process": (
        ("import gc", "gc.get_objects()"),
        ("import gc", "gc.get_referrers(SECRET)"),
        ("import sys", "sys._getframe(1)"),
        ("import sys", "sys._current_frames()"),
        ("import inspect", "inspect.currentframe()"),
        ("import inspect", "inspect.stack()"),
    ),
    "starts_processes": (
        ("import subprocess", "subprocess.run(['true'])"),
        ("import os", "os.system('true')"),
        ("import os", "os.fork() or os._exit(0)"),
        ("import os", "os.posix_spawn('/bin/true', ['true'], {})"),
        ("import os", "os.execv('/bin/true', ['true'])"),
        ("import os", "os.kill(os.getppid(), 0)"),
        ("import multiprocessing as m", "m.get_context('fork').Process(target=print).start()"),
        ("import multiprocessing as m", "m.get_context('spawn').Process(target=print).start()"),
    ),
    "network": (
        ("import socket", "socket.socket().connect(('127.0.0.1', 9))"),
        ("import urllib.request", "urllib.request.urlopen('http://127.0.0.1:9')"),
    ),
    "tampers": (("import torch", "torch.testing.assert_close.__code__ = (lambda *a, **k: None).__code__"),),
    "hides_operators": tuple(
        ("import torch, torch.utils._mode_utils", way)
        for way in (
            "torch.utils._python_dispatch._disable_current_modes().__enter__()",
            "torch._C._DisableTorchDispatch()",
            "torch.utils._python_dispatch._pop_mode()",
            "torch.utils._mode_utils.no_dispatch().__enter__()",
            "torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Python))",
            "torch.ops.aten.mm.default.redispatch(None, None)",
        )
    ),
}
"""What a candidate may not do, by its kind: an import, and what is then done."""


def whatever_computing_does_not_need_is_refused_by_its_kind() -> None:
    for kind, ways in REFUSED.items():
        for lines in ways:
            assert kinds(act(*lines)) == {kind}, lines


def neither_torch_nor_triton_builds_a_library() -> None:
    ways = (
        ("torch.utils.cpp_extension", "load_inline('evil', 'int f() { return 1; }', functions=['f'])"),
        ("triton.runtime.build", "compile_module_from_src('int f() { return 1; }', 'evil')"),
    )
    for module, way in ways:
        source = act(f"from {module} import {way.partition('(')[0]}", way)
        assert kinds(source) & {"native_code", "starts_processes"}, way


def an_extension_module_of_the_authors_is_not_loaded() -> None:
    author = Author(act("import importlib.util as u", "import candidate, sysconfig"))
    suffix = "".join(Path(__import__("_ctypes").__file__).suffixes)
    library = author.folder / f"evil{suffix}"
    library.write_bytes(b"not even a library")
    author.file.write_text(
        act(
            "from importlib import util",
            f"spec = util.spec_from_file_location('evil', {str(library)!r})",
            "util.module_from_spec(spec)",
        )
    )
    author.act()
    assert {record.kind for record in author.sandbox.violations} == {"native_code"}


def a_secret_file_is_not_opened_by_whatever_way() -> None:
    ways = (
        "open(f'{SECRET}/values.bin')",
        "pathlib.Path(SECRET, 'values.bin').read_bytes()",
        "os.open(f'{KEPT}/../secret/values.bin', os.O_RDONLY)",
        "os.listdir(SECRET)",
        "list(os.scandir(SECRET))",
        "torch.load(f'{SECRET}/values.bin')",
        "numpy.fromfile(f'{SECRET}/values.bin')",
        "os.symlink(SECRET, f'{SECRET}/../link')",
        "os.rename(SECRET, f'{SECRET}/../moved')",
        "worker.read_values(pathlib.Path(SECRET), 'cpu')",
    )
    imports = "import os, pathlib, numpy, torch; from pytorch_to_triton.worker.calls import tensors as worker"
    for way in ways:
        assert kinds(act(imports, way)) == TOUCHES, way


def a_kept_file_is_read_but_not_changed() -> None:
    assert kinds(act("open(f'{KEPT}/values.bin').read()")) == set()
    ways = (
        "open(f'{KEPT}/values.bin', 'w')",
        "os.remove(f'{KEPT}/values.bin')",
        "os.replace(f'{KEPT}/values.bin', f'{KEPT}/../values.bin')",
        "os.replace(__file__, f'{KEPT}/values.bin')",
        "os.mkdir(f'{KEPT}/new')",
        "os.truncate(f'{KEPT}/values.bin', 0)",
        "shutil.rmtree(KEPT)",
    )
    for way in ways:
        author = Author(act("import os, shutil, torch", way))
        author.act()
        assert {record.kind for record in author.sandbox.violations} == TOUCHES, way
        assert (author.kept / "values.bin").read_bytes() == b"1234", way


def no_more_than_twenty_violations_are_kept() -> None:
    author = Author(
        "def act():\n    for i in range(30):\n        try:\n            open(f'{SECRET}/{i}')\n"
        "        except PermissionError:\n            pass\n"
    )
    author.act()
    assert len(author.sandbox.violations) == len(author.reported) == 20


def what_is_refused_is_undone_and_reported_even_when_swallowed() -> None:
    author = Author(
        act("import os", "try:", "    os.remove(f'{KEPT}/values.bin')", "except OSError:", "    pass")
    )
    author.act()
    assert len(author.reported) == 1
    assert (author.kept / "values.bin").exists()
