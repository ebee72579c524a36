"""The launcher: a ready environment is used at once; else one is made, and the client is answered meanwhile.

What is made here is a stand-in's environment (`launched.py`); the real one is only ever found.
"""

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from pytorch_to_triton import places
from pytorch_to_triton.command_line import program
from tests.server.launched import ROOT, Checkout, stand_in

LAUNCH = ROOT / "server" / "launch.py"
LAUNCHER = ROOT / "server" / "pytorch_to_triton_launcher"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CHANGES = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return stand_in(tmp_path)


def imported(module: Path) -> set[str]:
    """The packages that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


# With the environment of the tests


def test_a_named_python_runs_the_command_of_the_checkout_at_once() -> None:
    named = {**os.environ, "PYTORCH_TO_TRITON_PYTHON": sys.executable}
    command = [sys.executable, str(LAUNCH), "docs", "read", "guides/stability", "--json"]
    ended = subprocess.run(command, env=named, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["summary"]
    assert "pytorch-to-triton:" not in ended.stderr


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_meets_the_real_server_through_the_launcher(cache: Path, mode: Any) -> None:
    variables = {"PYTORCH_TO_TRITON_PYTHON": sys.executable, "PYTORCH_TO_TRITON_CACHE": str(cache)}
    started = StdioServerParameters(command=sys.executable, args=[str(LAUNCH), "serve"], env=variables)
    async with Client(started, mode=mode) as client:
        assert "validate" in [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.anyio
async def test_the_launcher_promises_what_the_server_has(client: Client) -> None:
    tree = ast.parse((LAUNCHER / "protocol.py").read_text(encoding="utf-8"))
    (assigned,) = (
        n for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "CAPABILITIES"
    )
    assert assigned.value is not None
    promised = ast.literal_eval(assigned.value)
    capabilities = client.server_capabilities
    assert capabilities is not None
    served = capabilities.model_dump(by_alias=True, exclude_none=True)
    assert promised.keys() == served.keys()


def test_the_launcher_reads_the_project_as_its_tools_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib

    code = (
        "import json; from pytorch_to_triton_launcher import checkout as c; "
        "print(json.dumps([c.version(), c.requirements(), str(c.environments())]))"
    )
    for cache in ({"PYTORCH_TO_TRITON_CACHE": str(tmp_path)}, {"XDG_CACHE_HOME": str(tmp_path)}, {}):
        monkeypatch.delenv("PYTORCH_TO_TRITON_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        for name, value in cache.items():
            monkeypatch.setenv(name, value)
        printed = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT / "server", capture_output=True, check=True
        ).stdout
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        environments = str(places.cache() / "environments")
        assert json.loads(printed) == [project["version"], project["dependencies"], environments]


def test_commands_that_are_printed_name_the_launcher_that_started_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_PROGRAM", json.dumps(["/usr/bin/python3", str(LAUNCH)]))
    assert program() == ["/usr/bin/python3", str(LAUNCH)]


# What can be used, and what is said where nothing can


def test_a_named_python_that_lacks_something_is_refused_with_what_it_lacks(checkout: Checkout) -> None:
    python = checkout.command()[0]
    ended = checkout.run("validate", "--json", PYTORCH_TO_TRITON_PYTHON=python)
    assert ended.returncode == 3
    error = json.loads(ended.stdout)["error"]
    assert error["kind"] == "missing_requirement"
    assert "lacks stub-library" in error["message"]
    assert "unset PYTORCH_TO_TRITON_PYTHON" in error["hint"]
    assert not checkout.environments.exists()


def test_a_python_that_does_not_exist_is_refused_by_its_name(checkout: Checkout) -> None:
    ended = checkout.run("device", PYTORCH_TO_TRITON_PYTHON="/no/python")
    assert ended.returncode == 3
    assert "/no/python" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_release_that_is_too_old_or_too_new_is_told_from_one_that_fits(checkout: Checkout) -> None:
    asked = [
        "pytest>=1",
        "pytest>=999",
        "pytest<2",
        "no-such-package",
        "triton>=3; platform_system == 'Linux'",
    ]
    probe = [sys.executable, str(LAUNCHER / "probe.py"), "3.11", *asked]
    lacking = json.loads(subprocess.run(probe, capture_output=True, check=True).stdout)
    assert [text.split()[0] for text in lacking] == ["pytest", "pytest", "no-such-package"]
    assert "needs >=999" in lacking[0]


def test_an_active_environment_that_has_everything_is_used_and_named_in_commands(checkout: Checkout) -> None:
    (checkout.root / "pyproject.toml").write_text(
        (checkout.root / "pyproject.toml").read_text().replace("stub-library>=1.0", "pytest>=1")
    )
    ended = checkout.run("validate", "x.py", VIRTUAL_ENV=sys.prefix)
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    assert printed["arguments"] == ["validate", "x.py"]
    python, launch = json.loads(printed["program"])
    assert Path(python).parent == Path(sys.prefix) / "bin"
    assert launch == str(checkout.root / "server" / "launch.py")
    assert not checkout.environments.exists()


# Making one


def test_a_command_makes_the_environment_once_and_then_runs_in_it(checkout: Checkout) -> None:
    first = checkout.run("validate", "a b.py", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["arguments"] == ["validate", "a b.py", "--json"]
    assert "creating an environment" in first.stderr
    assert "installing PyTorch" in first.stderr
    second = checkout.run("validate")
    assert second.returncode == 0
    assert second.stderr == ""
    assert len(list(checkout.environments.glob("*-py*/bin/python"))) == 1
    program = checkout.root / "server" / "pytorch_to_triton_server" / "__main__.py"
    program.write_text("import sys\nsys.exit('no')\n")
    with checkout.serving() as client:
        assert client.process.wait(30) == 1


def test_what_an_interrupted_launch_left_is_not_used_and_goes(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        client.shake_hands()
        client.wait_for("installing")
        (unfinished,) = checkout.environments.glob("*-py*-*/")
        installer = [p for p in psutil.Process(client.process.pid).children(recursive=True) if p.is_running()]
        assert installer
        client.process.send_signal(signal.SIGTERM)
        client.process.wait(30)
        _, left = psutil.wait_procs(installer, timeout=30)
        assert left == []
    checkout.step.unlink()
    assert checkout.run("validate").returncode == 0
    assert not unfinished.exists()
    assert len(list(checkout.environments.glob("*-py*-*/"))) == 1


def test_two_launches_make_one_environment(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as first, checkout.serving() as second:
        for client in (first, second):
            client.shake_hands()
        one, other = sorted(
            (first, second), key=lambda client: "another" in client.wait_for("installing", "another")
        )
        assert "installing" in one.wait_for("installing")
        assert "another" in other.wait_for("another")
        checkout.step.unlink()
        for client in (first, second):
            assert client.status(3, wait_seconds=45)["status"] == "ready"
    assert len(list(checkout.environments.glob("*-py*-*/"))) == 1


def test_a_failed_set_up_is_told_with_its_log_and_what_to_do(checkout: Checkout) -> None:
    (checkout.root / "broken").touch()
    with checkout.serving() as client:
        client.shake_hands()
        status = client.status(2, wait_seconds=45)
        assert status["status"] == "failed"
        assert "The set-up failed while installing" in status["summary"]
        assert "disk is full" in status["next_step"]
        assert "PYTORCH_TO_TRITON_PYTHON" in status["next_step"]
        assert status["log"] in status["next_step"]
        assert "No space left" in Path(status["log"]).read_text()
        answer = client.ask(3, "tools/call", name="validate", arguments={})["result"]
        assert answer["isError"]
        assert "The set-up failed" in answer["content"][0]["text"]
    assert list(checkout.environments.glob("*.json")) == []


# Meanwhile


def test_an_older_client_is_answered_while_the_environment_is_made_and_then_handed_over(
    checkout: Checkout,
) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        result = client.shake_hands()["result"]
        assert result["protocolVersion"] == "2025-06-18"
        assert result["serverInfo"] == {
            "name": "pytorch-to-triton",
            "title": "PyTorch to Triton",
            "version": "9.9.9",
        }
        assert client.tools(2) == ["setup_status"]
        assert client.ask(3, "ping")["result"] == {}
        assert client.ask(4, "prompts/list")["result"]["prompts"] == []
        status = client.status(5)
        assert status["status"] == "running"
        assert "PYTORCH_TO_TRITON_PYTHON" in status["next_step"]
        client.send(
            id=6, method="tools/call", params={"name": "setup_status", "arguments": {"wait_seconds": 45}}
        )
        checkout.step.unlink()
        waited = client.receive()
        assert waited["id"] == 6
        assert waited["result"]["structuredContent"]["status"] == "ready"
        assert [client.receive()["method"] for _ in range(3)] == CHANGES
        assert client.tools(7) == ["validate"]
        assert client.status(8)["status"] == "ready"
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(30) == 0
        assert client.process.stderr is not None
        heard = [line.split()[-1] for line in client.process.stderr if line.startswith("server got")]
        assert heard == ["initialize", "notifications/initialized", "tools/list"]


def test_a_modern_client_is_told_on_the_stream_that_it_opened(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        found = client.ask("probe", "server/discover", _meta=MODERN)["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["resultType"] == "complete"
        while (
            "installing"
            not in client.ask(
                1, "tools/call", _meta=MODERN, name="setup_status", arguments={"wait_seconds": 0.1}
            )["result"]["structuredContent"]["stage"]
        ):
            pass
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["x://y"]}
        client.send(id="s", method="subscriptions/listen", params={"_meta": MODERN, "notifications": wanted})
        acknowledged = client.receive()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        checkout.step.unlink()
        changed = client.receive()
        assert changed["method"] == CHANGES[0]
        assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"}
        assert client.ask(2, "tools/list", _meta=MODERN)["result"]["tools"] == [{"name": "validate"}]


def test_what_is_no_request_is_answered_or_passed_over_and_nothing_ends(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        assert client.process.stdin is not None
        for line in ("{", "[" * 50_000, "[]", "7", '{"id": 1}'):
            client.process.stdin.write(line + "\n")
            client.process.stdin.flush()
            assert client.receive()["error"]["code"] in (-32700, -32600), line
        client.shake_hands()
        assert client.ask(2, "tools/call", name=7)["error"]["code"] == -32602
        assert client.ask(3, "sampling/none")["error"]["code"] == -32601
        strange = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        assert client.ask(4, "tools/list", _meta=strange)["error"]["data"]["supported"] == ["2026-07-28"]
        assert client.tools(5) == ["setup_status"]


def test_a_server_that_ends_as_it_starts_is_told_to_the_client(checkout: Checkout) -> None:
    program = checkout.root / "server" / "pytorch_to_triton_server" / "__main__.py"
    program.write_text("import sys\nsys.exit(sys.argv[1:] != ['--version'])\n")
    with checkout.serving() as client:
        client.shake_hands()
        status = client.status(2, wait_seconds=45)
        assert status["status"] == "failed"
        assert "ended as it started" in status["summary"]


def test_a_signal_ends_it_whenever_it_comes(checkout: Checkout) -> None:
    checkout.step.touch()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with checkout.serving() as client:
            client.shake_hands()
            client.tools(2)
            client.process.send_signal(number)
            assert client.process.wait(30) == 128 + number


# Where it runs


def test_the_launcher_needs_only_the_standard_library_and_an_old_python() -> None:
    for module in (LAUNCH, *LAUNCHER.glob("*.py")):
        foreign = imported(module) - sys.stdlib_module_names - {LAUNCHER.name}
        assert not foreign, f"{module} imports {foreign}"


def test_an_old_python_without_anything_newer_is_told_what_is_needed(checkout: Checkout) -> None:
    # A Python that says of itself that it is old, in the place of one.
    old = (
        "import sys; sys.version_info = (3, 9, 18); sys.path.insert(0, 'server')\n"
        "from pytorch_to_triton_launcher import base_python, environment\n"
        "base_python._pythons = lambda: iter(())\n"
        "from pytorch_to_triton_launcher.problem import Problem\n"
        "try:\n    base_python.base_python()\nexcept Problem as problem:\n    print(problem)\n"
    )
    command = [checkout.command()[0], "-c", old]
    variables = checkout.variables()
    printed = subprocess.run(
        command, cwd=checkout.root, env=variables, capture_output=True, text=True, check=True
    )
    assert "Python 3.9; Python 3.11 or newer is needed" in printed.stdout
    assert "or uv" in printed.stdout
