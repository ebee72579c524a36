"""Sessions over MCP: damaged ones are named, and none reaches out of the allowed folders."""

import json
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, ResourceTemplateReference

from ...convert.session.kept import kept_session, opened_attempt, replace_by_pipe
from ..clients import answered, kept_to, refused, serving_in, values, with_roots

pytestmark = pytest.mark.anyio
TEMPLATE = ResourceTemplateReference(uri="session://{name}")
FILES = ("session.json", "attempts/0001/attempt.json", "attempts/0001/kernel.py", "stage1_correct.py")
SECONDS = 60


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The allowed folder, which is the current one, with a session."""
    folder = tmp_path / "inside"
    kept_session(folder / "sessions" / "own")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A session outside of it."""
    return kept_session(tmp_path / "outside" / "theirs").path


async def names_of(client: Client) -> list[str]:
    return await values(client, TEMPLATE, "name")


async def test_a_pipe_in_the_place_of_a_file_holds_up_no_server(inside: Path, cache: Path) -> None:
    for name in FILES:
        replace_by_pipe(kept_session(inside / "sessions" / Path(name).stem).path / name)
    replace_by_pipe(inside / "sessions" / "target.py")
    with anyio.fail_after(SECONDS):
        async with Client(serving_in(inside, cache)) as client:
            assert "not a regular file" in await refused(client, "convert_submit", session="sessions/own")
            for name in FILES:
                session = f"sessions/{Path(name).stem}"
                assert name in await refused(client, "convert_status", session=session)
                assert name in await refused(client, "convert_restore", session=session, attempt=1)
            found = await answered(client, "convert_list")
    assert [Path(one["session"]).name for one in found["sessions"]] == ["own"]
    assert len(found["unreadable"]) == len(FILES)


async def test_a_damaged_session_is_refused_with_its_file_and_the_others_are_listed(inside: Path) -> None:
    for name, text in (("session.json", "{}"), ("attempts/0001/attempt.json", '{"x": 1}')):
        session = kept_session(inside / "sessions" / Path(name).stem).path
        (session / name).write_text(text)
    async with kept_to(inside) as client:
        for name in ("session/session.json", "attempt/attempts/0001/attempt.json"):
            session = name.split("/")[0]
            assert str(inside / "sessions" / name) in await refused(
                client, "convert_status", session=f"sessions/{session}"
            )
            with pytest.raises(MCPError, match="is damaged") as unread:
                await client.read_resource(f"session://{session}")
            assert unread.value.code == INVALID_PARAMS
        found = await answered(client, "convert_list")
    assert [Path(one["session"]).name for one in found["sessions"]] == ["own"]
    assert [Path(one["session"]).name for one in found["unreadable"]] == ["attempt", "session"]
    assert all("is damaged" in one["why"] for one in found["unreadable"])


async def test_an_attempt_cannot_bring_in_a_file_from_outside(inside: Path) -> None:
    session = inside / "sessions" / "own"
    attempt = opened_attempt(1).model_copy(update={"file": Path("../../../../../../../../etc/hostname")})
    (session / "attempts" / "0001" / "attempt.json").write_text(attempt.model_dump_json())
    async with kept_to(inside) as client:
        assert "not its own" in await refused(client, "convert_restore", session=str(session), attempt=1)
    assert (session / "stage1_correct.py").read_text() == "# edited\n"


@pytest.mark.parametrize("part", ["stage2_optimised.py", "attempts", *FILES])
async def test_a_part_of_a_session_that_is_a_link_to_the_outside_is_refused(
    inside: Path, outside: Path, part: str
) -> None:
    link = inside / "sessions" / "own" / part
    if link.exists():
        link.rename(inside / "moved")
    link.symlink_to(outside / "stage1_correct.py" if part.startswith("stage") else outside / part)
    async with kept_to(inside) as client:
        for tool in ("convert_submit", "convert_finish", "convert_status"):
            text = await refused(client, tool, session="sessions/own")
            assert f"{link} leads to " in text
            assert "outside of the folders" in text


async def test_a_linked_session_of_the_outside_is_neither_read_nor_listed(
    inside: Path, outside: Path
) -> None:
    (inside / "sessions" / "linked").symlink_to(outside)
    async with kept_to(inside) as client:
        assert json.loads((await client.read_resource("session://own")).contents[0].model_dump()["text"])
        with pytest.raises(MCPError, match="outside of the folders"):
            await client.read_resource("session://linked")
        assert await names_of(client) == ["own"]
        found = await answered(client, "convert_list")
        assert [Path(one["session"]).name for one in found["sessions"]] == ["own"]
        assert [Path(one["session"]).name for one in found["unreadable"]] == ["linked"]


async def test_the_sessions_here_are_not_read_where_this_folder_is_not_allowed(
    inside: Path, outside: Path
) -> None:
    async with kept_to(outside) as client:
        with pytest.raises(MCPError, match="outside of the folders"):
            await client.read_resource("session://own")
        assert await names_of(client) == []


async def test_a_clients_roots_hold_for_resources_as_well(inside: Path, outside: Path) -> None:
    async with with_roots(outside.as_uri()) as client:
        with pytest.raises(MCPError, match="outside of the folders"):
            await client.read_resource("session://own")
        assert await names_of(client) == []


async def test_a_session_does_not_run_a_target_of_the_outside(inside: Path, outside: Path) -> None:
    record = inside / "sessions" / "own" / "session.json"
    target = outside.parent / "target.py"
    record.write_text(record.read_text().replace(str(inside / "sessions" / "target.py"), str(target)))
    async with kept_to(inside) as client:
        for tool in ("convert_submit", "convert_finish"):
            assert f"{target} lies outside" in await refused(client, tool, session="sessions/own")


async def test_dropping_a_session_lists_nothing_that_lies_outside(inside: Path) -> None:
    kept_session(inside / "sessions" / "other")
    own = inside / "sessions" / "own"
    async with kept_to(own) as client:
        dropped = await answered(client, "convert_drop", session=str(own))
    assert dropped["sessions"] == []
    assert "other" not in str(dropped)
    assert not own.exists()


async def test_the_sessions_below_what_is_no_folder_are_not_asked_for(inside: Path) -> None:
    (inside / "file").touch()
    async with kept_to(inside) as client:
        for below in ("absent", "file"):
            assert f"'{below}' is not a folder" in await refused(client, "convert_list", below=below)
        (inside / "sessions").rename(inside / "moved")
        assert (await answered(client, "convert_list"))["summary"].startswith("0 sessions")


async def test_a_start_whose_usual_folder_is_not_allowed_asks_for_another_one(
    inside: Path, outside: Path
) -> None:
    kernel = outside.parent / "target.py"
    async with kept_to(outside.parent) as client:
        text = await refused(client, "convert_start", target=f"{kernel}:f", input=["x=float32[N]"])
    assert "Without into" in text
    assert "with into" in text
