"""Options as they would be typed."""

from collections.abc import Iterable, Mapping


def assignments(option: str, values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={spelled(value)}")]


def repeated(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def spelled(value: object) -> str:
    """A value as the option's grammar reads it."""
    return "[" + ",".join(map(spelled, value)) + "]" if isinstance(value, list | tuple) else str(value)
