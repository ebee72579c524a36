"""What is installed: one version everywhere, pins within the supported range, a wheel with all its data."""

import json
import re
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


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_a_requirement_is_pinned_within_its_range(requirement: Requirement) -> None:
    assert requirement.specifier.contains(PINS[requirement.name])


def test_pins_are_plain_versions_that_every_index_has() -> None:
    assert [name for name, pin in PINS.items() if not re.fullmatch(r"[\d.]+", pin)] == []


@pytest.mark.parametrize("folder", ["reference_kernels", "references", "docs_cache/guides"])
def test_the_wheel_carries_every_file_that_ships(folder: str, wheel: list[str]) -> None:
    files = {file.name for file in (ROOT / folder).iterdir() if file.is_file()}
    assert files
    assert files <= {Path(name).name for name in wheel if f"/package_data/{folder}/" in name}


def test_the_wheel_carries_the_skill_and_both_packages(wheel: list[str]) -> None:
    assert "pytorch_to_triton/package_data/SKILL.md" in wheel
    assert "pytorch_to_triton/worker/bootstrap.py" in wheel
    assert "pytorch_to_triton_server/cli.py" in wheel


def test_the_wheel_installs_no_package_of_a_common_name(wheel: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "pytorch_to_triton",
        "pytorch_to_triton_server",
    }
