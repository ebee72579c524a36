"""Made-up calls, of which the schemas allow most: each is answered, nothing outside is touched."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.types import TextContent

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.serve import MOST_OF_AN_ERROR, build_server
from pytorch_to_triton_server.settings import ServerSettings

pytestmark = pytest.mark.anyio
CALLS = 20
"""For each tool that can be called without a network."""
WRITTEN_WORDS = (
    "kernel.py", "../outside/secret.py", "/etc/passwd", "/proc/self/environ", "/dev/zero", "link.py",
    "--help", "-rf", "$(id)", "kernel.py:run", "x=float32[N]", "N=1,2", "N=99999999999", "a\0b", "\ud800", "",
    ".", "~", "tl.load", "H200", "eps=1e-5", "M=" * 50, "rules/access_without_mask", "guides/masks",
    "\u202e\u2066",
)  # fmt: skip
WORDS = st.sampled_from(WRITTEN_WORDS) | st.text(max_size=30)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FUZZED = [tool.name for tool in TOOLS if tool.name not in ("docs_fetch", "device")]


def value_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A value that the schema allows, and now and then any other."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | ANYTHING
    by_type: dict[str, st.SearchStrategy[Any]] = {
        "string": WORDS,
        "integer": st.integers(-2, 2**65),
        "number": st.floats() | st.integers(),
        "boolean": st.booleans(),
        "array": st.lists(WORDS, max_size=3),
    }
    return by_type.get(schema.get("type", ""), ANYTHING) | ANYTHING


def arguments_of(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments for a tool; where it can run code, by a Python that does not exist."""
    fields = schema["properties"]
    required = {name: value_of(fields[name]) for name in schema.get("required", ())}
    optional = {name: value_of(field) for name, field in fields.items() if name not in required}
    optional.pop("python", None)
    given = st.fixed_dictionaries(required, optional=optional)
    return given.map(lambda one: one | {"python": "absent"}) if "python" in fields else given


@pytest.fixture(scope="module")
async def fenced(
    tmp_path_factory: pytest.TempPathFactory, client: Client, kept_open: None
) -> AsyncIterator[tuple[Client, Path]]:
    """A client of a server that is kept to one folder, and the folder above it."""
    above = tmp_path_factory.mktemp("above")
    inside, outside = above / "inside", above / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.py").write_text("PASSWORD = 'hunter2'\n")
    (inside / "kernel.py").write_text(
        "INPUTS = {'x': 'float32[N]'}\nDIMS = {'N': [4]}\ndef reference(x): return x\ndef run(x): return x\n"
    )
    (inside / "link.py").symlink_to(outside / "secret.py")
    before = Path.cwd()
    os.chdir(inside)
    try:
        async with Client(build_server(ServerSettings(allowed=(inside,), patience=30))) as client:
            yield client, above
    finally:
        os.chdir(before)


@pytest.mark.parametrize("tool", FUZZED)
async def test_a_made_up_call_is_answered_and_touches_nothing_outside(
    fenced: tuple[Client, Path], tool: str
) -> None:
    client, above = fenced
    [served] = [one for one in (await client.list_tools()).tools if one.name == tool]
    calls: list[dict[str, Any]] = []

    @settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(arguments_of(served.input_schema))
    def collect(arguments: dict[str, Any]) -> None:
        calls.append(arguments)

    collect()
    for arguments in calls:
        try:
            json.dumps(arguments).encode()
        except ValueError:
            continue
        result = await client.call_tool(tool, arguments)
        [content, *_] = result.content
        assert isinstance(content, TextContent)
        assert "hunter2" not in content.text, arguments
        assert "root:x:0" not in content.text, arguments
        assert "Traceback" not in content.text, arguments
        assert "defect" not in content.text, (arguments, content.text)
        assert not result.is_error or len(content.text) <= MOST_OF_AN_ERROR + 200
    assert sorted(each.name for each in above.iterdir()) == ["inside", "outside"]
    assert [each.name for each in (above / "outside").iterdir()] == ["secret.py"]
