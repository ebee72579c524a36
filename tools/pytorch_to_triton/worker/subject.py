"""Job `subject`: run the candidate, and nothing else, on inputs that the oracle left in the exchange folder.

Items come one a case and in order, so that after a crash or a time-out it is known which case it was, and a
fresh process can take the rest.
"""

from pathlib import Path
from typing import Any

import torch

from .exchange import Exchange, all_outputs, written_to
from .failure import describe_failure
from .report import Report
from .target import Loaded, TargetError, load
from .tensors import read_values, write_outputs


def work(
    report: Report, target: dict[str, Any], cases: list[dict[str, Any]], seed: int, folder: str, device: str
) -> dict[str, Any]:
    """An item once the candidate is loaded, then one a case: `ok`, or `raised` with the failure.

    `cases` hold `id`, `name`, and in `written` the arguments that the reference writes to. A candidate that
    leaves the device unusable ends the job early.
    """
    report.during("load")
    exchange = Exchange(Path(folder))
    candidate = load(target, "candidate")
    candidate.take_state(read_values(exchange.state, "cpu"))
    report.item({"loaded": candidate.name})
    for done, case in enumerate(cases):
        report.during(case["name"])
        report.progress(done, len(cases), f"candidate: {case['name']}")
        report.item({"case": case["name"], **attempt(candidate, case, exchange, (seed, device))})
        if not usable(device):
            break
    return {}


def attempt(
    candidate: Loaded, case: dict[str, Any], exchange: Exchange, setting: tuple[int, str]
) -> dict[str, Any]:
    """Call the candidate once and write what it returns, and the arguments that it wrote to."""
    seed, device = setting
    call = exchange.call(case["id"], device)
    torch.manual_seed(seed)
    try:
        with torch.no_grad():
            result = candidate(call.arguments, call.state)
        synchronize(device)
        written = written_to(call, exchange.call(case["id"], device)).keys() | set(case["written"])
        write_outputs(all_outputs(result, call, sorted(written)), exchange.case("candidate", case["id"]))
    except TargetError:
        raise
    except (Exception, SystemExit) as error:
        return {"status": "raised", "failure": describe_failure(error, case["name"])}
    return {"status": "ok"}


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def usable(device: str) -> bool:
    """False once an illegal memory access has made this process's device context useless."""
    try:
        synchronize(device)
    except RuntimeError:
        return False
    return True
