"""An assistant converts in steps over MCP: start, write, submit, look, drop."""

from pathlib import Path

import pytest
from mcp import Client

from ..convert.session.files import DOUBLED, DOUBLED_KERNEL
from .clients import answered, refused

pytestmark = pytest.mark.anyio


async def test_an_assistant_writes_a_stage_itself(client: Client, tmp_path: Path) -> None:
    target = tmp_path / "target.py"
    target.write_text(f"import torch\n{DOUBLED}", encoding="utf-8")
    folder = str(tmp_path / "session")
    usual = {"device": "interpreter", "seed": 7, "arch": ["sm_90"]}
    began = await answered(client, "convert_start", target=f"{target}:f", into=folder, **usual)
    assert list(began)[:2] == ["summary", "next_step"]
    assert began["understood"]["kernels"]
    Path(began["file"]).write_text(DOUBLED_KERNEL.replace("2.0 * x", "x"), encoding="utf-8")
    assert (await answered(client, "convert_submit", session=folder))["verdict"] == "shut"
    Path(began["file"]).write_text(DOUBLED_KERNEL, encoding="utf-8")
    opened = await answered(client, "convert_submit", session=folder)
    assert (opened["verdict"], opened["stage"]) == ("opened", 2)
    looked_at = await answered(client, "convert_status", session=folder)
    assert [one["opened"] for one in looked_at["attempts"]] == [False, True]
    (line,) = (await answered(client, "convert_list", below=str(tmp_path)))["sessions"]
    assert line["session"] == folder
    dropped = await answered(client, "convert_drop", session=folder)
    assert dropped["sessions"] == []
    assert dropped["summary"].startswith(f"{folder} with 2 attempts is dropped.")
    assert not Path(folder).exists()


async def test_a_file_with_one_function_needs_no_name_and_its_sizes_are_refused_in_the_same_words(
    client: Client, tmp_path: Path
) -> None:
    target = tmp_path / "target.py"
    target.write_text(f"import torch\n{DOUBLED}", encoding="utf-8")
    usual = {"target": str(target), "device": "interpreter", "seed": 7}
    began = await answered(
        client, "convert_start", into=str(tmp_path / "session"), at=["M=64,N=512", "N=8,M=2"], **usual
    )
    assert began["at"] == ["M=2,N=8", "M=64,N=512"]
    assert began["summary"].endswith("Sizes that matter: M=2,N=8; M=64,N=512.")
    session = {"session": began["session"]}
    for at, words in (
        (["K=4"], "no input uses K"),
        (["M=64", "N=8"], "M, N is not named in every at"),
        (["M=64,M=65"], "M is given twice"),
        (["M"], "'=' is missing"),
        (["M=-1"], "the size -1 is negative"),
        ("M=64", "at: it should be a list of strings"),
    ):
        for tool, arguments in (("convert", usual), ("convert_start", usual), ("convert_submit", session)):
            assert words in await refused(client, tool, **arguments, at=at), (tool, at)


async def test_a_folder_without_a_session_is_named(client: Client, tmp_path: Path) -> None:
    assert "holds no session" in await refused(client, "convert_status", session=str(tmp_path))
