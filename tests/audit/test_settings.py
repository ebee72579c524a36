"""Settings for audits in pyproject.toml; a bad table is refused."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.request import settings_for
from pytorch_to_triton.errors import BadInput


def project(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[tool.pytorch-to-triton.audit]\n{table}", encoding="utf-8")
    inner = folder / "src" / "kernels"
    inner.mkdir(parents=True)
    return inner


def test_the_table_of_the_nearest_project_above_holds(tmp_path: Path) -> None:
    table = (
        'fail_on = "high"\ndisable = ["host_sync_in_run"]\nbaseline = "known.json"\nexclude = ["old/*"]\n'
        'archs = ["sm_80"]\n[tool.pytorch-to-triton.audit.severity]\nnonexistent_api = "low"\n'
    )
    settings = settings_for(project(tmp_path, table))
    assert (settings.root, settings.fail_on, settings.disable) == (tmp_path, "high", ("host_sync_in_run",))
    assert (settings.baseline, settings.exclude) == (tmp_path / "known.json", ("old/*",))
    assert (settings.archs, settings.severity) == (("sm_80",), {"nonexistent_api": "low"})


def test_a_project_without_the_table_has_the_usual_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    settings = settings_for(tmp_path)
    assert (settings.fail_on, settings.disable, settings.baseline) == ("medium", (), None)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('fail_on = "severe"\n', "fail_on: Input should be 'critical'"),
        ("colour = 3\n", "colour: Extra inputs are not permitted"),
        ('disable = ["host_sync_in_runs"]\n', "there is no rule host_sync_in_runs"),
        ("fail_on = \n", "cannot be read"),
    ],
)
def test_a_bad_table_is_refused_with_the_file(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as refusal:
        settings_for(project(tmp_path, table))
    assert str(tmp_path / "pyproject.toml") in refusal.value.message


def test_a_rule_that_is_misspelt_is_answered_with_its_likes(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refusal:
        settings_for(project(tmp_path, 'disable = ["host_sync_in_runs"]\n'))
    assert "host_sync_in_run" in refusal.value.hint
