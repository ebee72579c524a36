"""Every tool of this project, once: MCP and the command line are two views of this tuple.

A tool is one async function. Its signature, after the first parameter, is both its MCP schema and its
command; its docstring is what both say about it. Importing this module loads no tool.
"""

# A tool's parameters are its options: as many as it takes.
# ruff: noqa: PLR0913, FBT002

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, create_model

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.audit_tools import audit
from pytorch_to_triton_server.docs_tools import docs_fetch, docs_read, docs_search, docs_status
from pytorch_to_triton_server.inspect_tools import inspect as inspect_kernels
from pytorch_to_triton_server.names import folder_of, target_of
from pytorch_to_triton_server.parameters import (
    Choice,
    Dims,
    Force,
    Init,
    Inputs,
    Kernel,
    Python,
    Reference,
    Requirements,
    Seed,
    Thorough,
    Timeout,
)
from pytorch_to_triton_server.speed_tools import benchmark

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient
    from pytorch_to_triton.jobs.progress import ProgressListener
    from pytorch_to_triton.schema.conversion import Conversion
    from pytorch_to_triton.schema.verdict import Verdict
    from pytorch_to_triton_server.machine import Machine


@dataclass(frozen=True)
class Call:
    """What every call of a tool is given beside its arguments."""

    worker: "WorkerClient"
    listener: "ProgressListener"
    unattended: bool = False
    """Nobody may have been asked whether to make it, so it starts no program that it names: editors make the
    calls of read-only tools by themselves."""


async def validate(
    call: Call,
    kernel: Kernel,
    reference: Reference = None,
    input: Inputs = (),
    dim: Dims = (),
    require: Requirements = (),
    init: Init = (),
    case: Annotated[
        tuple[str, ...],
        Field(description="Run only this case, as a report names it, e.g. 'M=1 N=3 x transposed'"),
    ] = (),
    backward: Annotated[bool, Field(description="Compare gradients too")] = False,
    allow_torch: Annotated[
        tuple[str, ...],
        Field(description="A PyTorch operator that the kernel's wrapper may call, e.g. mm; `any` allows all"),
    ] = (),
    require_int64_offsets: Annotated[
        bool,
        Field(description="Fail a kernel whose 32-bit offsets end at 2^31 elements; else that is a limit"),
    ] = False,
    require_mixed_dtypes: Annotated[
        bool,
        Field(description="Fail a kernel that does not compute mixtures of claimed dtypes; else a limit"),
    ] = False,
    thorough: Thorough = False,
    device: Choice = "auto",
    seed: Seed = None,
    timeout: Timeout = 120.0,
    python: Python = None,
) -> "Verdict":
    """Check that a kernel computes what its PyTorch reference computes, and that it does so itself.

    Runs both, in processes of their own, on every declared size and dtype, on odd, one-element and empty
    sizes, non-contiguous inputs and special values, and compares each output with float64. Also wrong:
    memory accesses out of bounds, races, results cached between calls, work left to PyTorch. A wrong case
    says where the wrong elements lie and what the likely cause is. Executes the code of both files.
    """
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton.validate import validate as validation
    from pytorch_to_triton.validate.request import ValidationRequest
    from pytorch_to_triton_server.machine import choose_runtime, warm

    warm(call.worker, device, python)
    request = ValidationRequest(
        candidate=target_of(kernel).constructed_with(init),
        reference=target_of(reference).constructed_with(init) if reference else None,
        options=parse_options(input, dim, require),
        seed=seed,
        seconds=timeout,
        cases=case,
        allow_torch=frozenset(allow_torch),
        backward=backward,
        require_int64_offsets=require_int64_offsets,
        require_mixed_dtypes=require_mixed_dtypes,
        thorough=thorough,
    )
    runtime = await choose_runtime(call.worker, device, python)
    return await validation.validate(call.worker, request, runtime, call.listener)


async def convert(
    call: Call,
    target: Annotated[
        str, Field(description="What to convert: path.py:name for a function or nn.Module, or a kernel file")
    ],
    input: Inputs = (),
    dim: Dims = (),
    require: Requirements = (),
    init: Init = (),
    into: Annotated[
        str | None, Field(description="Folder for the results; default: converted/NAME in the current folder")
    ] = None,
    thorough: Thorough = False,
    force: Force = False,
    device: Choice = "auto",
    seed: Seed = None,
    timeout: Timeout = 300.0,
    python: Python = None,
) -> "Conversion":
    """Turn a PyTorch function or module into a Triton kernel file.

    Drafts the kernel in three stages (correct, optimised, tuned) and validates each against PyTorch; on a
    GPU a stage must also not be slower than the one before. Writes every stage, the kernel and a report into
    one folder; an earlier conversion of the same target is replaced, anything else only with force. Executes
    the target's code.
    """
    from pytorch_to_triton.convert import convert as conversion
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton_server.machine import choose_runtime, warm

    warm(call.worker, device, python)
    request = conversion.ConversionRequest(
        target=target_of(target).constructed_with(init),
        options=parse_options(input, dim, require),
        into=folder_of(into),
        force=force,
        seed=seed,
        seconds=timeout,
        thorough=thorough,
    )
    runtime = await choose_runtime(call.worker, device, python)
    return await conversion.convert(call.worker, request, runtime, call.listener)


