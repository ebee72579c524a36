"""What is asked of a conversion, and of the validation and the timing of its stages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytorch_to_triton.benchmark.timing_trial import Implementation, TimingTrial
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.validate.request import ValidationRequest

LAST: Stage = 3


class ConversionRequest(Value):
    """What to convert, and how."""

    target: Target
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it."""
    example: Target | None = None
    """A function whose calls of the target give the inputs that are not declared."""
    points: tuple[Point, ...] = ()
    """The sizes that matter: tuned, timed and compiled at. None: the largest declared ones, enlarged."""
    into: Path | None = None
    """The folder for the results; None: `converted/NAME` below the working directory."""
    force: bool = False
    """Whether files in it that no conversion of this target wrote may be replaced."""
    seed: int | None = None
    """None: a fresh one, which the report names."""
    seconds: float = 300.0
    """How long one call of a kernel or of the reference may take, compilation and tuning included."""
    backward: bool = False
    """Whether gradients are drafted and validated too."""
    thorough: bool = False
    """Whether compute-sanitizer checks the last stage too, on a device."""
    pure: bool = False
    """Whether no library may compute what a kernel can."""
    strict: bool = False
    """Whether a target of which anything would stay a call of PyTorch is refused."""

    def without_dims(self, names: Collection[str]) -> ConversionRequest:
        """The same without the sizes of dims that the file's own declaration has as numbers from here on."""
        left = ({n: size for n, size in point.items() if n not in names} for point in self.points)
        points = tuple(point for point in left if point)
        if self.options.inputs:
            return self.model_copy(update={"points": points})
        dims = {name: sizes for name, sizes in self.options.dims.items() if name not in names}
        return self.model_copy(update={"options": replace(self.options, dims=dims), "points": points})

    def validation_of(self, candidate: Target, stage: Stage, calls: Iterable[str] = ()) -> ValidationRequest:
        """How a file of a stage is validated; `calls` are the operators that it may leave to PyTorch."""
        return ValidationRequest(
            candidate=candidate,
            reference=self.target,
            options=self.options,
            points=self.points,
            allow_torch=frozenset(calls),
            seed=self.seed,
            seconds=self.seconds,
            backward=self.backward,
            thorough=self.thorough and stage == LAST,
            require_int64_offsets=True,
            require_mixed_dtypes=True,
        )

    def timing_of(self, implementations: Sequence[Implementation], cases: Sequence[Case]) -> TimingTrial:
        """How implementations of the target are timed, for gates and configurations."""
        assert self.seed is not None
        return TimingTrial(
            reference=self.target,
            implementations=implementations,
            cases=cases,
            seed=self.seed,
            seconds=self.seconds,
            passes="both" if self.backward else "forward",
            depth="brief",
        )
