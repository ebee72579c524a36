"""The command that runs a validation, or one case of it, once more on the same inputs."""

import shlex
import sys
from typing import TYPE_CHECKING

from pytorch_to_triton.command_line import assignments, program, repeated
from pytorch_to_triton.schema.job import Runtime

if TYPE_CHECKING:
    from pytorch_to_triton.validate.validate import ValidationRequest


def command(request: "ValidationRequest", runtime: Runtime, seed: int, case: str | None) -> str:
    """As it would be typed; `case` None: all those that the request names, or all of the plan."""
    words = [*program(), "validate", str(request.candidate)]
    if request.reference:
        words += ["--reference", str(request.reference)]
    words += assignments("--input", request.options.inputs)
    words += assignments("--dim", request.options.dims)
    words += repeated("--require", request.options.requires)
    words += repeated("--init", (request.reference or request.candidate).init)
    for name in sorted(request.allow_torch):
        words += ["--allow-torch", name]
    words += ["--backward"] * request.backward
    words += ["--thorough"] * request.thorough
    words += ["--require-int64-offsets"] * request.require_int64_offsets
    words += ["--require-mixed-dtypes"] * request.require_mixed_dtypes
    words += ["--device", "interpreter" if runtime.interpreter else "cuda"]
    if request.seconds != type(request).model_fields["seconds"].default:
        words += ["--timeout", f"{request.seconds:g}"]
    words += ["--python", runtime.python] if runtime.python != sys.executable else []
    words += ["--seed", str(seed)]
    for name in (case,) if case else request.cases:
        words += ["--case", name]
    return shlex.join(words)
