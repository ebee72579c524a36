"""What a tool works on, made once and handed on: both sides as the worker describes them, their inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Declaration, Options
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, refuse_misfit, state_passed


@dataclass(frozen=True)
class Problem:
    """A candidate, the reference it is compared with, and the inputs of both."""

    reference: Description
    candidate: Description
    declaration: Declaration

    def with_candidate(self, candidate: Description) -> "Problem":
        """The same inputs for another candidate. Raises TargetBroken where it does not take them."""
        refuse_misfit(candidate, self.declaration, state=state_passed(self.reference, candidate))
        return replace(self, candidate=candidate)

    def fixed_at(self, sizes: Mapping[str, int]) -> "Problem":
        """The same with these dims as numbers in the declaration."""
        return replace(self, declaration=self.declaration.fixed_at(sizes))


def problem_of(reference: Description, candidate: Description, options: Options = NO_OPTIONS) -> Problem:
    """Both sides with their declarations merged; `options` win. Raises as `declaration_of`."""
    return Problem(reference, candidate, declaration_of(reference, candidate, options))


def reference_of(candidate: Target, reference: Target | None) -> Target:
    """The reference that is named, else the one in the candidate's own file."""
    return reference or Target(path=candidate.path, init=candidate.init)
