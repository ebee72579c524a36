"""What is installed: one version everywhere, pins within the supported range, a wheel with all its data."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])
]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().lower().splitlines()
    if not line.startswith("#")
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in a wheel that is built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file).namelist()


def test_changelog_and_plugin_have_the_version_of_the_package() -> None:
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["version"]
    assert json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())["version"] == PROJECT["version"]


def test_a_requirement_is_pinned_within_its_range_to_a_plain_version_that_every_index_has() -> None:
    assert [r.name for r in REQUIREMENTS if not r.specifier.contains(PINS[r.name])] == []
    assert [name for name, pin in PINS.items() if not re.fullmatch(r"[\d.]+", pin)] == []


def steps_of_setup(checkout: Path) -> list[str]:
    """What `make setup` would do there."""
    planned = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "setup"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    return planned.stdout.splitlines()


def test_a_package_more_sets_the_environment_up_again_and_a_tool_s_setting_does_not(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    *installing, last = steps_of_setup(tmp_path)
    assert any("pip install" in step for step in installing)
    subprocess.run(last, shell=True, cwd=tmp_path, check=True)
    assert "Nothing to be done" in " ".join(steps_of_setup(tmp_path))
    asked = tmp_path / "pyproject.toml"
    asked.write_text(asked.read_text().replace('    "emit",\n', "").replace("line-length = 110", ""))
    assert "Nothing to be done" in " ".join(steps_of_setup(tmp_path))
    asked.write_text(asked.read_text().replace("rich>=14.0", "rich>=14.1"))
    assert steps_of_setup(tmp_path) == [*installing, last]


def test_the_wheel_carries_every_file_that_ships_and_no_package_of_a_common_name(wheel: list[str]) -> None:
    for folder in ("reference_kernels", "references", "docs_cache/guides"):
        files = {file.name for file in (ROOT / folder).iterdir() if file.is_file()}
        assert files
        assert files <= {Path(name).name for name in wheel if f"/package_data/{folder}/" in name}
    data = ("package_data/SKILL.md", "worker/bootstrap.py", "docs/synonyms.txt")
    assert {f"pytorch_to_triton/{name}" for name in data} <= set(wheel)
    tops = {name.split("/")[0] for name in wheel if ".dist-info" not in name}
    assert tops == {"pytorch_to_triton", "pytorch_to_triton_server"}
