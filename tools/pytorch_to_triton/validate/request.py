"""What is asked of a validation, and the command that asks it once more on the same inputs."""

import sys
from typing import Annotated, Literal

from pytorch_to_triton.command_line import NOT_REPEATED, Option, replay
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import LimitKind

Stop = Literal["never", "early", "at once"]
"""early: the most telling cases come first, and where one of them is wrong, the others are left out. at once:
all after a wrong one are left out, and it is not reduced, for who wants the decision alone."""


class ValidationRequest(Value):
    """What to validate, and how."""

    candidate: Target
    reference: Target | None = None
    """None: the reference in the candidate's own file."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it."""
    points: Annotated[tuple[Point, ...], Option("at")] = ()
    """Sizes of which a device tries each once, beside all that follows from the declared ones."""
    allow_torch: frozenset[str] = frozenset()
    """Operators of PyTorch that the candidate may call beside allocation, views, casts and copies; `any`."""
    backward: bool = False
    """Whether gradients are compared too."""
    thorough: bool = False
    """Whether compute-sanitizer checks small cases too, on a device: it takes some seconds."""
    require_int64_offsets: bool = False
    """Whether offsets of 32 bits are a failure, and not a limit."""
    require_mixed_dtypes: bool = False
    """Whether it is a failure, and not a limit, to do less than PyTorch for a mixture of declared dtypes.

    An exception that names dtypes is accepted.
    """
    seconds: Annotated[float, Option("timeout")] = 120.0
    """How long one call of the reference or of the candidate may take, compilation included."""
    seed: int | None = None
    """None: a fresh one, which the verdict names."""
    cases: Annotated[tuple[str, ...], Option("case")] = ()
    """Names of the cases to run; none: all of the plan."""
    limit_elements: Annotated[int | None, NOT_REPEATED] = None
    """Elements of the largest case; None: what suits the runtime."""
    stop: Annotated[Stop, NOT_REPEATED] = "never"
    """Which cases are left out after a wrong one."""

    @property
    def refused_limits(self) -> tuple[LimitKind, ...]:
        """The kinds of limits that count as failures."""
        kinds: dict[LimitKind, bool] = {
            "offsets": self.require_int64_offsets,
            "dtypes": self.require_mixed_dtypes,
        }
        return tuple(kind for kind, is_refused in kinds.items() if is_refused)


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
