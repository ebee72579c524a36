"""The finished tests, run once in the Python that has torch and triton."""

from __future__ import annotations

from pathlib import Path

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.finished import TestRun
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.worker import wire

MOST_LINES = 12
"""Of what failed; pytest itself says the rest."""


async def run_tests(worker: WorkerClient, file: Path, runtime: Runtime, seconds: float) -> TestRun:
    """Run pytest on a file; that it is missing there, or takes too long, is no failure of a test."""
    arguments: wire.RunTestsArguments = {"file": str(file)}
    outcome = await worker.ask(Job(kind="run_tests", arguments=arguments), runtime, seconds=seconds)
    if outcome.answer is None:
        return TestRun(passed=False, summary=f"its tests did not end: {outcome.detail}")
    status, output = outcome.answer["status"], str(outcome.answer["output"])
    if status is None:
        return TestRun(passed=True, summary="not run, as pytest is not installed there")
    last = output.strip().splitlines()[-1].strip("= ") if output.strip() else f"exit status {status}"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR ", "E  "))]
    return TestRun(
        passed=status == 0, summary=last, output="" if status == 0 else "\n".join(failed[:MOST_LINES])
    )
