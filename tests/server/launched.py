"""A checkout whose environment is made in a second, without a package index, for the tests of the launcher.

It has the real launcher, and a project of a few lines in the place of this one: one that builds itself, and
whose `serve` answers as little as shows that it does. Making the real environment downloads PyTorch: too much
for every run.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[2]
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
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
UV = '''
"""uv, as far as it is asked for: an environment without pip, and a project in it that builds itself."""
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

match sys.argv[1:]:
    case ["venv", "--no-project", "--python", _, place]:
        venv.create(place, symlinks=True)
    case ["pip", "install", "--python", python, *_, project]:
        (packages,) = pathlib.Path(python).parents[1].glob("lib/*/site-packages")
        with tempfile.TemporaryDirectory() as folder:
            build = [sys.executable, "-c", f"import backend; backend.build_wheel({folder!r})"]
            if subprocess.run(build, cwd=project).returncode != 0:
                sys.exit("error: the project was not built")
            (wheel,) = pathlib.Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as files:
                for name in files.namelist():
                    file = packages / name.rpartition("/purelib/")[2]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(files.read(name))
'''
PROGRAM = '''
"""Its version, its arguments, or a server with one tool."""
import itertools
import json
import os
import sys

if sys.argv[1:] == ["--version"]:
    import stub_library

    print("9.9.9")
elif sys.argv[1:2] != ["serve"]:
    print(json.dumps({"arguments": sys.argv[1:], "program": os.environ.get("PYTORCH_TO_TRITON_PROGRAM")}))
else:
    descriptor = os.environ.get("PYTORCH_TO_TRITON_EARLIER_LINES")
    earlier = os.fdopen(int(descriptor)).readlines() if descriptor else []
    for line in itertools.chain(earlier, sys.stdin):
        print("server got", line.strip(), file=sys.stderr, flush=True)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            print(json.dumps({"id": None, "error": {"code": -32700}}), flush=True)
            continue
        results = {
            "initialize": {"serverInfo": {"name": "real"}},
            "tools/list": {"tools": [{"name": "real"}]},
            "tools/call": {"content": "real"},
        }
        if message["method"] in results and not (message["method"] == "initialize" and line in earlier):
            print(json.dumps({"id": message["id"], "result": results[message["method"]]}), flush=True)
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

    def serving(self, *arguments: str, **more: str) -> AbstractContextManager["Conversation"]:
        """A launch of `serve`, ended with the block."""
        return conversation(self.command("serve", *arguments), self.variables(**more))


@contextmanager
def conversation(
    command: list[str], variables: dict[str, str], *descriptors: int
) -> Iterator["Conversation"]:
    """With a server that is given these open descriptors; it ends with the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        env=variables,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        pass_fds=descriptors,
        # The process that started the tests may ignore the signal, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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

    def shake_hands(self, version: str = "2025-11-25") -> dict[str, Any]:
        """The handshake of the older era."""
        answer = self.ask(1, "initialize", **{**HANDSHAKE, "protocolVersion": version})
        self.send(method="notifications/initialized")
        return answer

    def tools(self, number: int) -> list[str]:
        """The names of the tools."""
        return [tool["name"] for tool in self.ask(number, "tools/list")["result"]["tools"]]

    def call(self, number: int) -> Any:
        """What a call of a tool answers: its content, that of the real server being the word `real`."""
        result = self.ask(number, "tools/call", name="validate", arguments={"kernel": "k.py"})["result"]
        if isinstance(result["content"], str):
            return result["content"]
        assert result["isError"]
        (content,) = result["content"]
        return content["text"]

    def call_until(self, *texts: str) -> str:
        """What a call answers once that holds one of these texts."""
        while not any(text in (answer := self.call(99)) for text in texts):
            pass
        return str(answer)


def stand_in(folder: Path, installer: Literal["uv", "pip"]) -> Checkout:
    """A stand-in for the checkout below a folder; with uv, what it is asked for takes a moment."""
    root = folder / "checkout"
    shutil.copytree(
        ROOT / "server" / "pytorch_to_triton_launcher",
        root / "server" / "pytorch_to_triton_launcher",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "server" / "launch.py", root / "server")
    main = root / "server" / "pytorch_to_triton_launcher" / "main.py"
    main.write_text(main.read_text().replace("PATIENCE_SECONDS = 45.0", "PATIENCE_SECONDS = 0.2"))
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
    if installer == "uv":
        (tools / "uv").write_text(f"#!{base}\n{UV}")
        (tools / "uv").chmod(0o755)
    return Checkout(root, folder / "cache", str(tools))
