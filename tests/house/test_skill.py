"""SKILL.md is valid, and true for the tools that exist."""

import re
import shutil
from pathlib import Path

import pytest
import skills_ref

from pytorch_to_triton_server.catalogue import TOOLS

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "references").glob("*.md"))


def test_the_skill_is_valid_under_the_open_standard(tmp_path: Path) -> None:
    # The standard wants the folder to bear the skill's name, which a checkout need not.
    folder = tmp_path / "pytorch-to-triton"
    folder.mkdir()
    shutil.copy(ROOT / "SKILL.md", folder)
    assert skills_ref.validate(folder) == []


def test_the_skill_lists_the_tools_that_exist_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", SKILL, re.MULTILINE)
    assert sorted(listed) == sorted([*(tool.name for tool in TOOLS), "job"])


def test_the_skill_is_a_short_router() -> None:
    assert len(SKILL.splitlines()) < 120


def test_the_skill_links_to_every_reference_page() -> None:
    assert {f"references/{page.name}" for page in PAGES} == set(re.findall(r"\]\((references/.+?)\)", SKILL))


@pytest.mark.parametrize("page", [ROOT / "SKILL.md", *PAGES], ids=lambda page: page.name)
def test_no_page_names_a_tool_by_one_client_s_prefix(page: Path) -> None:
    assert "mcp__" not in page.read_text(encoding="utf-8")
