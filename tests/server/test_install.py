"""`install` enters the server into each client's own file, and leaves everything else as it was."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.install import json_text
from pytorch_to_triton_server.install.clients import CLIENTS, SERVER, ClientName, McpClient

ZED = """\
// Zed settings
{
  "theme": "One Dark", // not "Light"
  /* servers: { of mine } */
  "context_servers": {
    // the first
    "other": {"command": "x", "args": ["//", "/*"]},
  },
}
"""
VSCODE = '{"inputs": [], "servers": {"other": {"type": "http", "url": "http://127.0.0.1/\\u00e9"}}}'
CODEX = """\
# my settings
model = "o"

[mcp_servers.other]
command = "x" # keep

# of the profile
[profiles.a]
text = '''
[mcp_servers.pytorch-to-triton]
'''
"""
CLAUDE = '{\n\t"numStartups": 1e3,\n\t"oauth": {"token": "secret"},\n\t"mcpServers": {}\n}\n'
AS_WRITTEN: dict[ClientName, tuple[str, ...]] = {
    "zed": ("// Zed settings", '// not "Light"', "/* servers: { of mine } */", "    // the first", "},\n}"),
    "vscode": ("\\u00e9", '"inputs": []'),
    "codex": ("# my settings", "# keep", "# of the profile", "text = '''"),
    "claude": ("1e3", "\t"),
}
FILES: dict[ClientName, str] = {"zed": ZED, "vscode": VSCODE, "codex": CODEX, "claude": CLAUDE}
everyone = pytest.mark.parametrize("name", sorted(CLIENTS))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, and no variable that names another place."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def install(name: str, *options: str) -> int:
    return main(["install", "--client", name, *options])


def read(client: McpClient, file: Path) -> dict[str, Any]:
    """What a client's file says."""
    text = file.read_text(encoding="utf-8")
    return tomllib.loads(text) if client.form == "toml" else json_text.read(text)


def written(name: ClientName) -> Path:
    """The client's file, with what its user has in it."""
    file = CLIENTS[name].user_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FILES[name], encoding="utf-8")
    return file


