"""Where things live on disk: the cache, the run folders, and the files that ship with the project."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

PACKAGE = Path(__file__).resolve().parent
WORKER = PACKAGE / "worker"
PROJECT = "pytorch-to-triton"
SOURCE_BYTES = 4 << 20
"""More than any source file written by hand has."""
UNFINISHED = ".part"
"""The ending of files that are being written."""


def cache() -> Path:
    """The user's cache folder of this project; `PYTORCH_TO_TRITON_CACHE` overrides it."""
    override = os.environ.get("PYTORCH_TO_TRITON_CACHE")
    return Path(override).expanduser().resolve() if override else user_cache_path("pytorch-to-triton")


def runs() -> Path:
    """The folder that holds one run folder a job."""
    return cache() / "runs"


def results() -> Path:
    """The folder that holds whole results which were cut on their way to the client."""
    return cache() / "results"


def jobs() -> Path:
    """The folder that holds one file a long call, for servers that start after it."""
    return cache() / "jobs"


def locks() -> Path:
    """The folder that holds one lock file a device."""
    return cache() / "locks"


def docs() -> Path:
    """The folder of fetched documentation: in a checkout that may be written, else in the user's cache.

    `PYTORCH_TO_TRITON_CACHE` overrides the checkout too.
    """
    checkout = PACKAGE.parents[1]
    ours = (checkout / "pyproject.toml").is_file() and os.access(checkout / "docs_cache", os.W_OK)
    if ours and not os.environ.get("PYTORCH_TO_TRITON_CACHE"):
        return checkout / "docs_cache" / "fetched"
    return cache() / "docs"


def tuned() -> Path:
    """The folder that holds one file a tuned kernel file: the configurations that were measured for it."""
    return cache() / "tuned"


def shipped(name: str) -> Path:
    """A file or folder that ships with the project: in the checkout, else in the installed wheel.

    Raises FileNotFoundError where neither holds it.
    """
    checkout = PACKAGE.parents[1] / name
    installed = PACKAGE / "package_data" / name
    for place in (installed, checkout):
        if place.exists():
            return place
    raise FileNotFoundError(f"{name} is neither in the checkout nor in the installed package")


def version() -> str:
    """This project's version: as it is installed, else as its checkout says."""
    try:
        return metadata.version(PROJECT)
    except metadata.PackageNotFoundError:
        import tomllib  # few need it

        text = (PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        found: str = tomllib.loads(text)["project"]["version"]
        return found


def lies_in(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path, its links followed, lies in one of these folders, which are real paths."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)


def read_regular(path: Path, most: int = SOURCE_BYTES) -> bytes:
    """The bytes of a regular file: reading a device or a pipe may never end.

    Raises OSError, also for what is no regular file or has more than `most` bytes.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB", str(path))
    return content


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all, and make its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
