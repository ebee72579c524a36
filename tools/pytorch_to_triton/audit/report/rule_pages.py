"""What is written of the rules themselves: the index in references/, and a page for each.

`python -m pytorch_to_triton.audit.report.rule_pages` writes the index, references/auditing_rules.md;
`docs read rules/NAME` shows a page.
"""

from collections.abc import Iterator, Sequence

from pytorch_to_triton import places
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.report.markdown import fence_code, paragraph
from pytorch_to_triton.audit.report.wording import (
    CATEGORIES,
    EVIDENCE,
    SUSPECTED,
    example_of,
    paragraphs_of,
)
from pytorch_to_triton.audit.rule import Rule
from pytorch_to_triton.schema.finding import SEVERITIES

INDEX = "auditing_rules.md"
_HEAD = """\
# The rules of an audit

`pytorch-to-triton docs read rules/NAME` shows why a rule matters, how to fix what it finds, and an example.
This page is written from the rules themselves, by `python -m pytorch_to_triton.audit.report.rule_pages`.

A rule's severity says what its findings cost:

- `critical`: the kernel does not compile, cannot be launched, or gives wrong results.
- `high`: it gives wrong results under conditions that occur.
- `medium`: it loses time or accuracy.
- `low`: it may do so.
- `info`: worth knowing.

Its evidence says what the findings rest on:
"""


def main() -> None:
    """Write the index where the project's references lie."""
    (places.shipped("references") / INDEX).write_text(index(all_rules()), encoding="utf-8")


def index(rules: Sequence[Rule]) -> str:
    """One row a rule, by category, in each the gravest first."""
    lines = [_HEAD, *(f"- `{kind}`: {about}." for kind, about in EVIDENCE.items())]
    lines += ["", f"A suspicion {SUSPECTED}. Where the kernel is run, it is confirmed or dropped."]
    for category in CATEGORIES:
        lines += ["", f"## {category.capitalize()}", "", "| rule | severity | evidence | fault |"]
        lines.append("|---|---|---|---|")
        lines += [_entry(rule) for rule in _rank([rule for rule in rules if rule.category == category])]
    return "\n".join(lines) + "\n"


def page(rule: Rule) -> str:
    """What a rule finds, why it matters, how to fix it, and an example."""
    title, *rest = map(paragraph, paragraphs_of(rule))
    return "\n".join(
        [
            f"## {rule.name}",
            f"\n**{title}** Severity: {_severity(rule)}. Evidence: {_evidence(rule)}.",
            *(f"\n{one}" for one in rest),
            *_example(rule),
            "",
        ]
    )


def _rank(rules: Sequence[Rule]) -> list[Rule]:
    return sorted(rules, key=lambda rule: (SEVERITIES.index(rule.severity), rule.name))


def _entry(rule: Rule) -> str:
    title = paragraph(rule.title).replace("|", "\\|")
    return f'| <a id="{rule.name}"></a>{rule.name} | {_severity(rule)} | {_evidence(rule)} | {title} |'


def _severity(rule: Rule) -> str:
    return rule.severity if rule.suspected is None else f"{rule.suspected}; {rule.severity} once confirmed"


def _evidence(rule: Rule) -> str:
    return ", ".join(rule.evidence)


def _example(rule: Rule) -> Iterator[str]:
    if example := example_of(rule):
        yield "\nIt finds:\n"
        yield from fence_code(example, "python")


if __name__ == "__main__":
    main()
