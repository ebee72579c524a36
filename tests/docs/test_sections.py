"""Markdown is told apart into sections, and cut into passages that lose nothing and split no code."""

import re

import pytest

from pytorch_to_triton.docs.library import guide_pages
from pytorch_to_triton.docs.sections import below, cut, sections_of, title_of

PAGE = """# Masks

Before.

## Loads

`tl.load` takes one.

```python
# not a heading
## nor this
```

### With `other`

A value.

## Stores ##

No value.
"""


def test_a_section_is_reported_with_the_headings_above_it_and_its_text() -> None:
    assert [section.headings for section in sections_of(PAGE)] == [
        ("Masks",),
        ("Masks", "Loads"),
        ("Masks", "Loads", "With other"),
        ("Masks", "Stores"),
    ]
    assert [section.path for section in sections_of(PAGE)] == ["", "Loads", "Loads > With other", "Stores"]
    assert sections_of(PAGE)[2].text == "A value."
    assert sections_of(PAGE)[1].text.endswith("# not a heading\n## nor this\n```")
    before, after = sections_of("Before.\n# Title\nAfter.\n")
    assert (before.headings, before.text) == ((), "Before.")
    assert (after.headings, after.text) == (("Title",), "After.")
    headings = [section.headings[-1] for section in sections_of("# A\n### B\n## C\n")]
    paths = [section.path for section in sections_of("# A\n### B\n## C\n")]
    assert (headings, paths) == (["A", "B", "C"], ["", "B", "C"])


@pytest.mark.parametrize(
    ("markdown", "sections"),
    [
        ("```\n# code\n", 1),
        ("~~~ text\n# code\n```\n# code\n~~~\n", 1),
        ("````\n```\n# code\n```\n# code\n````\n", 1),
        ("- item\n\n    ```\n    # code\n    ```\n", 1),
        ("```\n# code\n```\n\n## Next\n", 2),
        ("```\n# code\n`````  \n\n## Next\n", 2),
        ("```x``` is code\n\n## Next\n", 2),
    ],
)
def test_what_looks_like_a_heading_in_a_fence_is_none(markdown: str, sections: int) -> None:
    assert len(sections_of(f"# Title\n\n{markdown}")) == sections


def test_a_page_s_title_is_the_heading_that_it_starts_with() -> None:
    for markdown, title in [
        ("# `tl.load`\n\nText.\n", "tl.load"),
        ("Text.\n# Title\n", ""),
        ("## Title\n", ""),
        ("# " + "x" * 1000, "x" * 200),
    ]:
        assert title_of(markdown) == title
    assert [
        page.name for page in guide_pages() if not page.text.replace("`", "").startswith(f"# {page.title}\n")
    ] == []


def test_a_section_is_read_with_those_below_it() -> None:
    read = below(sections_of(PAGE), ("Masks", "Loads"))
    assert read.startswith("## Loads\n\n`tl.load`")
    assert read.endswith("### With other\n\nA value.")
    assert "Stores" not in read


def test_text_is_cut_between_paragraphs_a_table_between_its_lines_and_code_never() -> None:
    assert cut("one two\n\nthree\n\n\nfour five six\n", characters=14) == [
        "one two\n\nthree",
        "four five six",
    ]
    rows = [f"| {number} | value |" for number in range(9)]
    pieces = cut("\n".join(rows), characters=40)
    assert len(pieces) > 1
    assert all(len(piece) <= 40 for piece in pieces)
    assert "\n".join(pieces).split("\n") == rows
    code = "```python\n" + "\n\n".join(f"x{number} = {number}" for number in range(50)) + "\n```"
    assert code in cut(f"Before:\n{code}\nAfter.", characters=60)


def test_no_word_of_a_guide_is_lost_and_no_fence_of_it_is_split() -> None:
    for page in guide_pages():
        pieces = cut(page.text, characters=400)
        assert "".join("\n".join(pieces).split()) == "".join(page.text.split()), page.name
        fences = [len(re.findall(r"^ *```", piece, re.MULTILINE)) for piece in pieces]
        assert all(number % 2 == 0 for number in fences), page.name
