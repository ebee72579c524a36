"""Prompts, resources, and the values that their arguments may have."""

import json
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, PromptReference, ResourceTemplateReference, TextContent

from ..clients import answered, kept_to, values

pytestmark = pytest.mark.anyio


async def text_of(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    return str(content.model_dump()["text"])


async def test_each_prompt_names_its_target_and_only_tools_that_exist(client: Client) -> None:
    tools = {tool.name for tool in (await client.list_tools()).tools}
    prompts = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == ["convert", "audit", "tune", "debug"]
    for prompt in prompts:
        assert prompt.description
        assert prompt.arguments
        [message] = (await client.get_prompt(prompt.name, {prompt.arguments[0].name: "ops.py:gelu"})).messages
        assert isinstance(message.content, TextContent)
        assert "ops.py:gelu" in message.content.text.splitlines()[0]
        begins = [line.split("`")[1] for line in message.content.text.splitlines() if line[3:4] == "`"]
        assert begins
        assert set(begins) <= tools


async def test_an_unknown_prompt_or_argument_is_refused_with_those_there_are(client: Client) -> None:
    with pytest.raises(MCPError, match=r"no prompt 'convrt'. The prompts are convert, audit, tune, debug"):
        await client.get_prompt("convrt")
    with pytest.raises(MCPError, match=r"no argument 'file'. It takes target.") as refused:
        await client.get_prompt("convert", {"file": "ops.py"})
    assert refused.value.code == INVALID_PARAMS


async def test_what_a_client_names_is_not_repeated_at_length(client: Client) -> None:
    long = "x" * 100_000
    for ask in (
        lambda: client.read_resource(f"nowhere://{long}"),
        lambda: client.read_resource(f"rule://{long}"),
        lambda: client.get_prompt("convert", {"target": long}),
        lambda: client.get_prompt(long),
    ):
        with pytest.raises(MCPError) as error:
            await ask()
        assert error.value.code == INVALID_PARAMS
        assert len(str(error.value.error)) < 1000


async def test_an_address_of_nothing_is_answered_with_what_there_is(client: Client) -> None:
    for uri, reason in (
        ("rule://no_such", "There is no rule 'no_such'. docs_search finds rules."),
        ("kernel://no_such", "There is no kernel 'no_such'. The kernels are "),
        ("docs://no_such", "There is no guide 'no_such'. The guides are "),
        ("session://no_such", "'sessions/no_such' is not a folder.\n`convert_list` names the sessions"),
        ("nowhere://no_such", "There is no resource 'nowhere://no_such'. The resources are "),
        ("kernel://../softmax", "There is no resource 'kernel://../softmax'. The resources are "),
        ("x" * 9000, "The address has 9000 characters: more than 4000 are not read."),
    ):
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
        assert reason in error.value.error.message
        assert error.value.code == INVALID_PARAMS


async def test_a_page_a_rule_and_a_kernel_are_read_at_their_addresses(client: Client) -> None:
    assert "mask" in await text_of(client, "docs://guides/masks")
    rule = await text_of(client, "rule://access_without_mask")
    assert "access_without_mask" in rule
    assert rule == await text_of(client, "docs://rules/access_without_mask")
    assert "def reference" in await text_of(client, "kernel://softmax")


@pytest.mark.usefixtures("kept_open")
async def test_a_session_is_read_at_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ops.py").write_text("def double(x):\n    return x + x\n")
    monkeypatch.chdir(tmp_path)
    declared = {"input": ["x=float32[N]"], "dim": ["N=1,8"]}
    async with kept_to() as client:
        await answered(client, "convert_start", target="ops.py:double", **declared, device="interpreter")
        session = json.loads(await text_of(client, "session://double"))
        assert session["target"].endswith("ops.py:double")
        template = ResourceTemplateReference(uri="session://{name}")
        assert await values(client, template, "name") == ["double"]
        with pytest.raises(MCPError):
            await client.read_resource("session://..")


async def test_arguments_complete_to_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ops.py").write_text("def gelu(x): ...\ndef _private(x): ...\nclass Block: ...\n")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "ops.py").write_text("def no(x): ...\n")
    monkeypatch.chdir(tmp_path)
    async with kept_to() as client:
        convert = PromptReference(name="convert")
        assert await values(client, convert, "target", "ops") == ["ops.py:gelu", "ops.py:Block"]
        assert await values(client, PromptReference(name="debug"), "kernel", "") == ["broken.py", "ops.py"]
        assert "H200" in " ".join(await values(client, PromptReference(name="tune"), "gpu", "H"))
        docs = ResourceTemplateReference(uri="docs://{+page}")
        assert "guides/masks" in await values(client, docs, "page", "guides/")
        assert "rules/access_without_mask" in await values(client, docs, "page", "access_without")
        kernel = ResourceTemplateReference(uri="kernel://{name}")
        assert await values(client, kernel, "name", "soft") == ["softmax"]
        assert await values(client, convert, "nonsense", "") == []
