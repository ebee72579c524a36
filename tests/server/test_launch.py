"""The launcher: a ready environment is used at once; else one is made, and the client is answered meanwhile.

What is made here is a stand-in's environment (`launched.py`); the real one is only ever found.
"""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from pytorch_to_triton import places
from pytorch_to_triton.command_line import program
from tests.server.launched import HANDSHAKE, MODERN, ROOT, Checkout, stand_in

LAUNCH = ROOT / "server" / "launch.py"
LAUNCHER = ROOT / "server" / "pytorch_to_triton_launcher"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return stand_in(tmp_path, "uv")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, subprocess.CompletedProcess[str]]:
    """A checkout whose environment pip has made, and the command that made it."""
    checkout = stand_in(tmp_path_factory.mktemp("ready"), "pip")
    return checkout, checkout.run("validate", "a b.py", "--json")


Ready = tuple[Checkout, subprocess.CompletedProcess[str]]


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
    command = [sys.executable, str(LAUNCH), "completion", "bash", "--json"]
    ended = subprocess.run(command, env=named, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["shell"] == "bash"
    assert "pytorch-to-triton:" not in ended.stderr


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_meets_the_real_server_through_the_launcher(cache: Path, mode: Any) -> None:
    variables = {"PYTORCH_TO_TRITON_PYTHON": sys.executable, "PYTORCH_TO_TRITON_CACHE": str(cache)}
    started = StdioServerParameters(command=sys.executable, args=[str(LAUNCH), "serve"], env=variables)
    async with Client(started, mode=mode) as client:
        assert "validate" in [tool.name for tool in (await client.list_tools()).tools]


def test_the_launcher_reads_the_project_as_its_tools_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib

    code = (
        "import json; from pytorch_to_triton_launcher import environment as c; "
        "print(json.dumps([c.VERSION, c.REQUIREMENTS, str(c.environments())]))"
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
        "Python>=3.11",
        "Python>=3.99",
        "pytest>=1",
        "pytest>=999",
        "pytest<2",
        "no-such-package",
        "triton>=3; platform_system == 'Linux'",
    ]
    probe = [sys.executable, str(LAUNCHER / "environment.py"), *asked]
    lacking = json.loads(subprocess.run(probe, capture_output=True, check=True).stdout)
    assert [text.split()[0] for text in lacking] == ["Python", "pytest", "pytest", "no-such-package"]
    assert "needs >=999" in lacking[1]


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


def test_a_command_makes_the_environment_once_and_then_runs_in_it(ready: Ready) -> None:
    checkout, first = ready
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["arguments"] == ["validate", "a b.py", "--json"]
    assert "creating an environment" in first.stderr
    assert "installing PyTorch" in first.stderr
    second = checkout.run("validate")
    assert second.returncode == 0
    assert second.stderr == ""
    assert len(list(checkout.environments.glob("9.9.9-*/bin/python"))) == 1


def test_an_environment_that_lacks_something_by_now_is_made_again(checkout: Checkout) -> None:
    assert checkout.run("validate").returncode == 0
    (library,) = checkout.environments.glob("9.9.9/lib/*/site-packages/stub_library-1.2.dist-info")
    shutil.rmtree(library)
    again = checkout.run("validate")
    assert again.returncode == 0
    assert "installing PyTorch" in again.stderr
    assert checkout.run("validate").stderr == ""
    assert len(list(checkout.environments.glob("9.9.9-*/"))) == 1


def with_children(launcher: int) -> list[psutil.Process]:
    """The launcher's installer and the build that it waits for, once both run."""
    deadline = time.monotonic() + 30
    while len(started := psutil.Process(launcher).children(recursive=True)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return started


def test_what_a_launch_left_that_was_ended_is_not_used_and_goes(checkout: Checkout) -> None:
    checkout.step.touch()
    unfinished: set[Path] = set()
    for by in ("signal", "client"):
        with checkout.serving() as client:
            client.shake_hands()
            client.call_until("installing")
            unfinished |= {*checkout.environments.glob("9.9.9-*/")}
            installer = with_children(client.process.pid)
            assert client.process.stdin is not None
            if by == "signal":
                client.process.send_signal(signal.SIGTERM)
            client.process.stdin.close()
            client.process.wait(30)
            _, left = psutil.wait_procs(installer, timeout=30)
            assert left == []
    checkout.step.unlink()
    assert checkout.run("validate").returncode == 0
    assert len(unfinished) == 2
    assert not any(folder.exists() for folder in unfinished)
    assert len(list(checkout.environments.glob("9.9.9-*/"))) == 1


def test_two_launches_make_one_environment(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as first, checkout.serving() as second:
        for client in (first, second):
            client.shake_hands()
        said = [client.call_until("installing", "another launch") for client in (first, second)]
        assert sorted("another launch" in text for text in said) == [False, True]
        checkout.step.unlink()
        for client in (first, second):
            client.call_until("real")
    assert len(list(checkout.environments.glob("9.9.9-*/"))) == 1


def test_a_failed_set_up_is_told_with_its_log_and_what_to_do(checkout: Checkout) -> None:
    (checkout.root / "broken").touch()
    with checkout.serving() as client:
        client.shake_hands()
        told = client.call_until("The set-up failed")
        assert "The set-up failed while installing" in told
        assert "disk is full" in told
        assert "PYTORCH_TO_TRITON_PYTHON" in told
        assert "restart this MCP server" in told
        (log,) = checkout.environments.glob("*.log")
        assert f"{log} has the whole log" in told
        assert "No space left" in log.read_text()
        assert "The set-up failed" in client.ask(3, "prompts/get", name="tune")["error"]["message"]
        assert "validate" in client.tools(4)
    assert not (checkout.environments / "9.9.9").exists()


def test_a_named_python_that_lacks_something_is_told_to_the_client(checkout: Checkout) -> None:
    with checkout.serving(PYTORCH_TO_TRITON_PYTHON=checkout.command()[0]) as client:
        client.shake_hands()
        assert "lacks stub-library" in client.call_until("unset PYTORCH_TO_TRITON_PYTHON")


# Meanwhile


def test_a_client_is_answered_at_once_and_its_calls_work_when_the_environment_is_there(
    checkout: Checkout,
) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        result = client.shake_hands("2025-06-18")["result"]
        assert result["protocolVersion"] == "2025-06-18"
        assert result["serverInfo"]["name"] == "pytorch-to-triton"
        assert {"validate", "convert", "job"} <= {*client.tools(2)}
        assert client.ask(3, "ping")["result"] == {}
        assert client.ask(4, "prompts/list")["result"]["prompts"]
        assert client.ask(5, "resources/list")["result"]["resources"]
        told = client.call_until("installing PyTorch")
        assert "The environment is being set up" in told
        assert "0 of about 5 minutes" in told
        assert "PYTORCH_TO_TRITON_PYTHON" in told
        checkout.step.unlink()
        client.call_until("real")
        assert client.tools(7) == ["real"]
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(30) == 0
        assert client.process.stderr is not None
        heard = [line for line in client.process.stderr if line.startswith("server got")]
        methods = [json.loads(line.removeprefix("server got"))["method"] for line in heard]
        assert methods[:2] == ["initialize", "notifications/initialized"]
        assert methods[-1] == "tools/list"
        assert {*methods[2:-1]} == {"tools/call"}


def test_a_client_is_greeted_before_the_server_that_is_ready_has_started(ready: Ready) -> None:
    checkout, _ = ready
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE})
    command, variables = checkout.command("serve"), checkout.variables()
    served = subprocess.run(command, env=variables, input=f"{hello}\n", capture_output=True, text=True)
    (answer,) = served.stdout.splitlines()
    assert json.loads(answer)["result"]["serverInfo"]["title"] == "PyTorch to Triton"
    assert "initialize" in served.stderr


def test_a_client_without_a_handshake_is_answered_too(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        met = client.ask("probe", "server/discover", _meta=MODERN)["result"]
        assert met["supportedVersions"] == ["2026-07-28"]
        assert met["resultType"] == "complete"
        assert "validate" in client.tools(2)
        client.send(id="s", method="subscriptions/listen", params={"_meta": MODERN, "notifications": {}})
        assert "set up" in client.receive()["error"]["message"]


def test_a_server_for_some_tools_is_not_said_to_have_all(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving("--toolsets", "docs") as client:
        assert client.shake_hands("1999-01-01")["result"]["protocolVersion"] == "2025-11-25"
        assert "set up" in client.ask(2, "tools/list")["error"]["message"]


def test_what_is_no_request_ends_nothing_and_is_left_to_the_server(checkout: Checkout) -> None:
    checkout.step.touch()
    with checkout.serving() as client:
        assert client.process.stdin is not None
        for line in ("{", "[" * 50_000, ""):
            client.process.stdin.write(line + "\n")
        client.shake_hands()
        assert "validate" in client.tools(2)
        checkout.step.unlink()
        assert client.receive()["error"]["code"] == -32700


def test_a_server_that_ends_as_it_starts_ends_the_launch_with_its_status(checkout: Checkout) -> None:
    program = checkout.root / "server" / "pytorch_to_triton_server" / "__main__.py"
    program.write_text("import sys\nsys.exit(7 * (sys.argv[1:] != ['--version']))\n")
    with checkout.serving() as client:
        client.shake_hands()
        assert client.process.wait(60) == 7


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
    old = Path(checkout.command()[0]).with_name("old")
    old.write_text(
        '#!/bin/sh\nfor code; do :; done\nexec python3 -c "import sys; sys.version_info = (3, 9); $code"\n'
    )
    old.chmod(0o755)
    code = (
        "import sys; sys.path.insert(0, 'server')\n"
        "from pytorch_to_triton_launcher import environment\n"
        f"environment.PYTHONS, sys.executable = (), {str(old)!r}\n"
        "environment.shutil.which = lambda name: None\n"
        "try:\n    environment.make()\nexcept environment.Problem as problem:\n    print(*problem.args)\n"
    )
    command, variables = [checkout.command()[0], "-c", code], checkout.variables()
    printed = subprocess.run(
        command, cwd=checkout.root, env=variables, capture_output=True, text=True, check=True
    )
    assert "creating an environment" in printed.stdout
    assert "Python 3.11 or newer" in printed.stdout
    assert "or uv" in printed.stdout
