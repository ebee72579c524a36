"""The index of rules is the one that the rules would write today, and each rule has a page."""

from pytorch_to_triton import places
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.report.rule_pages import INDEX, index, page


def test_the_index_is_up_to_date() -> None:
    written = (places.shipped("references") / INDEX).read_text(encoding="utf-8")
    assert written == index(all_rules()), "python -m pytorch_to_triton.audit.report.rule_pages writes it"


def test_every_rule_has_one_row_with_an_anchor_and_what_is_wrong() -> None:
    rows = [line for line in index(all_rules()).splitlines() if line.startswith("| <a id=")]
    assert len(rows) == len(all_rules())
    for rule in all_rules():
        (row,) = (row for row in rows if row.startswith(f'| <a id="{rule.name}"></a>{rule.name} | '))
        assert row.count(" | ") == 3
        assert rule.severity in row


def test_a_page_says_what_is_wrong_why_how_to_fix_it_and_shows_an_example() -> None:
    (rule,) = (rule for rule in all_rules() if rule.name == "out_of_bounds")
    text = page(rule)
    assert "Severity: critical. Evidence: measured." in text
    assert "\nFix: mask the access" in text
    assert "```python" in text


def test_an_example_of_timings_is_not_shown() -> None:
    assert not any('"median_ms"' in page(rule) for rule in all_rules())
