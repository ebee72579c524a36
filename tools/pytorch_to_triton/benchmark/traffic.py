"""How many bytes a kernel file moves at a size, beside the least: counted from its launches."""

from collections.abc import Mapping
from typing import Any

from pytorch_to_triton.benchmark.roofline import work_of_case
from pytorch_to_triton.graph.cost import elements_read
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import Traffic
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded

SECONDS = 60.0


async def traffic_of(
    worker: WorkerClient,
    runtime: Runtime,
    candidate: Target,
    traced: Traced,
    declared: Mapping[str, Any],
    dims: Mapping[str, int],
) -> Traffic | None:
    """What one call of the candidate at these dims launches, with its backward pass where that was traced.

    `declared` are the INPUTS, DIMS and REQUIRES of the candidate's file, a module's state among them. None
    where the file makes its inputs itself, or the call cannot be made on tensors without memory.
    """
    if not declared["INPUTS"]:
        return None
    declaration = parse_declaration(declared["INPUTS"], declared["DIMS"], declared["REQUIRES"])
    case = declaration.case(dims)
    passes: Passes = "both" if traced.backward else "forward"
    least = work_of_case(traced.graph, case, passes, joint=traced.joint)
    if least is None:
        return None
    job = Job(
        kind="traffic",
        arguments={
            "candidate": candidate.as_json(),
            "arguments": [argument.model_dump(mode="json") for argument in case.arguments],
            "needed": needed_bytes(traced, case),
            "backward": traced.backward is not None,
        },
    )
    outcome = await worker.ask(job, runtime, seconds=SECONDS)
    if outcome.answer is None:
        return None
    answer = decoded(wire.TrafficAnswer, outcome.answer)
    return Traffic(launches=answer.launches, bytes_moved=answer.bytes_moved, least_bytes=least.bytes_moved)


def needed_bytes(traced: Traced, case: Case) -> dict[str, int]:
    """Of each input that is looked up in, the bytes of what is looked up."""
    read = elements_read(traced.graph, case.dims)
    tensors = {t.name: t for t in tensors_in(case.arguments)}
    counts = {name: read[name] * ITEM_BYTES[t.dtype] for name, t in tensors.items()}
    return {name: count for name, count in counts.items() if 0 < count < tensors[name].bytes}