@everyone
def test_an_entry_is_made_once_in_the_client_s_own_file_and_removed_without_a_trace(
    name: ClientName, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client, file = CLIENTS[name], CLIENTS[name].user_file()
    assert install(name, "--dry-run") == 0
    printed = capfd.readouterr().out
    assert "+++ " in printed
    assert "would be added" in printed
    assert list(home.rglob("*")) == []
    assert install(name) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert not last.startswith("Restart") or last.startswith(f"Restart {client.title},")
    assert home in file.parents
    first = file.read_bytes()
    entry = read(client, file)[client.section][SERVER]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "serve"
    assert install(name) == 0
    assert file.read_bytes() == first
    assert install(name, "--remove") == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last == f"{client.title} stops using the server when it is restarted, if not before."
    assert [path for path in home.rglob("*") if path.is_file()] == []
    assert install(name, "--remove") == 0


def test_the_entry_starts_this_installation() -> None:
    assert install("cursor") == 0
    entry = read(CLIENTS["cursor"], CLIENTS["cursor"].user_file())["mcpServers"][SERVER]
    command = [entry["command"], *entry["args"][:-1], "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version.stdout)


@pytest.mark.parametrize("name", sorted(FILES))
def test_what_the_user_has_stays_as_it_is_and_removing_gives_it_back_byte_for_byte(
    name: ClientName, home: Path
) -> None:
    client, file = CLIENTS[name], written(name)
    before = read(client, file)
    assert install(name) == 0
    after = read(client, file)
    assert after[client.section].pop(SERVER)["args"] == ["serve"]
    assert after == before
    kept = file.with_name(f"{file.name}.before-pytorch-to-triton")
    assert kept.read_text(encoding="utf-8") == FILES[name]
    said = file.read_text(encoding="utf-8")
    assert [text for text in AS_WRITTEN[name] if text not in said] == []
    assert install(name, "--remove") == 0
    assert file.read_text(encoding="utf-8") == FILES[name]
    assert [path for path in home.rglob("*") if path.is_file()] == [file]


@pytest.mark.parametrize("name", ["zed", "codex"])
def test_what_the_user_changed_meanwhile_outlasts_the_removal(name: ClientName) -> None:
    client, file = CLIENTS[name], written(name)
    assert install(name) == 0
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"One Dark"', '"Gruvbox"').replace('"o"', '"p"'), encoding="utf-8")
    assert install(name, "--remove") == 0
    changed = FILES[name].replace('"One Dark"', '"Gruvbox"').replace('"o"', '"p"')
    assert file.read_text(encoding="utf-8") == changed
    assert read(client, file)


@pytest.mark.parametrize("name", ["cursor", "codex"])
def test_an_old_entry_is_brought_up_to_date_and_keeps_what_the_user_added(name: ClientName) -> None:
    client = CLIENTS[name]
    file = client.user_file()
    file.parent.mkdir(parents=True)
    old = {"command": "/gone", "args": ["serve"], "startup_timeout_sec": 20, "env": {"A": "b"}}
    if client.form == "toml":
        file.write_text(
            '[mcp_servers.pytorch-to-triton]\ncommand = "/gone"\nargs = ["serve"]\nstartup_timeout_sec = 20\n'
            '\n[mcp_servers.pytorch-to-triton.env]\nA = "b"\n\n[z]\n'
        )
    else:
        file.write_text(json.dumps({client.section: {SERVER: old}}))
    assert install(name) == 0
    entry = read(client, file)[client.section][SERVER]
    assert entry == {**old, **client.extra, "command": entry["command"]}
    assert entry["command"] != "/gone"


def test_json_names_the_file_the_entry_and_the_change(capfd: pytest.CaptureFixture[str]) -> None:
    file = written("zed")
    assert install("zed", "--json") == 0
    result = json.loads(capfd.readouterr().out)
    assert list(result)[:2] == ["summary", "next_step"]
    assert (result["file"], result["action"]) == (str(file), "added")
    assert result["entry"][SERVER]["source"] == "custom"
    assert result["backup"] == f"{file}.before-pytorch-to-triton"
    assert result["diff"].count("\n+") > 2


def test_a_file_that_cannot_be_changed_safely_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    twice = f'{{"mcpServers": {{"{SERVER}": {{"command": "a"}}, "{SERVER}": {{}}}}}}'.encode()
    cases: tuple[tuple[ClientName, bytes, str], ...] = (
        ("cursor", b'{"mcpServers": ', "not valid JSON"),
        ("cursor", b"[1]", "does not hold a JSON object"),
        ("cursor", b'{"mcpServers": ["x"]}', "is not an object"),
        ("cursor", b"// nothing yet\n", "has comments"),
        ("cursor", b'{"a": "\xff"}', "cannot be read"),
        ("cursor", twice, "without touching more"),
        ("codex", b"model = ", "not valid TOML"),
        ("codex", b'mcp_servers = {other = {command = "x"}}\n', "not valid TOML"),
    )
    for name, content, why in cases:
        file = CLIENTS[name].user_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        assert install(name, "--json", *["--remove"] * (content is twice)) == 2
        error = json.loads(capfd.readouterr().out)["error"]
        assert why in error["message"]
        assert file.read_bytes() == content
        assert list(file.parent.iterdir()) == [file]


def test_a_secret_stays_as_private_as_it_was() -> None:
    file = written("claude")
    file.chmod(0o600)
    assert install("claude") == 0
    private = [stat.S_IMODE(path.stat().st_mode) for path in file.parent.glob(".claude.json*")]
    assert private == [0o600, 0o600]


def test_a_file_behind_a_link_is_changed_and_the_link_stays(home: Path) -> None:
    kept = home / "dotfiles" / "zed.json"
    kept.parent.mkdir()
    kept.write_text(ZED)
    link = CLIENTS["zed"].user_file()
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    assert install("zed") == 0
    assert link.is_symlink()
    assert SERVER in read(CLIENTS["zed"], kept)["context_servers"]


@everyone
def test_the_project_s_file_lies_in_the_current_folder(
    name: ClientName, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = home / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    client = CLIENTS[name]
    if client.project_file is None:
        assert install(name, "--scope", "project") == 2
        assert "no file for a single project" in capfd.readouterr().err
    else:
        assert install(name, "--scope", "project") == 0
        assert "Note: A project's file is usually committed" in capfd.readouterr().out
        assert SERVER in read(client, project / client.project_file)[client.section]
        assert install(name, "--scope", "project", "--remove") == 0
        assert "Note:" not in capfd.readouterr().out


def test_the_variables_of_clients_move_their_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: dict[ClientName, str] = {
        "codex": "CODEX_HOME",
        "claude": "CLAUDE_CONFIG_DIR",
        "zed": "XDG_CONFIG_HOME",
        "vscode": "XDG_CONFIG_HOME",
    }
    for variable in moved.values():
        monkeypatch.setenv(variable, str(home / "elsewhere"))
    for name in moved:
        assert install(name) == 0
        assert home / "elsewhere" in CLIENTS[name].user_file().parents


def test_an_unknown_client_is_refused_with_those_that_are_known(capfd: pytest.CaptureFixture[str]) -> None:
    assert install("emacs") == 2
    assert "cursor" in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    home.chmod(0o500)
    try:
        assert install("cursor") == 2
    finally:
        home.chmod(0o700)
    assert "cannot be written" in capfd.readouterr().err


def test_a_checkout_s_launcher_is_what_a_client_is_told_to_run(home: Path) -> None:
    launch = Path(__file__).parents[2] / "server" / "launch.py"
    variables = {**os.environ, "PYTORCH_TO_TRITON_PROGRAM": json.dumps([sys.executable, str(launch)])}
    command = [sys.executable, "-m", "pytorch_to_triton_server", "install", "--client", "cursor"]
    subprocess.run(command, env=variables, check=True, capture_output=True)
    entry = read(CLIENTS["cursor"], home / ".cursor" / "mcp.json")["mcpServers"][SERVER]
    assert [entry["command"], *entry["args"]] == [sys.executable, str(launch), "serve"]
