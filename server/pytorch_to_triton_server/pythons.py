"""Which Python runs the code: one by its path, or this one with another release of Triton."""

import hashlib
import os
import re
import secrets
import shutil
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path
from subprocess import STDOUT

import anyio

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton_server.names import path_of

RELEASE = re.compile(r"triton *== *(\d+(?:\.\d+)+\w*)")


async def python_of(named: str | None) -> str:
    """The path of a Python named by path or by command; None: the one that runs this.

    `triton==3.6.0` is the one that runs this with that release of Triton, which the first call installs into
    the cache. Raises BadInput for what cannot be a path, MissingRequirement for a release that cannot be had.
    """
    return ready_python(named) or await _installed(_release(named))


def ready_python(named: str | None) -> str | None:
    """The same, without following a virtual environment's link; None for a release that is not installed yet.

    Raises BadInput for what cannot be a path.
    """
    if not named:
        return sys.executable
    if release := _release(named):
        python = _environment(release) / "bin" / "python"
        return str(python) if python.exists() else None
    command = None if os.sep in named else shutil.which(named)
    return command or str(path_of(named))


def _release(named: str | None) -> str:
    """The release of Triton that is asked for; empty where a Python is named."""
    found = RELEASE.fullmatch(named or "")
    return found[1] if found else ""


def _environment(release: str) -> Path:
    """Where the release lies for this Python."""
    this = hashlib.sha256(f"{sys.executable} {sys.version}".encode()).hexdigest()[:8]
    return places.cache() / "environments" / f"triton-{release}-{this}"


async def _installed(release: str) -> str:
    """The Python of a new environment that has the release, and all else of this one."""
    place = _environment(release)
    print(f"Installing Triton {release} into {place}, for this call and later ones.", file=sys.stderr)
    unfinished = place.with_name(f"{place.name}-{secrets.token_hex(4)}{places.UNFINISHED}")
    try:
        venv.EnvBuilder(symlinks=True).create(unfinished)
        packages = sysconfig.get_path("purelib", "posix_prefix", {"base": str(unfinished)})
        added = "; ".join(f"site.addsitedir({p!r})" for p in sys.path if p.endswith("-packages"))
        Path(packages, "this_python.pth").write_text(f"import site; {added}\n", encoding="utf-8")
        await _install(release, packages)
        if not place.exists():  # Another call may have installed it in the meantime.
            unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return str(place / "bin" / "python")


async def _install(release: str, packages: str) -> None:
    uv = shutil.which("uv")
    installer = [uv, "pip"] if uv and not find_spec("pip") else [sys.executable, "-m", "pip"]
    command = [*installer, "install", "--no-deps", f"triton=={release}"]
    done = await anyio.run_process([*command, "--target", packages], check=False, stderr=STDOUT)
    if done.returncode:
        lines = done.stdout.decode(errors="replace").splitlines()
        errors = [line.strip() for line in lines if "error" in line.lower()]
        raise MissingRequirement(
            f"Triton {release} cannot be installed: {(errors or lines or ['no reason is given'])[-1]}",
            f"`{' '.join([*command, '--dry-run'])}` shows why; --python also takes the path of a Python.",
        )
