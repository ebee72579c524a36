"""Sizes that cannot fit are refused with their bytes, and with what fits, before anything is allocated."""

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.targets.memory_limit import (
    MemoryLimit,
    host_memory,
    refuse_cases_over,
    refuse_over,
    refuse_too_large,
)

ROOM = MemoryLimit(32 * 10**9, "the memory")


def declared(shape: str, dims: dict[str, list[int]], requires: tuple[str, ...] = ()) -> Declaration:
    return parse_declaration({"x": f"float32[{shape}]"}, dims, list(requires))


def test_the_refusal_names_the_bytes_the_room_and_sizes_that_fit() -> None:
    declaration = declared("M, N", {"M": [5_000_000], "N": [5_000_000]})
    with pytest.raises(
        BadInput, match=r"at M=5000000 N=5000000 hold 100,000\.0 GB; the memory is 32"
    ) as refusal:
        refuse_over(declaration, {"M": 5_000_000, "N": 5_000_000}, ROOM)
    assert "less than 8.0 GB, such as M=39062 N=39062" in refusal.value.hint


def test_a_fixed_shape_is_refused_without_a_proposal() -> None:
    with pytest.raises(BadInput, match=r"The inputs hold 100,000\.0 GB") as refusal:
        refuse_over(declared("5000000, 5000000", {}), {}, ROOM)
    assert refusal.value.hint == "Declare sizes at which they hold less than 8.0 GB."


def test_what_just_fits_passes_and_one_element_more_does_not() -> None:
    declaration = declared("M", {"M": [8 * 10**9]})
    refuse_over(declaration, {"M": 8 * 10**9}, ROOM)
    with pytest.raises(BadInput):
        refuse_over(declaration, {"M": 8 * 10**9 + 1}, ROOM)


def test_the_smallest_sizes_that_are_allowed_count() -> None:
    assert declared("M", {"M": [1, 64, 10**14]}, ("M > 1",)).nearest({"M": 1}) == {"M": 64}


def test_a_size_to_time_is_refused_by_name_for_what_all_of_its_inputs_hold() -> None:
    half = "float16[M]"
    declaration = parse_declaration({"x": half, "ys": (half,)}, {"M": [8 * 10**9]}, [])
    cases = [
        Case(name=f"M={m}", group="declared", dims={"M": m}, arguments=declaration.arguments({"M": m}))
        for m in (8 * 10**9, 8 * 10**9 + 1)
    ]
    refuse_cases_over(cases[:1], ROOM)
    with pytest.raises(BadInput, match=r"at M=8000000001 hold 32\.0 GB"):
        refuse_cases_over(cases, ROOM)


@pytest.mark.anyio
async def test_no_machine_takes_a_hundred_terabytes(worker: WorkerClient, interpreter: Runtime) -> None:
    assert host_memory().bytes > 0
    with pytest.raises(BadInput, match=r"100,000\.0 GB; this machine's memory is"):
        await refuse_too_large(worker, declared("5000000, 5000000", {}), interpreter)
    await refuse_too_large(worker, declared("M", {"M": [1, 10**14]}), interpreter)
