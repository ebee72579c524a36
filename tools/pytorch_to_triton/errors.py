"""Everything this project refuses to do, and what the caller can do about it.

    Refusal
    ├── BadInput              exit 2: the caller's mistake
    │   ├── BadDeclaration    an input, dim or requirement that does not parse; points at the character
    │   ├── TargetNotFound    no such file, or no such name in it
    │   └── TargetBroken      the file is there but cannot be loaded or called
    │       └── TargetTimedOut    or not within its time
    ├── NotConvertible        exit 4: no drafting pattern fits the function; says which operator and why
    └── MissingRequirement      exit 3: a GPU, a package or a device that this machine does not have

Anything else that is raised is a defect of this project: exit 5.
"""

import re


class Refusal(Exception):
    """A request that is declined for a reason the caller can act on.

    `message` says what is wrong, `hint` what to do about it; both are whole sentences.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}\n{hint}")
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """Its class for a program: `bad_input`, `target_not_found`, `not_convertible`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()


class BadInput(Refusal):
    """The caller's mistake: an argument, a file or a declaration that cannot be used."""


class BadDeclaration(BadInput):
    """A declaration of inputs that does not parse; `text` with a caret below column `position` (0-based)."""

    def __init__(self, problem: str, text: str, position: int, hint: str) -> None:
        super().__init__(f"{problem}\n  {text}\n  {' ' * position}^", hint)
        self.text = text
        self.position = position


class TargetNotFound(BadInput):
    """The target's file, or the name in it, does not exist."""


class TargetBroken(BadInput):
    """The target exists, but loading or calling it fails."""


class TargetTimedOut(TargetBroken):
    """Loading or calling the target was ended at its time limit."""


class NotConvertible(Refusal):
    """No drafting pattern fits the traced function."""

    exit_code = 4


class MissingRequirement(Refusal):
    """The machine lacks what the request needs."""

    exit_code = 3