async def device(call: Call) -> "Machine":
    """Say what kernels run on here: Python, torch, Triton, GPUs, and what `auto` would choose."""
    from pytorch_to_triton_server.machine import look

    return await look(call.worker)


@dataclass(frozen=True)
class Tool:
    """One tool, as both faces need it."""

    name: str
    """An underscore is a space on the command line: docs_search is `docs search`."""
    title: str
    function: Callable[..., Awaitable[Any]]
    """Takes a Call and the tool's arguments; returns a Value with `summary` and `next_step`."""
    read_only: bool
    """It changes nothing, runs none of the user's code and, over MCP, starts no program that it is given."""
    destructive: bool
    """It may overwrite what it has not written itself."""
    is_yes: Callable[[Any], bool]
    """Whether a result means yes: exit status 0; else it is 1."""
    open_world: bool = False
    """It asks servers of others."""

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The function's parameters without the call."""
        return tuple(inspect.signature(self.function).parameters.values())[1:]

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in their types, without those left at their defaults. Raises BadInput."""
        fields: dict[str, Any] = {
            parameter.name: (
                parameter.annotation,
                ... if parameter.default is parameter.empty else parameter.default,
            )
            for parameter in self.parameters
        }
        model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        try:
            checked = model.model_validate(arguments)
        except ValidationError as error:
            raise refusal_of(error, self.name, fields) from error
        return {name: getattr(checked, name) for name in checked.model_fields_set}


def refusal_of(error: ValidationError, tool: str, names: Iterable[str]) -> BadInput:
    """What is wrong with a tool's arguments, one line each; `names` are those that it takes."""
    lines = []
    for fault in error.errors():
        name = ".".join(str(part) for part in fault["loc"])
        unknown = fault["type"] == "extra_forbidden"
        lines.append(f"{name}: {'no such argument' if unknown else fault['msg']}.")
    return BadInput("\n".join(lines), f"{tool} takes {', '.join(names) or 'no arguments'}.")


TOOLS = (
    Tool(
        name="validate",
        title="Validate a Triton kernel",
        function=validate,
        read_only=False,
        destructive=False,
        is_yes=lambda verdict: verdict.verdict == "passed",
    ),
    Tool(
        name="convert",
        title="Convert PyTorch to Triton",
        function=convert,
        read_only=False,
        destructive=True,
        is_yes=lambda conversion: conversion.verdict == "converted",
    ),
    Tool(
        name="benchmark",
        title="Benchmark a Triton kernel",
        function=benchmark,
        read_only=False,
        destructive=True,
        is_yes=lambda result: result.verdict in ("faster", "estimated"),
    ),
    Tool(
        name="inspect",
        title="What the compiler makes of kernels",
        function=inspect_kernels,
        read_only=False,
        destructive=False,
        is_yes=lambda inspection: inspection.verdict == "compiled",
    ),
    Tool(
        name="audit",
        title="Audit Triton code",
        function=audit,
        read_only=False,
        destructive=True,
        is_yes=lambda report: report.verdict != "faulty",
    ),
    Tool(
        name="device",
        title="What kernels run on here",
        function=device,
        read_only=True,
        destructive=False,
        is_yes=lambda machine: True,
    ),
    Tool(
        name="docs_search",
        title="Search the documentation",
        function=docs_search,
        read_only=True,
        destructive=False,
        is_yes=lambda result: bool(result.hits),
    ),
    Tool(
        name="docs_read",
        title="Read the documentation",
        function=docs_read,
        read_only=True,
        destructive=False,
        is_yes=lambda reading: True,
    ),
    Tool(
        name="docs_fetch",
        title="Fetch public documentation",
        function=docs_fetch,
        read_only=False,
        destructive=False,
        is_yes=lambda report: not report.failed,
        open_world=True,
    ),
    Tool(
        name="docs_status",
        title="What documentation there is",
        function=docs_status,
        read_only=True,
        destructive=False,
        is_yes=lambda status: True,
    ),
)
GROUPS = {"docs": "Search and read the documentation of the installed Triton, and the guides."}
"""What is said of tools whose names begin with the same word."""
