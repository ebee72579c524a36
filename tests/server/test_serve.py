"""A real client talks to a real server, as an assistant does."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, ImageContent, PromptReference, TextContent

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.compact import MOST_CHARACTERS

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def text_of(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_device_tells_what_kernels_run_on(client: Client) -> None:
    result = await client.call_tool("device", {})
    told = result.structured_content
    assert told is not None
    assert list(told)[:2] == ["summary", "next_step"]
    assert told["torch"] in told["summary"]
    assert told["mode"] == ("cuda" if told["devices"] else "interpreter")


async def test_a_right_kernel_passes_and_its_cases_are_told_by_name(
    client: Client, right_kernel: Path
) -> None:
    result = await client.call_tool("validate", {"kernel": str(right_kernel), "device": "interpreter"})
    told = result.structured_content
    assert told is not None
    assert told["verdict"] == "passed"
    assert told["cases"] == []
    assert "N=40" in told["passed_cases"]
    assert json.loads(text_of(result)) == told


async def test_a_wrong_kernel_is_a_result_that_says_what_is_wrong(client: Client, wrong_kernel: Path) -> None:
    arguments = {"kernel": str(wrong_kernel), "device": "interpreter", "seed": 7}
    result = await client.call_tool("validate", arguments)
    told = result.structured_content
    assert not result.is_error
    assert told is not None
    assert told["verdict"] == "failed"
    assert told["seed"] == 7
    first = told["cases"][0]
    assert first["mismatches"][0]["kind"] == "constant_factor"
    assert len([case for case in told["cases"] if "mismatches" in case]) <= 8
    assert all(case["why"] for case in told["cases"])


async def test_progress_is_reported_with_growing_figures(client: Client, right_kernel: Path) -> None:
    told: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    await client.call_tool(
        "validate", {"kernel": str(right_kernel), "device": "interpreter"}, progress_callback=on_progress
    )
    assert told
    assert [progress for progress, _ in told] == sorted({progress for progress, _ in told})
    assert all(message for _, message in told)


async def test_an_unknown_argument_is_refused_by_name(client: Client) -> None:
    result = await client.call_tool("validate", {"kernel": "a.py", "dims": ["M=1"]})
    assert result.is_error
    assert "dims: no such argument" in text_of(result)
    assert "reference, input, dim" in text_of(result)


async def test_a_refusal_reaches_the_client_with_its_mend(client: Client, right_kernel: Path) -> None:
    arguments = {"kernel": str(right_kernel), "input": ["x=float99[N]"]}
    result = await client.call_tool("validate", arguments)
    assert result.is_error
    assert "float99" in text_of(result)
    assert "^" in text_of(result)
    assert "float32" in text_of(result)


async def test_an_unknown_tool_is_refused_with_the_tools_there_are(client: Client) -> None:
    result = await client.call_tool("benchmrk", {})
    assert result.is_error
    assert ", ".join([*(tool.name for tool in TOOLS), "job"]) in text_of(result)


async def test_the_prompt_names_only_tools_that_exist(client: Client) -> None:
    [message] = (await client.get_prompt("pytorch-to-triton", {"target": "ops.py:gelu"})).messages
    assert isinstance(message.content, TextContent)
    assert message.content.text.startswith("Convert ops.py:gelu")
    tools = {tool.name for tool in (await client.list_tools()).tools}
    starts = [line.split("`")[1] for line in message.content.text.splitlines() if line[:4].endswith("`")]
    assert starts
    assert set(starts) <= tools


async def test_an_unknown_prompt_is_refused_with_the_prompts_there_are(client: Client) -> None:
    with pytest.raises(
        MCPError, match=r"There is no prompt 'convert'. The prompts are pytorch-to-triton."
    ) as refused:
        await client.get_prompt("convert")
    assert refused.value.code == INVALID_PARAMS


async def test_an_unknown_argument_of_a_prompt_is_refused_with_those_it_takes(client: Client) -> None:
    with pytest.raises(MCPError, match=r"no argument 'file'. It takes target.") as refused:
        await client.get_prompt("pytorch-to-triton", {"file": "ops.py"})
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["kernel://softmx", "kernel://../softmax", "docs://guides/absent", "x" * 9000]
)
async def test_an_unknown_resource_is_refused_with_the_resources_there_are(client: Client, uri: str) -> None:
    with pytest.raises(MCPError, match=r"kernel://softmax, .*docs://guides/masks") as refused:
        await client.read_resource(uri)
    assert refused.value.code == INVALID_PARAMS


async def test_completions_are_not_offered_and_asking_for_one_is_refused(client: Client) -> None:
    with pytest.raises(MCPError) as refused:
        await client.complete(PromptReference(name="pytorch-to-triton"), {"name": "target", "value": "o"})
    assert refused.value.code == METHOD_NOT_FOUND


async def test_a_long_result_is_cut_to_its_worst_findings_and_a_file_has_the_whole(
    client: Client, tmp_path: Path
) -> None:
    kernels = [f"@triton.jit\ndef kernel_{n}(n):\n    while n:\n        break\n" for n in range(150)]
    (tmp_path / "many.py").write_text("import triton\n\n" + "\n".join(kernels))
    arguments = {"paths": [str(tmp_path)], "evidence": "source", "format": "sarif"}
    result = await client.call_tool("audit", arguments)
    told = result.structured_content
    assert told is not None
    assert len(text_of(result)) <= MOST_CHARACTERS
    assert json.loads(text_of(result)) == told
    assert {finding["severity"] for finding in told["findings"]} == {"critical"}
    assert any(one.startswith("findings: ") for one in told["cut"]["left_out"])
    whole = json.loads(Path(told["cut"]["whole"]).read_text())
    assert [finding["rule"] for finding in whole["findings"]].count("unsupported_syntax") == 150
    assert json.loads(whole["document"])["version"] == "2.1.0"


async def test_reference_kernels_are_resources(client: Client) -> None:
    uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert "kernel://layer_norm" in uris
    [content] = (await client.read_resource("kernel://layer_norm")).contents
    assert "def reference" in content.model_dump()["text"]


async def test_the_documentation_is_searched_without_a_network(client: Client) -> None:
    told = (await client.call_tool("docs_search", {"query": "tl.load with a mask"})).structured_content
    assert told is not None
    assert {"triton.language.load", "guides/masks"} & {hit["page"] for hit in told["hits"]}


async def test_a_name_that_triton_lacks_is_answered_with_the_right_one(client: Client) -> None:
    result = await client.call_tool("docs_search", {"query": "tl.relu"})
    assert "tl.maximum(x, 0.0)" in text_of(result)


async def test_an_estimate_comes_with_its_picture(client: Client, tmp_path: Path) -> None:
    kernel = ROOT / "reference_kernels" / "vector_add.py"
    arguments = {"kernel": str(kernel), "estimate": "H200", "into": str(tmp_path)}
    result = await client.call_tool("benchmark", arguments)
    assert not result.is_error
    [_, picture] = result.content
    assert isinstance(picture, ImageContent)
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    assert result.structured_content is not None
    assert result.structured_content["verdict"] == "estimated"


async def test_a_benchmark_without_a_gpu_says_what_can_be_had_instead(client: Client) -> None:
    kernel = ROOT / "reference_kernels" / "vector_add.py"
    result = await client.call_tool("benchmark", {"kernel": str(kernel)})
    assert result.is_error
    assert "estimate" in text_of(result)
