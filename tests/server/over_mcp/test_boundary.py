"""A call over MCP names files in the server's folders, and no others."""

import os
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.places import shipped
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import allowed_folders, chosen_tools

from .. import clients
from ..clients import answered, kept_to, with_roots

pytestmark = pytest.mark.anyio
AUDIT = {"evidence": "source"}


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """The folder that the server is given."""
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside of it."""
    file = tmp_path / "outside" / "secret.py"
    file.parent.mkdir()
    file.write_text("import triton\nPASSWORD = 'hunter2'\ndef f(:\n")
    return file


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What an error says, which is nothing of what lies outside."""
    text = await clients.refused(client, tool, **arguments)
    assert "hunter2" not in text
    return text


async def test_a_file_outside_is_not_read_and_the_answer_says_how_to_allow_it(
    inside: Path, secret: Path
) -> None:
    async with kept_to(inside) as client:
        for path in (str(secret), f"{inside}/../outside/secret.py"):
            text = await refused(client, "audit", paths=[path], **AUDIT)
            assert "lies outside of the folders that this server may use" in text
            assert "--allow-dir" in text
    async with kept_to(inside, secret.parent) as client:
        assert "lies outside" not in str(await client.call_tool("audit", {"paths": [str(secret)], **AUDIT}))


async def test_symbolic_links_are_followed_before_the_folder_is_checked(inside: Path, secret: Path) -> None:
    (inside / "file.py").symlink_to(secret)
    (inside / "folder").symlink_to(secret.parent)
    (inside / "dangling").symlink_to(secret.parent / "new")
    async with kept_to(inside) as client:
        for path in ("file.py", "folder/secret.py", "folder"):
            assert "lies outside of" in await refused(client, "audit", paths=[str(inside / path)], **AUDIT)
        kernel = str(shipped("reference_kernels") / "vector_add.py")
        text = await refused(
            client, "benchmark", kernel=kernel, estimate="H200", into=str(inside / "dangling")
        )
        assert "lies outside of" in text
        assert not (secret.parent / "new").exists()


async def test_a_folder_with_a_link_that_leads_out_is_audited_without_it(inside: Path, secret: Path) -> None:
    (inside / "own.py").write_text("import triton\n")
    (inside / "link.py").symlink_to(secret)
    async with kept_to(inside) as client:
        audited = await answered(client, "audit", paths=[str(inside)], **AUDIT)
        assert audited["files"] == [str(inside / "own.py")]


async def test_nothing_is_written_outside_nor_among_the_projects_own_files(
    inside: Path, secret: Path
) -> None:
    kernel = inside / "kernel.py"
    kernel.write_text((shipped("reference_kernels") / "vector_add.py").read_text())
    estimate = {"kernel": str(kernel), "estimate": "H200"}
    async with kept_to(inside) as client:
        for folder in (secret.parent / "x", shipped("reference_kernels") / "x"):
            assert "lies outside of" in await refused(client, "benchmark", **estimate, into=str(folder))
            assert not folder.exists()
        for name in ("baseline", "into"):
            given = {name: str(secret.parent / "new.md")}
            assert "lies outside of" in await refused(client, "audit", paths=[str(kernel)], **AUDIT, **given)
        assert "lies outside of" in await refused(client, "convert_drop", session=str(secret.parent))
        nowhere = {"target": str(kernel), "into": "/nowhere/x"}
        assert "lies outside of" in await refused(client, "convert_start", **nowhere)


async def test_the_projects_own_kernels_may_be_read(inside: Path) -> None:
    kernel = shipped("reference_kernels") / "vector_add.py"
    async with kept_to(inside) as client:
        assert await answered(client, "audit", paths=[str(kernel)], **AUDIT)


async def test_without_an_option_the_clients_roots_count_and_else_the_current_folder(
    inside: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inside / "own.py").write_text("import triton\n")
    monkeypatch.chdir(secret.parent)
    own: dict[str, Any] = {"paths": [str(inside / "own.py")], **AUDIT}
    another_machines = f"file://elsewhere.test{secret.parent}"
    async with with_roots(inside.as_uri(), another_machines) as client:
        assert await answered(client, "audit", **own)
        assert "lies outside of" in await refused(client, "audit", paths=[str(secret)], **AUDIT)
    async with Client(build_server()) as client:
        assert "lies outside of" in await refused(client, "audit", **own)
        (secret.parent / "here.py").write_text("import triton\n")
        assert await answered(client, "audit", paths=["here.py"], **AUDIT)


async def test_only_the_tools_that_were_chosen_are_offered() -> None:
    tools = chosen_tools("docs,device", read_only=True)
    async with kept_to(tools=tools) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["device", "docs_search", "docs_read", "docs_status", "job"]
        assert "There is no tool 'validate'" in await refused(client, "validate", kernel="x.py")


def test_only_what_was_chosen_is_offered_and_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"There is no toolset 'doc'.*\n.*docs"):
        chosen_tools("doc", read_only=False)
    with pytest.raises(BadInput, match="is not a folder"):
        allowed_folders([str(tmp_path / "absent")])
    assert chosen_tools(None, read_only=False) == TOOLS
    assert {tool.name for tool in chosen_tools(None, read_only=True)} == {
        "convert_status", "convert_list", "device", "docs_search", "docs_read", "docs_status",
    }  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0 and not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_devices_and_processes_are_outside(inside: Path) -> None:
    async with kept_to(inside) as client:
        for path in ("/proc/self/environ", "/dev/zero", "/etc/passwd", "/proc/self/root/etc/passwd"):
            assert "lies outside of" in await refused(client, "audit", paths=[path], **AUDIT)


def with_baseline(folder: Path, baseline: str) -> Path:
    """A file of a project whose settings name a baseline."""
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(f'[tool.pytorch-to-triton.audit]\nbaseline = "{baseline}"\n')
    file = folder / "own.py"
    file.write_text("import triton\n")
    return file


async def test_a_projects_baseline_outside_is_neither_read_nor_written(inside: Path, secret: Path) -> None:
    new = secret.parent / "baseline.json"
    async with kept_to(inside) as client:
        for name in ("../outside/baseline.json", str(new), "../outside/secret.py"):
            file = with_baseline(inside, name)
            for update in (False, True):
                text = await refused(client, "audit", paths=[str(file)], update_baseline=update, **AUDIT)
                assert "outside of the folders" in text
                assert str(inside / "pyproject.toml") in text
        assert not new.exists()
        file = with_baseline(inside, "known.json")
        assert await answered(client, "audit", paths=[str(file)], update_baseline=True, **AUDIT)
    assert (inside / "known.json").is_file()


async def test_the_settings_of_a_project_around_the_allowed_folder_do_not_count(tmp_path: Path) -> None:
    project = with_baseline(tmp_path / "project", "known.json").parent
    inner = project / "inner"
    inner.mkdir()
    (inner / "own.py").write_text("import triton\n")
    linked = inner / "linked"
    linked.mkdir()
    (linked / "pyproject.toml").symlink_to(project / "pyproject.toml")
    (linked / "own.py").write_text("import triton\n")
    async with kept_to(inner) as client:
        for file in (inner / "own.py", linked / "own.py"):
            assert await answered(client, "audit", paths=[str(file)], **AUDIT)
    async with kept_to(project) as client:
        assert "known.json cannot be read" in await refused(
            client, "audit", paths=[str(inner / "own.py")], **AUDIT
        )
