"""Results as an assistant reads them: whatever is wrong in full, whatever is right by name."""

from typing import Any

from pydantic import BaseModel

_IN_FULL = 8
"""So many wrong cases are told with all figures; of the others, what happened."""
_BRIEF = ("name", "group", "status", "why")


def compact(result: BaseModel) -> dict[str, Any]:
    """The result as JSON; the cases of each verdict in it that passed are named in `passed_cases`."""
    told: dict[str, Any] = _shorten(result.model_dump(mode="json", exclude_defaults=True))
    return told


def _shorten(value: Any) -> Any:
    match value:
        case {"cases": list(cases), **others}:
            return {**others, **_split(cases)}
        case dict():
            return {key: _shorten(item) for key, item in value.items()}
        case list():
            return [_shorten(item) for item in value]
    return value


def _split(cases: list[dict[str, Any]]) -> dict[str, Any]:
    others = [case for case in cases if case["status"] != "passed"]
    brief = [{key: case[key] for key in _BRIEF if key in case} for case in others[_IN_FULL:]]
    return {
        "cases": others[:_IN_FULL] + brief,
        "passed_cases": [case["name"] for case in cases if case["status"] == "passed"],
    }
