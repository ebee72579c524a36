"""Job `front_end`: whether Triton's compiler takes a candidate's kernels, as cases launch them.

The inputs lie in the exchange folder. No kernel runs, and what calls return is nobody's concern.
"""

from pathlib import Path

import torch

from .. import wire
from ..calls.exchange import CallInputs, Exchange
from ..calls.gradients import with_gradients
from ..integrity.sandbox import Sandbox
from ..job_report import JobReport
from ..loading.redirect import redirect
from ..loading.target import Loaded, load
from ..offline.front_end import FrontEnd
from ..offline.offline_gpu import compile_for, on
from ..untimed_tuning import UntimedTuning
from ..wire import validation


def work(
    report: JobReport,
    target: wire.Target,
    setting: validation.CandidateSetting,
    secret: list[str],
    gpu: wire.OfflineGpu,
    requests: tuple[validation.CandidateRequest, ...],
) -> validation.FrontEndAnswer:
    """The first kernel that the compiler refuses; a call that fails otherwise says nothing."""
    report.during("load")
    exchange, front_end, tuning = Exchange(Path(setting.folder)), FrontEnd(), UntimedTuning(1)
    redirect(exchange.read_staging(setting.side))
    compile_for(gpu)
    sandbox = Sandbox(
        [*map(Path, secret), *exchange.secret], [report.folder, exchange.folder], lambda violation: None
    )
    with front_end.in_place_of_launches(), on(gpu):
        with sandbox.watching():
            candidate = load(target, "candidate")
        candidate = exchange.with_state(candidate)
        candidate.to_gpu()
        for request in requests:
            report.during(request.name)
            tuning.begin(request.configuration, undo_trials=False)
            call = exchange.call(request.id, "cpu")
            try:
                with sandbox.watching(), front_end.unless_read():
                    run(candidate, call, backward=setting.backward)
            except (Exception, SystemExit) as error:
                if refusal := front_end.refusal(error):
                    return validation.FrontEndAnswer(refusal=refusal)
    return validation.FrontEndAnswer(refusal=None)


def run(candidate: Loaded, call: CallInputs, *, backward: bool) -> None:
    """Call the candidate without gradients, and with `backward` once more with them."""
    with torch.no_grad():
        candidate(call.arguments, call.state)
    if backward:
        with_gradients(lambda inputs: candidate(inputs.arguments, inputs.state), call)
