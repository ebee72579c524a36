"""What registries, marketplaces and clients read of this project is well-formed, and agrees with the rest."""

import json
import re
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton_server.install.clients import CLIENTS, SERVER

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def loaded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / name).read_text(encoding="utf-8"))
    return content


def test_the_registry_s_entry_follows_its_schema_and_has_the_project_s_version() -> None:
    entry = loaded("server.json")
    assert entry["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 0 < len(entry["description"]) <= 100
    (package,) = entry["packages"]
    assert package["identifier"] == PROJECT["name"]
    assert entry["version"] == package["version"] == PROJECT["version"]
    assert package["transport"] == {"type": "stdio"}
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]
    assert re.findall(r"mcp-name: (\S+)", README) == [entry["name"]]


def test_the_marketplace_lists_this_checkout_as_its_plugin() -> None:
    plugin, marketplace = loaded(".claude-plugin/plugin.json"), loaded(".claude-plugin/marketplace.json")
    (listed,) = marketplace["plugins"]
    assert listed["source"] == "./"
    assert (listed["name"], listed["description"]) == (plugin["name"], plugin["description"])
    assert "version" not in listed, "plugin.json has it"
    assert marketplace["description"]


def test_the_icon_is_a_square_png_of_a_listing_s_size() -> None:
    icon = (ROOT / loaded(".claude-plugin/plugin.json")["icon"]).read_bytes()
    assert icon[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", icon[16:24])
    assert width == height
    assert 512 <= width <= 2048
    assert len(icon) < 20_000


@pytest.mark.parametrize(
    ("file", "root"), [(".claude-plugin/plugin.json", "${CLAUDE_PLUGIN_ROOT}/"), (".mcp.json", "")]
)
def test_plugin_and_checkout_start_the_server_by_the_launcher(file: str, root: str) -> None:
    # Claude Code expands the plugin's folder in plugin.json alone; where the checkout itself is opened,
    # clients start servers in its folder.
    servers = loaded(file)["mcpServers"]
    assert servers == {SERVER: {"command": "python3", "args": [f"{root}server/launch.py", "serve"]}}
    assert (ROOT / "server" / "launch.py").is_file()


def test_the_page_on_installing_has_every_client_and_its_file() -> None:
    page = (ROOT / "references" / "installing.md").read_text(encoding="utf-8")
    for name, client in CLIENTS.items():
        assert f"| `{name}` | {client.title} |" in page
        assert f"`{client.section}`" in page
        assert client.user_file().name in page
        assert client.project_file is None or f"`{client.project_file}`" in page
