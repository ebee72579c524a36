"""An assistant converts in steps over MCP: start, write, submit, look, drop."""

from pathlib import Path

import pytest
from mcp import Client

from ..convert.session.files import DOUBLED, DOUBLED_KERNEL
from .test_by_hand import called

pytestmark = pytest.mark.anyio


async def test_an_assistant_writes_a_stage_itself(client: Client, tmp_path: Path) -> None:
    target = tmp_path / "target.py"
    target.write_text(f"import torch\n{DOUBLED}", encoding="utf-8")
    folder = str(tmp_path / "session")
    usual = {"device": "interpreter", "seed": 7, "arch": ["sm_90"]}
    began = await called(client, "convert_start", target=f"{target}:f", into=folder, **usual)
    assert list(began)[:2] == ["summary", "next_step"]
    assert began["understood"]["kernels"]
    Path(began["file"]).write_text(DOUBLED_KERNEL.replace("2.0 * x", "x"), encoding="utf-8")
    assert (await called(client, "convert_submit", session=folder))["verdict"] == "shut"
    Path(began["file"]).write_text(DOUBLED_KERNEL, encoding="utf-8")
    opened = await called(client, "convert_submit", session=folder)
    assert (opened["verdict"], opened["stage"]) == ("opened", 2)
    looked_at = await called(client, "convert_status", session=folder)
    assert [one["opened"] for one in looked_at["attempts"]] == [False, True]
    (line,) = (await called(client, "convert_list", below=str(tmp_path)))["sessions"]
    assert line["session"] == folder
    dropped = await called(client, "convert_drop", session=folder)
    assert dropped["sessions"] == []
    assert dropped["summary"].startswith(f"{folder} with 2 attempts is dropped.")
    assert not Path(folder).exists()


async def test_a_folder_without_a_session_is_named(client: Client, tmp_path: Path) -> None:
    result = await client.call_tool("convert_status", {"session": str(tmp_path)})
    assert result.is_error
    assert "holds no session" in str(result.content)
