"""The command that takes the same figures again."""

import shlex

from pytorch_to_triton.benchmark.request import BASELINES, BenchmarkRequest
from pytorch_to_triton.command_line import assignments, program, repeated


def command(request: BenchmarkRequest, seed: int, estimate: str | None = None) -> str:
    """As it would be typed."""
    words = [*program(), "benchmark", str(request.candidate)]
    if request.reference:
        words += ["--reference", str(request.reference)]
    for target in request.against:
        words += ["--against", str(target)]
    words += assignments("--input", request.options.inputs)
    words += assignments("--dim", request.options.dims)
    words += repeated("--require", request.options.requires)
    words += repeated("--init", (request.reference or request.candidate).init)
    if request.baselines != BASELINES:
        for baseline in request.baselines:
            words += ["--baseline", baseline]
    words += ["--passes", request.passes] if request.passes != "forward" else []
    words += ["--tf32"] * request.tf32
    words += ["--tune", f"{request.tune_seconds:g}"] if request.tune_seconds else []
    words += ["--freeze", str(request.freeze)] if request.freeze else []
    words += ["--estimate", estimate] if estimate else ["--seed", str(seed)]
    return shlex.join(words)
