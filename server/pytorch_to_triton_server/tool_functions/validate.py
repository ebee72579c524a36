"""The tool that checks a kernel against its PyTorch reference: validate."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import target_of
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.verdict import Verdict


async def validate(
    call: ToolCall,
    kernel: shared.Kernel,
    reference: shared.Reference = None,
    input: shared.Inputs = (),
    dim: shared.Dims = (),
    at: Annotated[
        shared.Texts, Field(description="A set of sizes that a GPU tries once: M=8192,N=4096")
    ] = (),
    require: shared.Requirements = (),
    compare: shared.Compare = (),
    init: shared.Init = (),
    case: Annotated[
        shared.Texts, Field(description="Only this case, named as in a report: 'M=1 N=3 x transposed'")
    ] = (),
    backward: Annotated[bool, Field(description="Compare gradients too")] = False,
    allow_torch: Annotated[
        shared.Texts, Field(description="A PyTorch operator that the wrapper may call: mm; `any` allows all")
    ] = (),
    require_int64_offsets: Annotated[
        bool,
        Field(description="Fail a kernel whose 32-bit offsets overflow at 2^31 elements; default: a limit"),
    ] = False,
    require_mixed_dtypes: Annotated[
        bool, Field(description="Fail a kernel that does not take mixed declared dtypes; default: a limit")
    ] = False,
    thorough: shared.Thorough = False,
    device: shared.Device = "auto",
    seed: shared.Seed = None,
    timeout: shared.Timeout = 120.0,
    python: shared.Python = None,
) -> "Verdict":
    """Check that a kernel computes the same as its PyTorch reference, and does the work itself.

    Runs both, in separate processes, on every declared size and dtype, on odd, one-element and empty sizes,
    non-contiguous inputs and special values, and compares each output with float64. Also detects
    out-of-bounds memory accesses, races, results cached between calls, and work left to PyTorch. For each
    wrong case, reports where the wrong elements are and the likely cause. Executes the code of both files.
    """
    from pytorch_to_triton.inputs.declaration import parse_options, parse_points
    from pytorch_to_triton_server.machine import choose_runtime, warm

    candidate = target_of(kernel, call.boundary).constructed_with(init)
    options, points = parse_options(input, dim, require, compare), parse_points(at)
    warm(call.worker, device, python or call.python)
    from pytorch_to_triton.validate import validate as validation  # while the worker starts
    from pytorch_to_triton.validate.request import ValidationRequest

    request = ValidationRequest(
        candidate=candidate,
        reference=target_of(reference, call.boundary).constructed_with(init) if reference else None,
        options=options,
        points=points,
        seed=seed,
        seconds=timeout,
        cases=case,
        allow_torch=frozenset(allow_torch),
        backward=backward,
        require_int64_offsets=require_int64_offsets,
        require_mixed_dtypes=require_mixed_dtypes,
        thorough=thorough,
    )
    runtime = await choose_runtime(call.worker, device, python or call.python)
    return await validation.validate(call.worker, request, runtime, call.listener)
