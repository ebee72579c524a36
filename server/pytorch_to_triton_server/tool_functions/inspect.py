"""The tool that reports what the compiler made of kernels: inspect."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.schema.compiled import TextKind
from pytorch_to_triton.schema.profile import Profiler
from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import target_of
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.compiled import Inspection


async def inspect(
    call: ToolCall,
    target: shared.Kernel,
    arch: Annotated[
        str | None, Field(description="The GPU to compile for; default: the one here, else sm_90")
    ] = None,
    reference: Annotated[
        str | None, Field(description="The file that declares the inputs, if another")
    ] = None,
    input: shared.Inputs = (),
    dim: Annotated[shared.Texts, Field(description="A dimension's size: N=4096; default: the largest")] = (),
    init: shared.Init = (),
    kernel: Annotated[
        str | None, Field(description="Only this kernel: its name, or its label in an earlier result")
    ] = None,
    text: Annotated[
        TextKind | None, Field(description="Show a page of this compiler output of the first kernel")
    ] = None,
    page: Annotated[int, Field(ge=1, description="Which page of it, 200 lines each")] = 1,
    profile: Annotated[
        Profiler | None, Field(description="Run it on the GPU under Nsight Compute (ncu) or Proton")
    ] = None,
    backward: Annotated[bool, Field(description="Compile the backward pass too")] = False,
    what_if: Annotated[
        shared.Texts, Field(description="Other launch options to compile too: num_warps=8,num_stages=2")
    ] = (),
    timeout: shared.Timeout = 120.0,
    python: shared.Python = None,
) -> "Inspection":
    """Show what the compiler makes of a target's kernels, for any GPU, even without one.

    Compiles each kernel that one call launches, in every autotuner configuration, and reports registers,
    spills, shared memory, occupancy, widths of global loads and stores, tensor-core instructions,
    asynchronous copies, instructions by kind, an estimate of whether memory or instructions bind, and the
    compiler's output page by page. Remarks point out likely problems, with source lines. With `profile` on a
    GPU, also bandwidth, achieved occupancy and stall reasons. Executes the file's code.
    """
    candidate = target_of(target, call.boundary).constructed_with(init)
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton.inspect import inspect as inspecting
    from pytorch_to_triton.inspect.compiling import alternative
    from pytorch_to_triton_server.machine import choose_runtime

    request = inspecting.InspectionRequest(
        candidate=candidate,
        reference=target_of(reference, call.boundary).constructed_with(init) if reference else None,
        options=parse_options(input, dim),
        arch=arch,
        kernel=kernel,
        text=text,
        page=page,
        profile=profile,
        backward=backward,
        what_if=tuple(map(alternative, what_if)),
        seconds=timeout,
    )
    runtime = await choose_runtime(call.worker, "auto", python or call.python)
    return await inspecting.inspect(call.worker, request, runtime, call.listener)
