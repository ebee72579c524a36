"""The tool that reviews Triton code, as the catalogue holds it: audit."""

# A tool's parameters are its options: as many as it takes.
# ruff: noqa: PLR0913, FBT002

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pytorch_to_triton.schema.finding import Category, Severity
from pytorch_to_triton_server.names import path_of, place_of, target_of
from pytorch_to_triton_server.parameters import Choice, Dims, Force, Inputs, Python, Timeout

if TYPE_CHECKING:
    from pytorch_to_triton.schema.finding import AuditReport
    from pytorch_to_triton_server.catalogue import Call

Focus = Literal[
    "correctness", "performance", "memory", "memory access", "stability", "numerical stability",
    "practices", "best practices",
]  # fmt: skip
CATEGORIES: "Mapping[Focus, Category]" = {
    "correctness": "correctness",
    "performance": "performance",
    "memory": "memory access",
    "memory access": "memory access",
    "stability": "numerical stability",
    "numerical stability": "numerical stability",
    "practices": "best practices",
    "best practices": "best practices",
}


async def audit(
    call: "Call",
    paths: Annotated[
        list[str],
        Field(
            min_length=1,
            description="Python files, or folders to search for Triton code; path.py:name says what to call",
        ),
    ],
    evidence: Annotated[
        Literal["auto", "source", "compiled", "measured"],
        Field(
            description="source: execute nothing; compiled: also compile kernels, for GPUs that need not be "
            "here; measured: also run them; auto: measured for named files that declare their inputs"
        ),
    ] = "auto",
    focus: Annotated[Focus | None, Field(description="Only this kind of fault; default: every kind")] = None,
    rule: Annotated[tuple[str, ...], Field(description="Only this rule, by its name")] = (),
    severity: Annotated[Severity, Field(description="The least severity that is told")] = "info",
    most: Annotated[
        int, Field(ge=1, description="Findings in the result; a document of some format holds all")
    ] = 200,
    fail_on: Annotated[
        Severity | None,
        Field(description="The least severity of a finding that makes the verdict faulty; default: medium"),
    ] = None,
    reference: Annotated[
        str | None,
        Field(description="What to compare with: path.py:name or path.py; default: the file's own reference"),
    ] = None,
    input: Inputs = (),
    dim: Dims = (),
    arch: Annotated[
        tuple[str, ...],
        Field(description="A GPU to compile for: sm_90, gfx942, H100; default: sm_90 and gfx942"),
    ] = (),
    baseline: Annotated[
        str | None, Field(description="A file of known findings, which do not count against the verdict")
    ] = None,
    update_baseline: Annotated[
        bool, Field(description="Write the baseline anew with all that is found")
    ] = False,
    format: Annotated[
        Literal["markdown", "json", "sarif", "html"] | None,
        Field(description="Also make a document of this format"),
    ] = None,
    into: Annotated[
        str | None,
        Field(
            description="Write the document to this file; its ending, .md .json .sarif .html, says the format"
        ),
    ] = None,
    force: Force = False,
    device: Choice = "auto",
    timeout: Timeout = 120.0,
    python: Python = None,
) -> "AuditReport":
    """Review Triton kernels and the functions that launch them: correctness, speed, memory, stability, style.

    Each finding says where it is, on what evidence, what comes of it and what to write instead. Source is
    read with scopes; a named kernel file that declares its inputs is also compiled for GPUs that need not be
    here, and run on many cases beside its reference, which confirms or clears what source only suspects.
    With evidence `source` nothing is executed. No findings do not prove a kernel right.
    """
    from pytorch_to_triton.audit import audit as auditing
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton_server.machine import choose_runtime

    request = auditing.AuditRequest(
        targets=tuple(place_of(path) for path in paths),
        evidence=evidence,
        focus=CATEGORIES[focus] if focus else None,
        rules=rule,
        severity=severity,
        most=most,
        fail_on=fail_on,
        reference=target_of(reference) if reference else None,
        options=parse_options(input, dim),
        archs=arch,
        baseline=path_of(baseline) if baseline else None,
        update_baseline=update_baseline,
        format=format,
        into=path_of(into) if into else None,
        force=force,
        seconds=timeout,
    )
    return await auditing.audit(
        call.worker, request, lambda: choose_runtime(call.worker, device, python), call.listener
    )
