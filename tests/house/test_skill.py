"""SKILL.md is valid."""

import shutil
from pathlib import Path

import skills_ref

ROOT = Path(__file__).parents[2]


def test_the_skill_is_valid_under_the_open_standard(tmp_path: Path) -> None:
    # The standard wants the folder to bear the skill's name, which a checkout need not.
    folder = tmp_path / "pytorch-to-triton"
    folder.mkdir()
    shutil.copy(ROOT / "SKILL.md", folder)
    assert skills_ref.validate(folder) == []
