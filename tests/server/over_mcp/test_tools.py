"""What a client is told of the tools, and what their results look like to it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import ResourceLink

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.answers import in_callers_words
from pytorch_to_triton_server.over_mcp.output_schemas import WRITE, model_of, output_schemas, schema_of
from tests.server.clients import answered, refused
from tests.server.launched import HANDSHAKE, MODERN, ROOT, conversation

pytestmark = pytest.mark.anyio
ANSWERS = ROOT / "server" / "pytorch_to_triton_launcher" / "answers.json"
LISTS = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list")
REWRITE = "REWRITE_SNAPSHOTS"
AGAIN = f"look at the change, then write it: {REWRITE}=1 .venv/bin/pytest tests/server/over_mcp/test_tools.py"


def answers_of_the_server(server: StdioServerParameters) -> dict[str, Any]:
    """What it answers to a client of each era before anything runs, without the schemas of results."""
    answers = {}
    for methods, parameters in ((("initialize",), HANDSHAKE), (LISTS, {"_meta": MODERN})):
        with conversation([server.command, *server.args], dict(os.environ)) as client:
            answers |= {method: client.ask(1, method, **parameters)["result"] for method in methods}
    for tool in answers["tools/list"]["tools"]:
        del tool["outputSchema"]
    return answers


def test_the_launcher_answers_as_the_server_does_and_as_it_was_when_it_was_last_looked_at(
    server: StdioServerParameters,
) -> None:
    answers = answers_of_the_server(server)
    if os.environ.get(REWRITE):
        ANSWERS.write_text(json.dumps(answers, indent=1) + "\n")
    assert json.loads(ANSWERS.read_text()) == answers, AGAIN


async def test_what_a_client_reads_before_its_first_call_is_short(client: Client) -> None:
    tools = (await client.list_tools()).tools
    descriptions = [tool.description or "" for tool in tools]
    assert sum(map(len, descriptions)) < 6_000
    assert sum(characters(tool.input_schema) for tool in tools) < 16 * 1024
    assert sum(characters(tool.output_schema) for tool in tools) < 24 * 1024


def characters(schema: object) -> int:
    """Of a schema as it is sent."""
    return len(json.dumps(schema, separators=(",", ":")))


def test_the_schemas_of_results_are_those_of_their_models() -> None:
    schemas = {tool.name: schema_of(model_of(tool.name)) for tool in TOOLS}
    assert output_schemas() == schemas, f"{WRITE} writes them"


async def test_the_usual_other_names_of_the_first_argument_are_understood(client: Client) -> None:
    file = Path(__file__).parents[3] / "reference_kernels" / "vector_add.py"
    for name in ("path", "file", "kernel"):
        assert await answered(client, "audit", **{name: str(file)}, evidence="source")
    text = await refused(client, "audit", path=str(file), paths=[str(file)])
    assert "path: no such argument" in text


async def test_a_wrong_type_is_named_as_json_names_it(client: Client) -> None:
    wrong: dict[str, tuple[Any, str]] = {
        "dim": ("M=1", "dim: it should be a list of strings"),
        "backward": ("maybe", "backward: it should be true or false"),
        "timeout": ("soon", "timeout: it should be a number"),
        "seed": ({}, "seed: it should be a whole number"),
        "reference": (3, "reference: it should be a string"),
    }
    for name, (value, message) in wrong.items():
        text = await refused(client, "validate", kernel="x.py", **{name: value})
        assert message in text
        assert "tuple" not in text


def test_texts_name_arguments_and_tools_as_a_call_does_but_leave_commands_alone() -> None:
    text = "Use --dim and `convert start`.\nRun /bin/pytorch-to-triton validate k.py --dim M=1\n--allow-dir"
    assert in_callers_words(text) == (
        "Use dim and `convert_start`.\nRun /bin/pytorch-to-triton validate k.py --dim M=1\n--allow-dir"
    )


async def test_written_files_come_as_links(client: Client, tmp_path: Path) -> None:
    kernel = Path(__file__).parents[3] / "reference_kernels" / "vector_add.py"
    report = tmp_path / "audit.md"
    arguments = {"paths": [str(kernel)], "evidence": "source", "into": str(report)}
    result = await client.call_tool("audit", arguments)
    assert [link.uri for link in result.content if isinstance(link, ResourceLink)] == [report.as_uri()]


async def test_more_of_a_result_comes_when_it_is_asked_for(client: Client, tmp_path: Path) -> None:
    kernels = [f"@triton.jit\ndef kernel_{n}(n):\n    while n:\n        break\n" for n in range(60)]
    (tmp_path / "many.py").write_text("import triton\n\n" + "\n".join(kernels))
    sizes = [
        len(
            json.dumps(
                await answered(client, "audit", paths=[str(tmp_path)], evidence="source", detail=detail)
            )
        )
        for detail in ("brief", "full")
    ]
    assert sizes[0] <= 12_000 < sizes[1] <= 60_000
