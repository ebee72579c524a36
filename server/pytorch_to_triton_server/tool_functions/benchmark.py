"""The tool that times kernels: benchmark."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.benchmark import Baseline, Passes
from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import file_of, folder_of, target_of
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.benchmark import Benchmark


async def benchmark(
    call: ToolCall,
    kernel: shared.Kernel,
    reference: shared.Reference = None,
    against: shared.Against = (),
    input: shared.Inputs = (),
    dim: Annotated[
        shared.Texts,
        Field(description="Sizes to time: N=1024,8192, one dim varying at a time; default: a sweep"),
    ] = (),
    at: shared.At = (),
    require: shared.Requirements = (),
    compare: shared.Compare = (),
    init: shared.Init = (),
    passes: Annotated[Passes, Field(description="What to time")] = "forward",
    baseline: Annotated[
        tuple[Baseline, ...],
        Field(description="How to run the reference; default: all three ways"),
    ] = (),
    tf32: Annotated[
        bool, Field(description="Allow TF32 for float32 products, in all implementations")
    ] = False,
    estimate: Annotated[
        str | None, Field(description="A GPU such as H200: its limits from the data sheet; nothing is run")
    ] = None,
    tune: shared.TuneSeconds = None,
    freeze: Annotated[
        str | None, Field(description="Write the kernel to this file with its configurations as a table")
    ] = None,
    into: Annotated[
        str | None, Field(description="Folder for report and charts; default: benchmarks/NAME")
    ] = None,
    force: shared.Force = False,
    seed: shared.Seed = None,
    timeout: shared.Timeout = 120.0,
    python: shared.Python = None,
) -> "Benchmark":
    """Time a kernel on the GPU against eager PyTorch, torch.compile and others, and the GPU's limit.

    Each implementation runs in its own process, in alternating rounds, with a cold L2 cache and new inputs
    for each call; the results of timed calls are checked, and clocks are checked against each other. Reports
    medians with confidence intervals, bandwidth, the share of the limit that memory and arithmetic set, and
    red flags, and writes a report with charts. Needs a GPU, except for `estimate`. Executes the code of all
    files.
    """
    candidate = target_of(kernel, call.boundary).constructed_with(init)
    from pytorch_to_triton.benchmark import benchmark as benchmarking
    from pytorch_to_triton.benchmark.request import BASELINES, BenchmarkRequest
    from pytorch_to_triton.inputs.declaration import parse_options, parse_points
    from pytorch_to_triton_server.machine import choose_runtime

    request = BenchmarkRequest(
        candidate=candidate,
        reference=target_of(reference, call.boundary).constructed_with(init) if reference else None,
        against=tuple(target_of(other, call.boundary).constructed_with(init) for other in against),
        baselines=baseline or BASELINES,
        options=parse_options(input, dim, require, compare),
        points=parse_points(at),
        passes=passes,
        tf32=tf32,
        seed=seed,
        seconds=timeout,
        tune_seconds=tune,
        freeze=file_of(freeze, call.boundary),
        into=folder_of(into, call.boundary),
        force=force,
    )
    if estimate is not None:
        refuse_beside_estimate(against=against, baseline=baseline, tune=tune, freeze=freeze)
        runtime = await choose_runtime(call.worker, "interpreter", python or call.python)
        return await benchmarking.estimate(call.worker, request, estimate, runtime)
    runtime = await choose_runtime(call.worker, "auto", python or call.python)
    return await benchmarking.benchmark(call.worker, request, runtime, call.listener)


def refuse_beside_estimate(**options: object) -> None:
    """Raises BadInput for options that have no meaning when nothing is run."""
    given = [name for name, value in options.items() if value]
    if given:
        raise BadInput(
            f"{' and '.join(given)} cannot be combined with estimate: no kernel is run.",
            "Drop them, or drop estimate on a machine with a GPU.",
        )
