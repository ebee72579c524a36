"""Run folders are unique, say what was asked, and never pile up."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.run_folder import RunFolders, in_use
from pytorch_to_triton.schema.job import Job, Runtime

JOB = Job(kind="versions")
RUNTIME = Runtime(python=sys.executable, interpreter=True)


def used_up(folders: RunFolders) -> Path:
    """A folder of a job that has ended."""
    folders.make_room()
    with folders.new(JOB, RUNTIME) as folder:
        return folder


def test_a_folder_says_what_was_asked_and_in_which_mode(tmp_path: Path) -> None:
    with RunFolders(tmp_path / "runs").new(Job(kind="trace", arguments={"path": "x.py"}), RUNTIME) as folder:
        asked = json.loads((folder / "job.json").read_text())
    assert asked == {
        "kind": "trace",
        "arguments": {"path": "x.py"},
        "needs": [],
        "runtime": RUNTIME.model_dump(),
    }
    assert "trace" in folder.name


def test_the_oldest_folders_make_room_for_a_new_one(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path, max_folders=3)
    made = [used_up(folders) for _ in range(5)]
    assert sorted(tmp_path.iterdir()) == made[2:]


def test_the_oldest_folders_beyond_the_size_are_removed(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path, max_bytes=10_000)
    made = []
    for _ in range(3):
        made.append(used_up(folders))
        (made[-1] / "tensor.bin").write_bytes(bytes(8_000))
    assert sorted(tmp_path.iterdir()) == made[1:]


def test_folders_in_use_stay_until_they_are_not(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path, max_folders=1)
    first = used_up(folders)
    with in_use(first), folders.new(JOB, RUNTIME) as second:
        folders.make_room()
        assert sorted(tmp_path.iterdir()) == [first, second]
    folders.make_room()
    assert sorted(tmp_path.iterdir()) == []


def test_many_may_make_room_at_once(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path, max_folders=2)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(used_up, [folders] * 64))
    folders.make_room()
    assert len(set(made)) == 64
    assert len(list(tmp_path.iterdir())) == 1


def test_a_kind_is_a_worker_module_or_an_absolute_python_file() -> None:
    for kind in ["../escape", "Upper", "relative/job.py", "", "/no/python/file"]:
        with pytest.raises(ValueError, match="kind"):
            Job(kind=kind)
