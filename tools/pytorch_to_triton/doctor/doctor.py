"""All checks of a machine: facts are gathered, then each check judges those that it is about."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

from pytorch_to_triton.doctor import disk, gpu, programs, stack
from pytorch_to_triton.doctor.facts import MachineFacts, gather
from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen, T, absent, doubtful
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.diagnosis import CheckResult, Diagnosis

GPU, STACK, KERNELS, PROGRAMS, DISK = "GPU", "torch and Triton", "kernels", "programs", "disk and locks"


async def diagnose(
    worker: WorkerClient, python: str, listener: ProgressListener, further: Sequence[CheckResult] = ()
) -> Diagnosis:
    """Check everything, `further` checks of the caller's included; takes a few seconds and always ends."""
    began = time.monotonic()
    facts = await gather(worker, python, listener)
    checks = (*judge(facts), *further)
    return conclude(checks, python, time.monotonic() - began)


def judge(facts: MachineFacts) -> Iterator[CheckResult]:
    """Every check, in the order in which one thing needs another."""
    local, versions, around = facts.local, facts.versions, facts.surroundings
    driver = local["the driver"]
    nodes = () if isinstance(local["device files"], NotSeen) else local["device files"]
    has_gpu = isinstance(driver, gpu.DriverState) or bool(nodes)
    yield result(GPU, "driver", gpu.check_driver(driver, nodes))
    yield result(GPU, "device files", check_fact(local["device files"], gpu.check_nodes))
    yield result(GPU, "GPU", gpu.check_gpus(driver))
    yield result(GPU, "others on the GPU", gpu.check_others(driver))
    yield result(STACK, "Python and worker", stack.check_python(versions, facts.python))
    yield result(STACK, "torch", check_answer(versions, stack.check_torch))
    variables = {} if isinstance(local["variables"], NotSeen) else local["variables"]
    if programs.hides_gpus(variables):
        on_gpu = absent("CUDA_VISIBLE_DEVICES hides every GPU from it.")
    else:
        on_gpu = check_answer(versions, lambda seen: stack.check_torch_on_gpu(seen, around, driver, nodes))
    yield result(STACK, "torch on the GPU", on_gpu)
    yield result(STACK, "Triton", check_answer(versions, stack.check_triton))
    yield result(STACK, "assembler", check_answer(around, stack.check_assembler))
    yield result(STACK, "known miscompilations", check_answer(versions, stack.check_miscompilations))
    compiler = check_answer(around, lambda seen: stack.check_compiler(seen, needed=has_gpu))
    yield result(STACK, "C compiler", compiler)
    for how in get_args(stack.How):
        yield result(KERNELS, how, stack.check_kernel(facts.trials.get(how), how))
    yield result(
        PROGRAMS, "compute-sanitizer", check_fact(local["compute-sanitizer"], programs.check_sanitizer)
    )
    yield result(PROGRAMS, "Nsight Compute", check_fact(local["Nsight Compute"], programs.check_ncu))
    yield result(PROGRAMS, "this command", check_fact(local["PATH"], programs.check_command))
    yield result(PROGRAMS, "variables", check_fact(local["variables"], programs.check_variables))
    yield result(DISK, "cache", check_fact(local["the cache"], disk.check_cache))
    triton_cache = check_fact(facts.triton_cache, lambda seen: disk.check_triton_cache(seen, gpu=has_gpu))
    yield result(DISK, "Triton's cache", triton_cache)
    folders = [local["the cache"], facts.triton_cache, local["temporary files"]]
    counted = [folder for folder in folders if isinstance(folder, disk.FolderState)]
    if counted:
        yield result(DISK, "free space", disk.check_space(counted))
    yield result(DISK, "run folders", check_fact(local["run folders"], disk.check_runs))
    yield result(DISK, "made by launches", check_fact(local["environments"], disk.check_environments))
    yield result(DISK, "device locks", check_fact(local["locks"], disk.check_locks))


def check_fact(fact: T | NotSeen, check: Callable[[T], CheckOutcome]) -> CheckOutcome:
    """The check of a fact; a warning where the fact could not be found out."""
    return doubtful(f"Not known: {fact.why}.", fact.fix) if isinstance(fact, NotSeen) else check(fact)


def check_answer(answer: T | NotSeen, check: Callable[[T], CheckOutcome]) -> CheckOutcome:
    """The check of what the worker answered; that it does not start is said once, by a check of its own."""
    if isinstance(answer, NotSeen):
        return absent("Not checked: the worker does not start.")
    return check(answer)


def result(group: str, name: str, outcome: CheckOutcome) -> CheckResult:
    return CheckResult(name=name, group=group, state=outcome.state, seen=outcome.seen, fix=outcome.fix)


def conclude(checks: Sequence[CheckResult], python: str, seconds: float) -> Diagnosis:
    """What all checks together say."""
    failed = [check for check in checks if check.state == "failed"]
    doubts = [check for check in checks if check.state == "warning"]
    if failed:
        names = ", ".join(check.name for check in failed)
        summary = f"{len(failed)} of {len(checks)} checks failed: {names}."
        next_step = f"{failed[0].fix} Then run doctor again."
    else:
        on_gpu = any(check.name == "on the GPU" and check.state == "ok" for check in checks)
        how = "kernels run on the GPU" if on_gpu else "kernels run under Triton's interpreter on the CPU"
        beside = (
            f"; {len(doubts)} with a warning" if len(doubts) > 1 else "; one with a warning" * len(doubts)
        )
        summary = f"Everything needed works: {how} ({len(checks)} checks{beside})."
        next_step = doubts[0].fix if doubts else "Convert a function, or validate a kernel."
    return Diagnosis(
        summary=summary,
        next_step=next_step,
        verdict="unhealthy" if failed else "healthy",
        python=python,
        checks=tuple(checks),
        seconds=round(seconds, 1),
    )
