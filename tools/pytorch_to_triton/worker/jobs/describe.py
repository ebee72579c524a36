"""Job `describe`: what a target is and declares, then what is asked about it: free sizes, traces, runs.

One process answers it all, so that a target's file is imported once; each request constructs its module anew.
"""

from typing import Any

from .. import wire
from ..failure import describe_failure
from ..interpreter import cuda_autocast
from ..job_report import JobReport
from ..loading.module_state import ATTRIBUTES, unsaved_buffers
from ..loading.target import Role, drawn_numbers, load, needs_memory
from ..tracing.description import description, examples, shown_inputs
from ..tracing.fake import FakeWhenEntered, load_fake
from ..wire import tracing


def work(report: JobReport, target: wire.Target, role: Role) -> dict[str, Any]:
    """An item once the target is loaded, a reference without its memory, then one for each request."""
    report.during("load")
    mode = FakeWhenEntered()
    if role == "reference":
        # What it is traced on lies on no GPU, also where there is one.
        cuda_autocast.install()
    loaded = load_fake(target, mode) if role == "reference" else load(target, role)
    report.during("describe")
    described = {**description(target, loaded, role), "examples": examples(loaded, mode)}
    if role == "reference" and loaded.module is not None:
        given = {*loaded.state_keys.values()}
        unsaved = [name for name in unsaved_buffers(loaded.module) if name not in given]
        described |= {"unsaved": unsaved, "attributes": ATTRIBUTES[loaded.module]}
        if needs_memory(loaded, target):
            described |= {"needs_memory": True, "drawn": drawn_numbers(loaded, target)}
    report.item(tracing.DescribedItem(description=described))
    for request in report.requests(tracing.TargetRequest):
        report.during(request.do)
        report.item(answer(target, request))
    return {}


def answer(target: wire.Target, request: tracing.TargetRequest) -> tracing.TargetItem:
    """What a request asks. torch.export takes seconds to import, and a mere description does not need it."""
    if isinstance(request, tracing.TraceRequest):
        from ..tracing.export import TraceFailed, trace

        try:
            return trace(target, request)
        except TraceFailed as failed:
            return tracing.UntracedItem(failure=describe_failure(failed, request.do))
    if isinstance(request, tracing.ShownInputsRequest):
        return tracing.ShownInputsItem(examples=tuple(shown_inputs(target, request.points)))
    if isinstance(request, tracing.RunsRequest):
        from ..tracing.runs import runs

        return runs(target, request)
    from ..tracing.free_sizes import free_sizes_of

    return tracing.FreeSizesItem(free=free_sizes_of(target))
