from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inspect.pages import PAGE_LINES, page_of
from pytorch_to_triton.schema.compiled import InspectedKernel

from .compiled import inspected

LINES = [f"line {number}" for number in range(1, 2 * PAGE_LINES + 2)]


@pytest.fixture
def kernel(tmp_path: Path) -> InspectedKernel:
    """A kernel with a PTX of two full pages and a line."""
    text = tmp_path / "k.ptx"
    text.write_text("\n".join(LINES) + "\n")
    return inspected(texts={"ptx": text})


def test_the_pages_together_are_the_text(kernel: InspectedKernel) -> None:
    pages = [page_of(kernel, "ptx", number) for number in (1, 2, 3)]
    assert [page.first_line for page in pages] == [1, PAGE_LINES + 1, 2 * PAGE_LINES + 1]
    assert {page.pages for page in pages} == {3}
    assert "\n".join(page.text for page in pages) == "\n".join(LINES)


@pytest.mark.parametrize("number", [0, 4])
def test_a_page_that_is_not_there_is_refused_with_the_number_of_pages(
    kernel: InspectedKernel, number: int
) -> None:
    with pytest.raises(BadInput) as refusal:
        page_of(kernel, "ptx", number)
    assert refusal.value.message == f"The ptx of k has 3 pages, not {number}."
    assert refusal.value.hint == "Ask for a page from 1 to 3."


def test_sections_for_debuggers_are_left_to_the_whole_text(kernel: InspectedKernel) -> None:
    code = '.visible .entry k()\n{\n\tret;\n}\n\t.file\t1 "k.py"\n'
    sections = "\t.section\t.debug_info\n\t{\n.b8 2 // DWARF\n\t}\n\t.section\t.debug_macinfo\t{\t}\n"
    kernel.compiled.texts["ptx"].write_text(code + sections)
    page = page_of(kernel, "ptx", 1)
    assert page.text == code.rstrip("\n")
    assert page.whole.read_text() == code + sections


def test_a_text_that_triton_did_not_keep_is_refused(kernel: InspectedKernel) -> None:
    with pytest.raises(BadInput, match=r"There is no llir of k\. Triton did not keep it\."):
        page_of(kernel, "llir", 1)
