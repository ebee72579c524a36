"""Each guide that ships is a page."""

from pathlib import Path

from pytorch_to_triton.docs.guides import guide_pages, page_of

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docs_cache" / "guides").glob("*.md"))


def test_every_guide_is_a_page_of_its_file_s_name() -> None:
    assert FILES
    assert [page.name for page in guide_pages()] == [f"guides/{file.stem}" for file in FILES]


def test_a_guide_s_title_is_its_first_heading() -> None:
    for file in FILES:
        page = page_of(file)
        assert page.text == file.read_text(encoding="utf-8")
        assert page.text.startswith(f"# {page.title}\n") or page.text.replace("`", "").startswith(
            f"# {page.title}"
        )
        assert (page.source, page.applies_to) == ("guide", "Triton 3.6 to 3.9")


def test_a_guide_without_a_heading_is_titled_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "memory_access.md"
    file.write_text("Text.\n", encoding="utf-8")
    assert page_of(file).title == "memory access"
