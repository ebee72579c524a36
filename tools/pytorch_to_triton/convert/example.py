"""A conversion's inputs taken from a call that a function of the user's makes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.targets.example_call import Proposal, proposed

Request = TypeVar("Request", bound=ConversionRequest)


async def as_called(
    worker: WorkerClient, request: Request, runtime: Runtime
) -> tuple[Request, tuple[str, ...]]:
    """The request with what its example's calls suggest, and what is guessed; the same without an example.

    Raises BadInput where the example does not call the target, or raises before it does.
    """
    if request.example is None:
        return request, ()
    proposal = await proposed(worker, request.target, request.example, runtime, seconds=request.seconds)
    return with_proposal(request, proposal), proposal.guesses


def with_proposal(request: Request, proposal: Proposal) -> Request:
    """The request with what a call suggests; what was given beside it wins, name by name.

    Inputs that were given may have other dims than the call's: then its sizes say nothing.
    """
    given, target = request.options, request.target
    dims = {name: ",".join(map(str, sizes)) for name, sizes in proposal.dims.items()}
    options = replace(given, inputs={**proposal.inputs, **given.inputs}, dims={**dims, **given.dims})
    points = request.points or (() if given.inputs else proposal.points)
    target = target if target.init else target.constructed_with(proposal.init)
    return request.model_copy(update={"target": target, "options": options, "points": points})
