"""The command that runs a validation, or one case of it, once more on the same inputs."""

import sys

from pytorch_to_triton.command_line import replay
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.validate.request import ValidationRequest


def command(request: ValidationRequest, runtime: Runtime, seed: int, case: str | None) -> str:
    """As it would be typed; `case` None: all those that the request names, or all of the plan."""
    return replay(
        "validate",
        request,
        device="interpreter" if runtime.interpreter else "cuda",
        python=None if runtime.python == sys.executable else runtime.python,
        seed=seed,
        cases=(case,) if case else request.cases,
    )
