"""Job `free_sizes`: which sizes of a file's example inputs its target leaves free."""

from .. import wire
from ..job_report import JobReport
from ..tracing.fake import example_inputs, fake_mode, load_fake
from ..tracing.free_sizes import free_sizes


def work(report: JobReport, target: wire.Target) -> wire.FreeSizesAnswer:
    """Run the target on fake tensors alone, for as long as its constructor needs no values."""
    report.during("load")
    mode = fake_mode()
    loaded = load_fake(target, mode)
    report.during("free sizes")
    return {"free": free_sizes(loaded, example_inputs(loaded, mode), mode)}
