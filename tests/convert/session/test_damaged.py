"""A session whose files are damaged is refused with the file's name; nothing that lies elsewhere is read."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.session.answers import list_of, session_of
from pytorch_to_triton.convert.session.store import SessionFolder, open_session, sessions_below
from pytorch_to_triton.convert.session.submit import restore
from pytorch_to_triton.errors import BadInput

from .kept import SUBMITTED, kept_session, opened_attempt, replace_by_pipe


@pytest.fixture
def session(tmp_path: Path) -> SessionFolder:
    return kept_session(tmp_path / "sessions" / "f")


def test_an_attempt_is_brought_back_from_its_own_folder(session: SessionFolder) -> None:
    assert restore(session, 1).verdict == "restored"
    assert session.file(1).read_text(encoding="utf-8") == SUBMITTED


def test_an_attempt_whose_gate_stayed_shut_is_not_brought_back(session: SessionFolder) -> None:
    session.keep(opened_attempt(2).model_copy(update={"opened": False}), "# wrong\n")
    with pytest.raises(BadInput, match="did not pass its gate"):
        restore(session, 2)


@pytest.mark.parametrize("text", ['{"x": 1}', "{", "[]", "\xff"])
def test_a_damaged_attempt_is_named_and_the_session_goes_on_once_it_is_moved(
    session: SessionFolder, text: str
) -> None:
    damaged = session.path / "attempts" / "0001"
    (damaged / "attempt.json").write_text(text, encoding="latin-1")
    with pytest.raises(BadInput) as refused:
        session_of(session)
    assert str(damaged / "attempt.json") in refused.value.message
    assert f"Move {damaged} elsewhere" in refused.value.hint
    damaged.rename(session.path.parent / "moved")
    assert session_of(session).attempts == ()


@pytest.mark.parametrize("file", ["../../../../../etc/hostname", "/etc/hostname", "attempts/0002/kernel.py"])
def test_an_attempt_that_names_another_file_than_its_own_is_not_brought_back(
    session: SessionFolder, file: str
) -> None:
    session.keep(opened_attempt(2), "# another\n")
    first = session.path / "attempts" / "0001" / "attempt.json"
    attempt = opened_attempt(1).model_copy(update={"file": Path(file)})
    first.write_text(attempt.model_dump_json(), encoding="utf-8")
    with pytest.raises(BadInput, match="not its own"):
        restore(session, 1)
    assert session.file(1).read_text(encoding="utf-8") == "# edited\n"


def test_a_damaged_session_is_named_with_what_is_wrong_in_it(session: SessionFolder) -> None:
    (session.path / "session.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BadInput, match=r"session\.json is damaged: setting: Field required"):
        open_session(session.path)


@pytest.mark.parametrize(("name", "text"), [("session.json", "{}"), ("attempts/0001/attempt.json", "[1]")])
def test_the_sessions_beside_a_damaged_one_are_listed_with_its_name(
    session: SessionFolder, name: str, text: str
) -> None:
    bad = kept_session(session.path.parent / "bad").path
    (bad / name).write_text(text, encoding="utf-8")
    listed = list_of(sessions_below(bad.parent), bad.parent)
    assert [line.session for line in listed.sessions] == [session.path]
    assert [one.session for one in listed.unreadable] == [bad]
    assert listed.summary.startswith("1 session in ")
    assert str(bad / name) in listed.summary


@pytest.mark.parametrize("name", ["session.json", "attempts/0001/attempt.json"])
def test_a_pipe_in_the_place_of_a_file_is_refused(session: SessionFolder, name: str) -> None:
    replace_by_pipe(session.path / name)
    with pytest.raises(BadInput, match="not a regular file"):
        session_of(session)
