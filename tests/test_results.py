"""Results take their place whole, and never that of a file which the tool did not write."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.results import (
    MARKER,
    PREVIOUS,
    Destination,
    Fresh,
    folder_for,
    owner_of,
    put_file,
)
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

Put = Callable[..., Path]


class ValueWithPaths(Value):
    """A result with paths at every depth."""

    folder: Path
    lines: tuple[str, ...]
    by_name: dict[str, Path]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(path=tmp_path / "ops.py", name="softmax")


@pytest.fixture
def put(tmp_path: Path, target: Target) -> Put:
    """Puts files, by name, where the results of one call lie; returns their folder."""

    def put(*names: str, text: str = "new", of: Target = target, force: bool = False) -> Path:
        destination = Destination(tmp_path / "out" / "softmax", "convert", of, force)
        with destination.fresh() as fresh:
            for name in names:
                (fresh.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (fresh.folder / name).write_text(text)
        return destination.folder

    return put


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != MARKER}


def test_results_replace_the_earlier_ones_of_the_same_target(put: Put, tmp_path: Path) -> None:
    put("stage1.py", "stage2.py", "tuning/a.py", text="old")
    folder = put("stage1.py", "report.md")
    assert names(folder) == {"stage1.py", "report.md"}
    assert (folder / "stage1.py").read_text() == "new"
    assert os.listdir(tmp_path / "out") == ["softmax"]


def test_an_error_leaves_the_earlier_results_and_nothing_else(put: Put, tmp_path: Path) -> None:
    folder = put("kernel.py", text="old")
    destination = Destination(folder, "convert", Target(path=tmp_path / "ops.py", name="softmax"))

    def interrupted() -> None:
        with destination.fresh() as fresh:
            (fresh.folder / "kernel.py").write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        interrupted()
    assert (folder / "kernel.py").read_text() == "old"
    assert os.listdir(tmp_path / "out") == ["softmax"]


def test_an_error_leaves_no_empty_folders(tmp_path: Path, target: Target) -> None:
    destination = Destination(tmp_path / "a" / "b" / "c", "convert", target)
    with pytest.raises(RuntimeError), destination.fresh():
        raise RuntimeError
    assert not (tmp_path / "a").exists()


def test_another_target_of_the_same_name_is_refused(put: Put, tmp_path: Path) -> None:
    folder = put("kernel.py", text="old")
    other = Target(path=tmp_path / "other" / "ops.py", name="softmax")
    with pytest.raises(BadInput, match=r"holds the results of convert for .*ops\.py:softmax, not for"):
        put("kernel.py", of=other)
    assert (folder / "kernel.py").read_text() == "old"
    put("report.md", of=other, force=True)
    assert names(folder) == {"report.md"}


def test_what_the_tool_did_not_write_is_refused_and_stays_where_it_is_forced(put: Put) -> None:
    folder = put("kernel.py", text="old")
    (folder / "notes.md").write_text("mine")
    with pytest.raises(BadInput, match=r"notes\.md was not written by") as refusal:
        put("kernel.py")
    assert "--force" in refusal.value.hint
    put("kernel.py", force=True)
    assert (folder / "notes.md").read_text() == "mine"
    assert (folder / "kernel.py").read_text() == "new"


def test_a_file_that_was_changed_since_is_refused(put: Put) -> None:
    folder = put("kernel.py", text="old")
    (folder / "kernel.py").write_text("edited")
    with pytest.raises(BadInput, match=r"kernel\.py was changed after"):
        put("kernel.py")
    assert (folder / "kernel.py").read_text() == "edited"


def test_a_folder_of_somebody_else_is_refused_before_anything_is_made(put: Put, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "softmax"
    folder.mkdir(parents=True)
    (folder / "kernel.py").write_text("mine")
    with pytest.raises(BadInput, match=r"kernel\.py was not written"):
        put("kernel.py")
    assert names(tmp_path / "out") == {"softmax/kernel.py"}
    put("kernel.py", force=True)
    assert (folder / "kernel.py").read_text() == "new"


def test_an_empty_folder_is_taken(put: Put, tmp_path: Path) -> None:
    (tmp_path / "out" / "softmax").mkdir(parents=True)
    assert names(put("kernel.py")) == {"kernel.py"}


def test_what_a_run_of_their_tests_leaves_behind_goes_with_the_earlier_results(put: Put) -> None:
    folder = put("kernel.py", text="old")
    for cache in (".pytest_cache", "__pycache__", ".ruff_cache"):
        (folder / cache).mkdir()
        (folder / cache / "README.md").write_text("left behind")
    put("kernel.py")
    assert names(folder) == {"kernel.py"}


def test_a_symbolic_link_is_refused_and_what_it_points_to_stays(put: Put, tmp_path: Path) -> None:
    folder = put("kernel.py", text="old")
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    with pytest.raises(BadInput, match="is a symbolic link to"):
        put("kernel.py")
    put("kernel.py", force=True)
    assert not folder.is_symlink()
    assert (elsewhere / "kernel.py").read_text() == "old"


def test_a_link_among_the_results_is_refused(put: Put, tmp_path: Path) -> None:
    folder = put("kernel.py", text="old")
    (tmp_path / "mine.py").write_text("old")
    (folder / "kernel.py").unlink()
    (folder / "kernel.py").symlink_to(tmp_path / "mine.py")
    with pytest.raises(BadInput, match=r"kernel\.py was changed after"):
        put("kernel.py")
    assert (tmp_path / "mine.py").read_text() == "old"


def test_the_current_folder_is_refused(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("kernel.py")
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match="is the current folder"):
        put("kernel.py", force=True)


def test_results_that_moved_with_their_project_are_still_the_tool_s(put: Put, tmp_path: Path) -> None:
    folder = put("out.py")
    (tmp_path / "ops.py").write_text("")
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "ops.py").rename(moved / "ops.py")
    (tmp_path / "out").rename(moved / "out")
    target = Target(path=moved / "ops.py", name="softmax")
    Destination(moved / folder.relative_to(tmp_path), "convert", target).check()


def test_the_last_good_results_are_kept_until_there_are_better_ones(put: Put, target: Target) -> None:
    folder = put("kernel.py", "report.md", text="good")

    def failed() -> Path | None:
        with Destination(folder, "convert", target).fresh() as fresh:
            (fresh.folder / "report.md").write_text("bad")
            return fresh.keep_previous("kernel.py")

    for _ in range(2):
        assert failed() == folder / PREVIOUS
        assert names(folder) == {"report.md", "previous/kernel.py", "previous/report.md"}
        assert (folder / "report.md").read_text() == "bad"
        assert (folder / PREVIOUS / "report.md").read_text() == "good"
    assert names(put("kernel.py")) == {"kernel.py"}
    put("report.md")
    assert failed() is None


def test_paths_are_reported_as_they_will_be(tmp_path: Path, target: Target) -> None:
    destination = Destination(tmp_path / "it's here", "convert", target)
    with destination.fresh() as fresh:
        value = relocated(fresh)
    assert value.folder == destination.folder
    assert value.lines == (f"validate '{destination.folder}/k.py' --seed 1",)
    assert value.by_name == {"k": destination.folder / "k.py"}


def relocated(fresh: Fresh) -> ValueWithPaths:
    file = fresh.folder / "k.py"
    return fresh.relocated(
        ValueWithPaths(folder=fresh.folder, lines=(f"validate '{file}' --seed 1",), by_name={"k": file})
    )


def test_a_link_in_the_last_place_of_a_folder_s_path_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "parent").symlink_to(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert folder_for(tmp_path / "parent" / "sub") == tmp_path / "real" / "sub"
    assert folder_for(tmp_path / "link") == tmp_path / "link"


# One file


def put_document(path: Path, text: str, *, force: bool = False) -> None:
    put_file(path, text, owner_of("audit", Target(path=path.parent), path.parent), force=force)


def test_a_document_replaces_the_earlier_one_of_the_same_tool(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "audit.md"
    put_document(path, "old")
    put_document(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("how", ["never ours", "changed", "a link"])
def test_a_document_never_replaces_what_the_tool_did_not_write(tmp_path: Path, how: str) -> None:
    path, mine = tmp_path / "audit.md", tmp_path / "mine.md"
    mine.write_text("mine")
    if how == "never ours":
        path.write_text("mine")
    elif how == "changed":
        put_document(path, "old")
        path.write_text("mine")
    else:
        path.symlink_to(mine)
    with pytest.raises(BadInput, match=r"audit\.md") as refusal:
        put_document(path, "new")
    assert "--force" in refusal.value.hint
    assert path.read_text() == "mine"
    put_document(path, "new", force=True)
    assert path.read_text() == "new"
    assert mine.read_text() == "mine"


def test_a_document_beside_results_stays_when_they_are_replaced(put: Put) -> None:
    folder = put("kernel.py")
    put_document(folder / "audit.md", "found nothing")
    put("kernel.py")
    assert names(folder) == {"kernel.py", "audit.md"}
    put_document(folder / "audit.md", "found something")
    assert (folder / "audit.md").read_text() == "found something"
