"""The public names of one Triton: what it has, what each takes, and what Triton itself says about it."""

import hashlib
import os
import sys
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.value import Value

Kind = Literal["function", "builtin", "class", "method", "property", "constant", "dtype", "module"]
"""builtin: the compiler provides it; it can be called in kernels only."""
ParameterKind = Literal[
    "positional_only", "positional_or_keyword", "var_positional", "keyword_only", "var_keyword"
]
Standing = Literal["current", "deprecated", "removed"]
"""deprecated: every call warns. removed: the name is still there, and every call is refused."""

TENSOR = "triton.language.tensor"
DESCRIPTOR = "triton.language.tensor_descriptor"

_DISTRIBUTIONS = ("triton", "pytorch-triton", "pytorch-triton-rocm")
_SECONDS = 120.0


class PublicParameter(Value):
    """One parameter that a caller may give; those that the compiler adds are left out."""

    name: str
    kind: ParameterKind
    default: str | None
    """As source text, `...` where only its being there is known; None where there is none."""

    @property
    def required(self) -> bool:
        """Whether every call must give it."""
        return self.default is None and self.kind not in ("var_positional", "var_keyword")


class PublicName(Value):
    """One public name."""

    kind: Kind
    parameters: tuple[PublicParameter, ...] | None
    """Without a method's own object; None where no signature can be had."""
    doc: str = ""
    """Triton's own docstring; a constant's value."""
    members: tuple[str, ...] | None = None
    """The names in a module or class, in order; None where it was not read, so that any may exist."""
    aliases: tuple[str, ...] = ()
    """Other dotted paths of the same thing."""
    symbols: dict[str, str] = Field(default_factory=dict)
    """For libdevice: the device function behind each combination of dtypes, {"fp32": "__nv_tanhf"}."""
    standing: Standing = "current"

    @property
    def keywords(self) -> tuple[str, ...]:
        """The parameters that a call may give by name, in order."""
        by_name = ("positional_or_keyword", "keyword_only")
        return tuple(parameter.name for parameter in self.parameters or () if parameter.kind in by_name)


class Surface(Value):
    """All public names of a Triton but Gluon's."""

    version: str
    entries: dict[str, PublicName]
    """By dotted path, `triton.language.load`."""
    complete: bool = True
    """Whether what is not here certainly is not there; False for what stands in for a newer Triton."""

    @cached_property
    def canonical(self) -> dict[str, str]:
        """The path in `entries` of every dotted path, aliases included."""
        own = {path: path for path in self.entries}
        return own | {alias: path for path, entry in self.entries.items() for alias in entry.aliases}

    def find(self, path: str) -> PublicName | None:
        """The entry of a dotted path or an alias; None where this Triton has no such name."""
        return self.entries.get(self.canonical.get(path, ""))

    def lists(self, owner: str) -> bool:
        """Whether every public name in a module or class is known, so that another is a mistake."""
        entry = self.find(owner)
        if entry is None or entry.members is None:
            return False
        return entry.kind == "module" or self.canonical[owner] in (TENSOR, DESCRIPTOR)


async def surface(worker: WorkerClient, runtime: Runtime) -> Surface:
    """The names of the Triton that `runtime.python` has; read once, then kept in the cache.

    Raises MissingRequirement where it cannot be read.
    """
    file = await _cache_file(worker, runtime)
    try:
        return Surface.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, ValidationError):
        names = await _read(worker, runtime)
    places.write_atomically(file, names.model_dump_json())
    return names


def installed_version() -> str | None:
    """The version of the Triton installed here, read without importing it; None where there is none."""
    for distribution in _DISTRIBUTIONS:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


async def _cache_file(worker: WorkerClient, runtime: Runtime) -> Path:
    """The file for this Python and its Triton."""
    own = installed_version() if runtime.python == sys.executable else None
    triton = own or (await versions(worker, runtime)).triton
    return places.cache() / "api" / f"{triton}-{_key(runtime)}.json"


def _key(runtime: Runtime) -> str:
    """Of this Python, and of the job that reads its Triton as it is now."""
    job = (places.WORKER / "jobs" / "triton_api.py").read_bytes()
    return hashlib.sha256(os.fsencode(runtime.python) + b"\0" + job).hexdigest()[:16]


async def _read(worker: WorkerClient, runtime: Runtime) -> Surface:
    # The interpreter replaces functions of triton.language by its own, whose signatures say nothing.
    compiled = runtime.model_copy(update={"interpreter": False})
    outcome = await worker.ask(Job(kind="triton_api"), compiled, seconds=_SECONDS)
    if outcome.answer is None:
        why = outcome.failure.message if outcome.failure else outcome.detail
        raise MissingRequirement(
            f"The names of Triton cannot be read with {runtime.python}: {why}.",
            f"Run it by hand: {runtime.python} -P {places.WORKER / 'bootstrap.py'} {outcome.folder}",
        )
    return Surface.model_validate(outcome.answer)
