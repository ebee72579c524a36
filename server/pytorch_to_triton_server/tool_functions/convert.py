"""The tool that turns PyTorch into a kernel file: convert."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import folder_of, target_of
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.conversion import Conversion


async def convert(
    call: ToolCall,
    target: shared.Target,
    input: shared.Inputs = (),
    dim: shared.Dims = (),
    at: shared.At = (),
    require: shared.Requirements = (),
    compare: shared.Compare = (),
    init: shared.Init = (),
    example: shared.Example = None,
    into: Annotated[str | None, Field(description="Folder for the results; default: converted/NAME")] = None,
    backward: Annotated[bool, Field(description="Draft gradients too, and compare them")] = False,
    thorough: shared.Thorough = False,
    pure: shared.Pure = False,
    strict: Annotated[bool, Field(description="Refuse if any part would stay in PyTorch")] = False,
    force: shared.Force = False,
    device: shared.Device = "auto",
    seed: shared.Seed = None,
    timeout: shared.Timeout = 300.0,
    python: shared.Python = None,
) -> "Conversion":
    """Turn a PyTorch function or module into a Triton kernel file.

    Drafts the kernel in three stages (correct, optimised, tuned) and validates each against PyTorch; on a
    GPU, a stage must also be no slower than the one before. Writes every stage, the kernel and a report into
    one folder. Replaces an earlier conversion of the same target, and anything else only with force. Executes
    the target's code.
    """
    from pytorch_to_triton.inputs.declaration import parse_options, parse_points
    from pytorch_to_triton_server.machine import choose_runtime, warm

    named = target_of(target, call.boundary).constructed_with(init)
    options, points = parse_options(input, dim, require, compare), parse_points(at)
    warm(call.worker, device, python or call.python)
    from pytorch_to_triton.convert import convert as conversion  # while the worker starts
    from pytorch_to_triton.convert.request import ConversionRequest

    request = ConversionRequest(
        target=named,
        options=options,
        example=target_of(example, call.boundary) if example else None,
        points=points,
        into=folder_of(into, call.boundary),
        force=force,
        seed=seed,
        seconds=timeout,
        backward=backward,
        thorough=thorough,
        pure=pure,
        strict=strict,
    )
    runtime = await choose_runtime(call.worker, device, python or call.python)
    return await conversion.convert(call.worker, request, runtime, call.listener)
