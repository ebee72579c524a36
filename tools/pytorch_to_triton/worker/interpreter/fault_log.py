"""What was seen of kernels while they were watched."""

from dataclasses import dataclass
from typing import Any

KEPT_FAULTS = 20


@dataclass(frozen=True)
class AccessSite:
    """A line of a kernel, and the argument whose elements it touches where that is known."""

    file: str
    line: int
    origin: str | None


class FaultLog:
    """What kernels did that they must not do to memory, and what else is known of them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.faults: list[dict[str, Any]] = []
        """At most KEPT_FAULTS, one for each kind, kernel, line and tensor, with `count` of its lanes:

        kind "load_outside", "store_outside", "race", "missing_barrier" or "false_promise"; kernel; file, line
        and source; tensor, empty for a promise; offset, in elements from the tensor's first; elements, from
        its first to its storage's end; program [x, y, z]; detail, a clause for a reader.
        """
        self.launches_with_atomics: set[str] = set()
        self.stored: set[int] = set()
        """Addresses at which the storages begin that kernels have written to."""
        self.by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.strided: dict[AccessSite, dict[str, Any]] = {}
        """Blocks whose lanes lie a sector or more apart: kernel, file, line, tensor, step_bytes, lanes."""

    def has_stored(self, tensor: Any) -> bool:
        """Whether a kernel has written to the tensor's storage."""
        return tensor.untyped_storage().data_ptr() in self.stored

    def add(self, fault: dict[str, Any]) -> None:
        place = tuple(fault[key] for key in ("kind", "kernel", "file", "line", "tensor"))
        if place in self.by_place:
            self.by_place[place]["count"] += fault["count"]
        elif len(self.faults) < KEPT_FAULTS:
            self.by_place[place] = fault
            self.faults.append(fault)
