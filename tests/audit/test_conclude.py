"""What is recommended first after an audit."""

from pathlib import Path
from typing import Any

from pytorch_to_triton.audit.conclude import recommendations
from pytorch_to_triton.schema.finding import Finding


def found(rule: str, line: int, **changed: Any) -> Finding:
    place = {"file": Path("/p/k.py"), "line": line, "column": 1}
    words = {"message": "It rounds.", "suggestion": "Do not.", "evidence": "source"}
    fields = {"rule": rule, "severity": "medium", "category": "correctness", **place, **words}
    return Finding(**{**fields, **changed})


def test_of_equally_bad_rules_the_one_with_more_places_is_recommended_first() -> None:
    once, twice = found("a", 1), [found("b", 2), found("b", 3)]
    worst = found("c", 4, severity="high")
    known = [found("d", line, known=True) for line in range(5, 9)]
    listed = recommendations([once, *twice, worst, *known], (), Path("/p"))
    assert [(one.rule, one.places) for one in listed] == [
        ("c", ("k.py:4",)),
        ("b", ("k.py:2", "k.py:3")),
        ("a", ("k.py:1",)),
    ]
