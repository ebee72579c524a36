"""The tools about speed, as the catalogue holds them: benchmark."""

# A tool's parameters are its options: as many as it takes.
# ruff: noqa: PLR0913, FBT002

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.benchmark import Baseline, Passes
from pytorch_to_triton_server.names import file_of, folder_of, target_of
from pytorch_to_triton_server.parameters import (
    Force,
    Init,
    Inputs,
    Kernel,
    Python,
    Reference,
    Requirements,
    Seed,
    Timeout,
)

if TYPE_CHECKING:
    from pytorch_to_triton.schema.benchmark import Benchmark
    from pytorch_to_triton_server.catalogue import Call


async def benchmark(
    call: "Call",
    kernel: Kernel,
    reference: Reference = None,
    against: Annotated[
        tuple[str, ...],
        Field(description="Another implementation to time beside it: path.py:name or a kernel file"),
    ] = (),
    input: Inputs = (),
    dim: Annotated[
        tuple[str, ...],
        Field(description="Sizes to time, e.g. N=1024,8192, one dim varying at a time; default: a sweep"),
    ] = (),
    require: Requirements = (),
    init: Init = (),
    passes: Annotated[Passes, Field(description="What to time")] = "forward",
    baseline: Annotated[
        tuple[Baseline, ...], Field(description="A way to run the reference; default: all three")
    ] = (),
    tf32: Annotated[bool, Field(description="Let float32 products run in TF32, for everybody")] = False,
    estimate: Annotated[
        str | None,
        Field(description="A GPU by name, e.g. H200: its data sheet's limits, and nothing is run"),
    ] = None,
    tune: Annotated[
        float | None,
        Field(
            gt=0,
            le=7 * 86400,
            allow_inf_nan=False,
            description="Seconds a size to search for better configurations of autotuned kernels",
        ),
    ] = None,
    freeze: Annotated[
        str | None, Field(description="Write the kernel with its configurations as a table to this file")
    ] = None,
    into: Annotated[
        str | None,
        Field(description="Folder for report and pictures; default: benchmarks/NAME in the current folder"),
    ] = None,
    force: Force = False,
    seed: Seed = None,
    timeout: Timeout = 120.0,
    python: Python = None,
) -> "Benchmark":
    """Time a kernel on the GPU beside eager PyTorch, torch.compile and others, and against the GPU's limit.

    Each callable runs in a process of its own, all in turn, with a cold L2 cache and other inputs in each
    call; what timed calls return is checked, and clocks are checked against each other. Tells medians with
    confidence intervals, bandwidth, the share of what memory and arithmetic allow, and red flags; writes a
    report with pictures. Needs a GPU, but for `estimate`. Executes the code of all files.
    """
    from pytorch_to_triton.benchmark import benchmark as benchmarking
    from pytorch_to_triton.benchmark.request import BASELINES, BenchmarkRequest
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton_server.machine import choose_runtime

    request = BenchmarkRequest(
        candidate=target_of(kernel).constructed_with(init),
        reference=target_of(reference).constructed_with(init) if reference else None,
        against=tuple(target_of(other).constructed_with(init) for other in against),
        baselines=baseline or BASELINES,
        options=parse_options(input, dim, require),
        passes=passes,
        tf32=tf32,
        seed=seed,
        seconds=timeout,
        tune_seconds=tune,
        freeze=file_of(freeze),
        into=folder_of(into),
        force=force,
    )
    if estimate is not None:
        refuse_beside_estimate(against=against, baseline=baseline, tune=tune, freeze=freeze)
        runtime = await choose_runtime(call.worker, "interpreter", python)
        return await benchmarking.estimate(call.worker, request, estimate, runtime)
    runtime = await choose_runtime(call.worker, "auto", python)
    return await benchmarking.benchmark(call.worker, request, runtime, call.listener)


def refuse_beside_estimate(**options: object) -> None:
    """Raises BadInput where options are given that mean nothing when nothing is run."""
    given = [name for name, value in options.items() if value]
    if given:
        raise BadInput(
            f"Beside estimate, {' and '.join(given)} mean nothing: no kernel is run.",
            "Leave them out, or leave out estimate on a machine with a GPU.",
        )
