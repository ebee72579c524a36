"""The installed Triton is reported name by name, as Triton tells it, and what it lacks is reported too."""

import pytest

from pytorch_to_triton.docs.docstrings import read_docstring
from pytorch_to_triton.docs.installed import MISSING, NAMES, installed_pages, spellings
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.triton_api.history import history
from pytorch_to_triton.triton_api.surface import Surface

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def pages(installed: Surface) -> dict[str, Page]:
    return {page.name: page for page in installed_pages(installed)}


def pages_of(version: str) -> dict[str, Page]:
    """As they would be with another release installed."""
    return {page.name: page for page in installed_pages(history().surface(version))}


async def test_a_function_is_reported_with_signature_meaning_and_parameters(
    pages: dict[str, Page], installed: Surface
) -> None:
    page = pages["triton.language.load"]
    assert (page.title, page.source) == ("tl.load", "installed")
    assert page.applies_to == f"Triton {installed.version} (installed)"
    assert page.text.startswith("# tl.load\n\n```python\ntl.load(pointer, mask=None, other=None,")
    assert "values are loaded from memory" in page.text
    assert "- `other` (Block, optional): If `mask[idx]` is false, return `other[idx]`" in page.text
    assert "import triton.language as tl" in page.text


async def test_functions_are_reported_as_compiled_code_sees_them_and_those_of_libdevice_with_what_they_call(
    pages: dict[str, Page],
) -> None:
    page = pages["triton.language.sum"]
    assert "tl.sum(input, axis=None, keep_dims=False, dtype=None)" in page.text
    assert "`x.sum(...)`" in page.text
    assert "upcasted to `tl.int32`" in page.text
    page = pages["triton.language.extra.libdevice.tanh"]
    assert page.title == "libdevice.tanh"
    assert "`__nv_tanhf` for fp32" in page.text
    assert "from triton.language.extra import libdevice" in page.text


async def test_a_class_is_reported_with_its_members(pages: dict[str, Page]) -> None:
    text = pages["triton.language.tensor"].text
    assert "num_stages" not in pages["triton.language.range"].text.partition("## Members")[2]
    assert "- `sum(axis=None, keep_dims=False, dtype=None)`" in text
    assert "- `T`" in text


async def test_no_markup_of_the_docstrings_is_left(pages: dict[str, Page]) -> None:
    left = [page.name for page in pages.values() if ":code:`" in page.text or ".. code-block" in page.text]
    assert left == []


async def test_every_public_name_leads_to_a_page_and_is_listed_once(
    pages: dict[str, Page], installed: Surface
) -> None:
    ways = spellings(installed)
    assert [name for name in installed.canonical if ways.get(name, name) not in pages] == []
    lines = pages[NAMES].text.split("\n")
    starts = " ".join(line.split("`: ")[0] for line in lines if line.startswith("- ")) + " "
    named = [page.title for name, page in pages.items() if name in installed.entries]
    assert [title for title in named if starts.count(f"`{title}`") + starts.count(f"`{title} ") != 1] == []


async def test_what_only_other_releases_have_says_so_and_what_to_write_instead() -> None:
    page = pages_of("3.7.1")["triton.language.atomic_load"]
    assert page.title == "tl.atomic_load (not in 3.7.1)"
    assert page.applies_to == "Triton 3.9, not 3.7.1 (installed)"
    assert "Use tl.atomic_add(pointer, 0)" in page.text
    assert "Only in Triton 3.7 to 3.9." in pages_of("3.7.1")["triton.language.squeeze"].text
    assert "`dim` only in 3.7 to 3.9." in pages_of("3.7.1")["triton.language.cat"].text
    text = pages_of("3.9.0")["triton.language.make_block_ptr"].text
    assert "**Removed**" in text
    assert "Use tl.make_tensor_descriptor" in text


async def test_names_that_people_expect_in_vain_are_listed_only_where_they_are_missing() -> None:
    old, new = pages_of("3.6.0")[MISSING].text, pages_of("3.9.0")[MISSING].text
    assert "- `tl.relu`: Use tl.maximum(x, 0.0)." in old
    assert "- `tl.squeeze`: Use tl.reshape." in old
    assert "`tl.squeeze`" not in new


async def test_a_docstring_becomes_markdown() -> None:
    for docstring, prose in [
        ("Like :py:func:`sum` of :code:`x`.", "Like `sum` of `x`."),
        ("See `the site <https://triton.test>`_.", "See [the site](https://triton.test)."),
        (
            ".. highlight:: python\n.. code-block:: python\n\n    x = ``1``\n\n    y = 2\n\nAfter.",
            "```python\nx = ``1``\n\ny = 2\n```\n\nAfter.",
        ),
        (".. note::\n  Take\n  care.", "**Note:** Take care."),
        (".. a comment\n   in two lines\n\nText.", "Text."),
        ("Example\n*******\nText.", "**Example**\n\nText."),
        ("Cases:\n\n    (1) one,\n    two.", "Cases:\n\n(1) one,\ntwo."),
        (
            ">>> tl.arange(0, 4)\n[0, 1, 2, 3]\n\nAfter.",
            "```python\n>>> tl.arange(0, 4)\n[0, 1, 2, 3]\n```\n\nAfter.",
        ),
    ]:
        assert read_docstring(docstring).prose == prose


async def test_the_fields_of_a_docstring_are_reported_by_parameter() -> None:
    said = read_docstring(
        "Text.\n\n:param x, y: the\n    inputs\n:type x: Block\n:param *sizes: many\n:return: all"
    )
    assert said.parameters == {"x": "The inputs.", "y": "The inputs.", "sizes": "Many."}
    assert said.types == {"x": "Block"}
    assert said.notes == ("**Returns:** all",)
    assert said.prose == "Text."
