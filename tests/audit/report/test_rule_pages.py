"""The page of rules is the one that the rules would write today, and findings link to it."""

from pytorch_to_triton import places
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.report.rule_pages import PAGE, page


def test_the_page_is_up_to_date() -> None:
    written = (places.shipped("references") / PAGE).read_text(encoding="utf-8")
    assert written == page(all_rules()), "python -m pytorch_to_triton.audit.report.rule_pages writes it"


def test_every_rule_has_a_heading_and_an_entry_in_a_table() -> None:
    written = page(all_rules())
    for rule in all_rules():
        assert written.count(f"\n### {rule.name}\n") == 1
        assert f"| [{rule.name}](#{rule.name}) |" in written


def test_an_example_of_timings_is_not_shown() -> None:
    assert '"median_ms"' not in page(all_rules())
