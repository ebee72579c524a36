"""Which folders a call may name: over MCP those that the server was given, on the command line any."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput

_SHIPPED = ("reference_kernels", "docs_cache/guides", "references")


@dataclass(frozen=True)
class Boundary:
    """Folders whose files may be read and written; this project's own may be read as well.

    It holds for the paths that a call names, symbolic links followed. Code that a call runs has all the
    rights of its user.
    """

    roots: tuple[Path, ...]
    """Real paths."""

    @classmethod
    def around(cls, folders: Iterable[Path]) -> "Boundary":
        """The boundary of these folders, each as a real path."""
        return cls(tuple(dict.fromkeys(real(folder) for folder in folders)))

    def readable(self, path: Path) -> Path:
        """The path itself. Raises BadInput where its real path lies elsewhere."""
        return self._inside(path, (*self.roots, *own_folders()))

    def writable(self, path: Path) -> Path:
        """The path itself. Raises BadInput where its real path lies elsewhere."""
        return self._inside(path, self.roots)

    def holds(self, path: Path) -> bool:
        """Whether the path's real path lies in one of the folders."""
        return places.lies_in(path, self.roots)

    def _inside(self, path: Path, folders: Iterable[Path]) -> Path:
        if places.lies_in(path, folders):
            return path
        where = real(path)
        leads = f" leads to {where}, which" if where != path else ""
        raise BadInput(
            f"{path}{leads} lies outside of the folders that this server may use: {folder_list(self.roots)}.",
            "Name a path in one of them; the server's option --allow-dir adds a folder.",
        )


ANYWHERE = Boundary((Path("/"),))


def own_folders() -> tuple[Path, ...]:
    """Where this project's own kernels, guides, results and runs lie."""
    return (*(real(places.shipped(name)) for name in _SHIPPED), real(places.results()), real(places.runs()))


def real(path: Path) -> Path:
    """With every symbolic link followed, whether or not it exists."""
    return Path(os.path.realpath(path))


def folder_list(folders: Iterable[Path]) -> str:
    return ", ".join(map(str, folders))
