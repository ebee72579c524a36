"""Examples of one rule that differ in a few lines."""

from collections.abc import Callable


def example(head: str, tail: str = "") -> Callable[..., str]:
    """Writes examples that have their first and their last lines in common, from the lines between."""

    def written(*lines: str) -> str:
        return head + "".join(f"    {line}\n" if line else "\n" for line in lines) + tail

    return written
