"""Whether declared sizes fit into memory at all, checked before any of it is allocated."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.versions import Device, versions
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point, smallest_point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

SHARE = 4
"""Sizes that are proposed take this part of the memory: results and copies need some, too."""
NEVER_TOO_LARGE = 2**30
"""This many bytes fit everywhere, and no device is asked."""
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class MemoryLimit:
    """How much memory there is."""

    bytes: int
    where: str


def host_memory() -> MemoryLimit:
    """This machine's memory, or what this process may take of it."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # there is no limit, or no such file
        total = min(total, int(_CGROUP_LIMIT.read_text()))
    return MemoryLimit(total, "this machine's memory")


def device_memory(device: Device) -> MemoryLimit:
    return MemoryLimit(device.memory_bytes, f"the memory of {device.name}")


async def refuse_too_large(
    worker: WorkerClient, declaration: Declaration, runtime: Runtime, points: Sequence[Point] = ()
) -> None:
    """Raises BadInput where not even the smallest declared sizes fit into the memory that calls run in, nor,
    on a device, the first of the points."""
    smallest = declaration.nearest(smallest_point(declaration.dims))
    is_large = smallest is not None and declaration.bytes_at(smallest) > NEVER_TOO_LARGE
    if not (is_large or points):
        return
    devices = () if runtime.interpreter else (await versions(worker, runtime)).devices
    limit = device_memory(devices[0]) if devices else host_memory()
    if smallest is not None:
        refuse_over(declaration, smallest, limit)
    for point in points if devices else ():
        refuse_over(declaration, point, limit)


def refuse_over(declaration: Declaration, point: Point, limit: MemoryLimit) -> None:
    """Raises BadInput where the inputs at these sizes do not fit."""
    held = declaration.bytes_at(point)
    if held <= limit.bytes:
        return
    smaller = fitting(declaration, point, limit)
    such = f", such as {point_name(smaller)}" if smaller else ""
    raise BadInput(
        over(point, held, limit),
        f"Declare sizes at which they hold less than {gigabytes(limit.bytes // SHARE)}{such}.",
    )


def refuse_cases_over(cases: Iterable[Case], limit: MemoryLimit) -> None:
    """Raises BadInput for the first call whose inputs do not fit."""
    for case in cases:
        held = sum(tensor.bytes for tensor in tensors_in(case.arguments))
        if held > limit.bytes:
            raise BadInput(
                over(case.dims, held, limit),
                f"Name sizes with --dim at which they hold less than {gigabytes(limit.bytes // SHARE)}.",
            )


def fitting(declaration: Declaration, point: Point, limit: MemoryLimit) -> Point | None:
    """The sizes halved, the largest first, until they fit; None where they cannot."""
    while declaration.bytes_at(point) > limit.bytes // SHARE:
        largest_first = sorted((name for name in point if point[name] > 1), key=lambda name: -point[name])
        halved = ({**point, name: point[name] // 2} for name in largest_first)
        allowed = (smaller for smaller in halved if declaration.violated(smaller) is None)
        smaller = next((s for s in allowed if declaration.bytes_at(s) < declaration.bytes_at(point)), None)
        if smaller is None:
            return None
        point = smaller
    return point


def over(point: Point, held: int, limit: MemoryLimit) -> str:
    at = f" at {point_name(point)}" if point else ""
    return f"The inputs{at} hold {gigabytes(held)}; {limit.where} is {gigabytes(limit.bytes)}."


def gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
