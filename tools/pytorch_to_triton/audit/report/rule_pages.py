"""references/auditing_rules.md: one page with every rule, written from the rules themselves.

python -m pytorch_to_triton.audit.report.rule_pages
"""

from collections.abc import Iterator, Sequence

from pytorch_to_triton import places
from pytorch_to_triton.audit.registry import KINDS, Rule, all_rules
from pytorch_to_triton.audit.report.markdown import fenced, paragraph
from pytorch_to_triton.audit.report.wording import (
    CATEGORIES,
    EVIDENCE,
    SUSPECTED,
    example_of,
    paragraphs_of,
)
from pytorch_to_triton.schema.finding import SEVERITIES, Category

PAGE = "auditing_rules.md"
_HEAD = """\
# The rules of an audit

Written by `python -m pytorch_to_triton.audit.report.rule_pages` from the rules themselves.

A rule's severity says what its findings cost:

- `critical`: the kernel does not compile, cannot be launched, or gives wrong results.
- `high`: it gives wrong results under conditions that occur.
- `medium`: it loses time or accuracy.
- `low`: it may do so.
- `info`: worth knowing.

Its evidence says what the findings rest on:
"""


def main() -> None:
    """Write the page where the project's references lie."""
    (places.shipped("references") / PAGE).write_text(page(all_rules()), encoding="utf-8")


def page(rules: Sequence[Rule]) -> str:
    """The whole page: the rules by category, in each the gravest first."""
    lines = [_HEAD, *(f"- `{kind}`: {about}." for kind, about in EVIDENCE.items())]
    lines += ["", f"A suspicion {SUSPECTED}. Where the kernel is run, it is confirmed or dropped."]
    for category in CATEGORIES:
        those = _ranked([rule for rule in rules if rule.category == category])
        if those:
            lines += ["", f"## {category.capitalize()}", *_contents(category, those)]
        for rule in those:
            lines += ["", *_section(rule)]
    return "\n".join(lines) + "\n"


def _ranked(rules: Sequence[Rule]) -> list[Rule]:
    return sorted(rules, key=lambda rule: (SEVERITIES.index(rule.severity), rule.name))


def _contents(category: Category, rules: Sequence[Rule]) -> Iterator[str]:
    yield f"\n| {category} | severity | evidence |"
    yield "|---|---|---|"
    yield from (
        f"| [{rule.name}](#{rule.name}) | {_severity(rule)} | {KINDS[rule.needs]} |" for rule in rules
    )


def _severity(rule: Rule) -> str:
    return rule.severity if rule.suspected is None else f"{rule.suspected}; {rule.severity} once confirmed"


def _section(rule: Rule) -> Iterator[str]:
    title, *why = map(paragraph, paragraphs_of(rule))
    yield f"### {rule.name}"
    yield f"\n**{title}** Severity: {_severity(rule)}. Evidence: {KINDS[rule.needs]}."
    yield from (f"\n{one}" for one in why)
    if example := example_of(rule):
        yield "\nIt finds:\n"
        yield from fenced(example, "python")


if __name__ == "__main__":
    main()
