"""A checkout whose environment is made in a second, without a package index, for the tests of the launcher.

It has the real launcher, and a project of a few lines in the place of this one: one that builds itself, and
whose `serve` speaks the handshake. Making the real environment downloads PyTorch: too much for every run.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "pytorch-to-triton"
version = "9.9.9"
dependencies = [
    "stub-library>=1.0",
]
"""
BACKEND = '''
"""Builds a wheel that also carries the library that the project needs."""
import pathlib
import time
import zipfile

STEP = pathlib.Path(__file__).with_name("hold")
NAME = "pytorch_to_triton-9.9.9-py3-none-any.whl"
WHEEL = "Wheel-Version: 1.0\\nGenerator: stub\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    while STEP.exists():
        time.sleep(0.01)
    if pathlib.Path(__file__).with_name("broken").exists():
        raise RuntimeError("No space left on device")
    files = {
        "pytorch_to_triton-9.9.9.dist-info/METADATA":
            "Metadata-Version: 2.1\\nName: pytorch-to-triton\\nVersion: 9.9.9\\n",
        "pytorch_to_triton-9.9.9.dist-info/WHEEL": WHEEL,
        "pytorch_to_triton-9.9.9.data/purelib/stub_library-1.2.dist-info/METADATA":
            "Metadata-Version: 2.1\\nName: stub-library\\nVersion: 1.2\\n",
        "stub_library.py": "",
    }
    record = "pytorch_to_triton-9.9.9.dist-info/RECORD"
    with zipfile.ZipFile(pathlib.Path(folder) / NAME, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        wheel.writestr(record, "".join(f"{name},,\\n" for name in [*files, record]))
    return NAME
'''
PROGRAM = '''
"""Its version, its arguments, or a server with one tool."""
import json
import os
import sys

if sys.argv[1:] == ["--version"]:
    import stub_library

    print("9.9.9")
elif sys.argv[1:2] != ["serve"]:
    print(json.dumps({"arguments": sys.argv[1:], "program": os.environ.get("PYTORCH_TO_TRITON_PROGRAM")}))
else:
    for line in sys.stdin:
        message = json.loads(line)
        print("server got", message["method"], file=sys.stderr, flush=True)
        results = {
            "initialize": {"serverInfo": {"name": "real"}},
            "server/discover": {"supportedVersions": ["2026-07-28"]},
            "tools/list": {"tools": [{"name": "validate"}]},
        }
        if message["method"] == "subscriptions/listen":
            answer = {
                "method": "notifications/subscriptions/acknowledged",
                "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}},
            }
        elif message["method"] in results:
            answer = {"id": message["id"], "result": results[message["method"]]}
        else:
            continue
        print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
'''


@dataclass(frozen=True)
class Checkout:
    """The stand-in, and what a launch in it sees."""

    root: Path
    cache: Path
    path: str
    """The PATH of its launches: a Python and little else."""

    @property
    def environments(self) -> Path:
        """Where its environments are made."""
        return self.cache / "environments"

    @property
    def step(self) -> Path:
        """While this file is there, the set-up does not end."""
        return self.root / "hold"

    def variables(self, **more: str) -> dict[str, str]:
        """The environment variables of a launch: none that lead to the Python of the tests."""
        return {
            "PATH": self.path,
            "HOME": str(self.cache),
            "PYTORCH_TO_TRITON_CACHE": str(self.cache),
            **more,
        }

    def command(self, *arguments: str) -> list[str]:
        """What starts it, with a Python that lacks what the project needs."""
        return [
            str(Path(self.path.split(":")[0]) / "python3"),
            str(self.root / "server" / "launch.py"),
            *arguments,
        ]

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.variables(**more), capture_output=True, text=True, timeout=120
        )

    @contextmanager
    def serving(self, **more: str) -> Iterator["Conversation"]:
        """A launch of `serve`, ended with the block."""
        with subprocess.Popen(
            self.command("serve"),
            env=self.variables(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield Conversation(process)
            finally:
                process.terminate()
                process.wait(30)


@dataclass(frozen=True)
class Conversation:
    """A client's side of one connection."""

    process: subprocess.Popen[str]

    def send(self, **message: Any) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the launcher ended"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, number: int | str, method: str, **parameters: Any) -> dict[str, Any]:
        """A request's answer; what the client is told before it is passed over."""
        self.send(id=number, method=method, params=parameters)
        while "id" not in (answer := self.receive()):
            pass
        assert answer["id"] == number, answer
        return answer

    def shake_hands(self) -> dict[str, Any]:
        """The handshake of the older era."""
        client = {"name": "test", "version": "0"}
        answer = self.ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send(method="notifications/initialized")
        return answer

    def tools(self, number: int) -> list[str]:
        """The names of the tools."""
        return [tool["name"] for tool in self.ask(number, "tools/list")["result"]["tools"]]

    def wait_for(self, *stages: str, **parameters: Any) -> str:
        """The stage of the set-up, once it names one of these."""
        while True:
            stage: str = self.status(99, parameters, wait_seconds=0.1)["stage"]
            if any(name in stage for name in stages):
                return stage

    def status(
        self, number: int, parameters: Mapping[str, Any] = MappingProxyType({}), **arguments: Any
    ) -> dict[str, Any]:
        """What setup_status answers; `parameters` are further ones of the request."""
        asked = {"name": "setup_status", "arguments": arguments, **parameters}
        result = self.ask(number, "tools/call", **asked)["result"]
        content: dict[str, Any] = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == content
        return content


def stand_in(folder: Path) -> Checkout:
    """A stand-in for the checkout below a folder."""
    root = folder / "checkout"
    shutil.copytree(
        ROOT / "server" / "pytorch_to_triton_launcher",
        root / "server" / "pytorch_to_triton_launcher",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "server" / "launch.py", root / "server")
    package = root / "server" / "pytorch_to_triton_server"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM)
    (root / "tools").mkdir()
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "backend.py").write_text(BACKEND)
    tools = folder / "bin"
    tools.mkdir()
    # The interpreter below the environment of the tests: it has none of what the project needs.
    base = Path(os.path.realpath(sys.executable))
    for name in ("python3", base.name):
        (tools / name).symlink_to(base)
    return Checkout(root, folder / "cache", str(tools))
