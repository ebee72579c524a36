"""Job `surroundings`: what torch and Triton find around them: a GPU, an assembler, a C compiler, a cache."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import torch
from triton import knobs

from ..compilation import assemblers
from ..job_report import JobReport

STUB = "#include <Python.h>\nint stub(void) { return PY_MAJOR_VERSION; }\n"
SECONDS = 20


def work(report: JobReport) -> dict[str, Any]:
    """Nothing is raised for what is missing: the `problem` fields say what is wrong, else they are empty."""
    report.during("look for a GPU")
    gpu = gpu_problem()
    report.during("look for a C compiler")
    return {
        "gpu_problem": gpu,
        "assembler": "{path} {version}".format(**found[0]) if (found := assemblers()) else "",
        "compiler": c_compiler() or "",
        "compiler_problem": compiler_problem(),
        "triton_cache": str(Path(knobs.cache.dir or Path.home() / ".triton" / "cache")),
    }


def gpu_problem() -> str:
    """Why torch can use no GPU."""
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        return "this torch is built for the CPU alone"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return str(error).strip().splitlines()[0]
    return "" if torch.cuda.device_count() else "torch sees no device"


def c_compiler() -> str | None:
    """The one that Triton would take."""
    return os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")


def compiler_problem() -> str:
    """Why the stub that launches a kernel cannot be built."""
    compiler = c_compiler()
    if compiler is None:
        return "there is neither gcc nor clang on PATH, and CC is not set"
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    headers = sysconfig.get_paths(scheme=scheme)["include"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "stub.c")
        source.write_text(STUB)
        command = [*compiler.split(), str(source), "-shared", "-fPIC", f"-I{headers}"]
        try:
            done = subprocess.run(
                [*command, "-o", str(Path(folder, "stub.so"))],
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{compiler} does not run: {error}"
    if done.returncode == 0:
        return ""
    if "Python.h" in done.stderr:
        return f"Python.h is not in {headers}"
    complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
    return f"{compiler} fails: {complaint}"
