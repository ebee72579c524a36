"""Why the program cannot be started, and what to do about it."""


class Problem(Exception):
    """`message` says what is wrong, `hint` what to do; both are whole sentences."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}\n{hint}")
        self.message = message
        self.hint = hint
