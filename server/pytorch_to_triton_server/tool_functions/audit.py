"""The tool that reviews Triton code: audit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pytorch_to_triton.schema.finding import Category, Severity
from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import path_of, place_of, target_of
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.schema.finding import AuditReport

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
    call: ToolCall,
    paths: Annotated[
        list[str],
        Field(min_length=1, description="Python files or folders; path.py:name says what to call"),
    ],
    evidence: Annotated[
        Literal["auto", "source", "compiled", "measured"],
        Field(
            description="source: nothing is executed; compiled: compile kernels too; measured: run them too; "
            "auto: measured where a file declares its inputs"
        ),
    ] = "auto",
    focus: Annotated[Focus | None, Field(description="Only findings of this kind; default: all")] = None,
    rule: Annotated[shared.Texts, Field(description="Only the rule of this name")] = (),
    severity: Annotated[Severity, Field(description="The lowest severity to report")] = "info",
    most: Annotated[
        int, Field(ge=1, description="At most this many findings in the result; a document has all")
    ] = 200,
    fail_on: Annotated[
        Severity | None,
        Field(description="The lowest severity that makes the verdict faulty; default: medium"),
    ] = None,
    reference: shared.Reference = None,
    input: shared.Inputs = (),
    dim: shared.Dims = (),
    arch: shared.Archs = (),
    baseline: Annotated[
        str | None, Field(description="A file of known findings, which do not affect the verdict")
    ] = None,
    update_baseline: Annotated[
        bool, Field(description="Rewrite the baseline with all current findings")
    ] = False,
    format: Annotated[
        Literal["markdown", "json", "sarif", "html"] | None,
        Field(description="Also produce a document in this format"),
    ] = None,
    into: Annotated[
        str | None, Field(description="Write the document to this file: .md, .json, .sarif or .html")
    ] = None,
    force: shared.Force = False,
    device: shared.Device = "auto",
    timeout: shared.Timeout = 120.0,
    python: shared.Python = None,
) -> "AuditReport":
    """Review Triton kernels and the functions that launch them: correctness, speed, memory, stability, style.

    Each finding has its location, its evidence, its consequence and a suggested fix. A kernel file that is
    named and declares its inputs is also compiled, even for GPUs that are not here, and run on many cases
    against its reference, which confirms or dismisses what the source only suggests. With evidence `source`
    nothing is executed. A clean source audit does not prove a kernel correct.
    """
    targets = tuple(place_of(path, call.boundary) for path in paths)
    from pytorch_to_triton.audit import audit as auditing
    from pytorch_to_triton.inputs.declaration import parse_options
    from pytorch_to_triton_server.machine import choose_runtime

    request = auditing.AuditRequest(
        targets=targets,
        evidence=evidence,
        focus=CATEGORIES[focus] if focus else None,
        rules=rule,
        severity=severity,
        most=most,
        fail_on=fail_on,
        reference=target_of(reference, call.boundary) if reference else None,
        options=parse_options(input, dim),
        archs=arch,
        baseline=call.boundary.writable(path_of(baseline)) if baseline else None,
        update_baseline=update_baseline,
        format=format,
        into=call.boundary.writable(path_of(into)) if into else None,
        force=force,
        seconds=timeout,
        within=call.boundary.roots,
    )
    return await auditing.audit(
        call.worker,
        request,
        lambda: choose_runtime(call.worker, device, python or call.python),
        call.listener,
    )
