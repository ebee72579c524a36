"""Parts of sentences that several messages share."""

from collections.abc import Sequence


def times(count: int, what: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def cut(text: str, characters: int) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= characters else text[:characters] + " ..."


def listed(names: Sequence[str]) -> str:
    """`x`, `x and y`, `x, y and z`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shortened(names: Sequence[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def sentence(text: str) -> str:
    """With a full stop at its end."""
    return text if text.endswith((".", "!", "?", "...")) else f"{text}."
