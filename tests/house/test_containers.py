"""The recipe for kernels that nobody trusts, carried out as its page says."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "references" / "untrusted_kernels.md").read_text(encoding="utf-8")
IMAGE = r"(?:localhost/)?pytorch-to-triton"
BUILD_OPTIONS = shlex.split(os.environ.get("CONTAINER_BUILD_OPTIONS", ""))
"""What this machine needs for a build to reach its package index, such as `--network host`."""
PROBE = """
import json, os, pathlib, socket, subprocess

def fails(attempt, *arguments):
    try:
        attempt(*arguments)
    except OSError:
        return True
    return False

status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps({
    "user": os.getuid(),
    "capabilities": int(status.split("CapEff:")[1].split()[0], 16),
    "no new privileges": "NoNewPrivs:\\t1" in status,
    "kernels": fails(pathlib.Path("/kernels/written").write_text, ""),
    "installation": fails(pathlib.Path("/opt/pytorch-to-triton/written").write_text, ""),
    "network": fails(socket.create_connection, ("1.1.1.1", 53), 3),
    "scratch": fails(pathlib.Path("/scratch/written").write_text, ""),
}))
"""
CONTAINED = {
    "user": 65534,
    "capabilities": 0,
    "no new privileges": True,
    "kernels": True,
    "installation": True,
    "network": True,
    "scratch": False,
}


def blocks_below(heading: str) -> list[str]:
    """The code blocks of a section."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```\w*\n(.*?)```", section, re.DOTALL)


def usable_engine() -> tuple[str, str]:
    """The engine that runs here, and the section that it takes; podman as root is used as docker is."""
    for engine in ("docker", "podman"):
        if shutil.which(engine) and subprocess.run([engine, "info"], capture_output=True).returncode == 0:
            return engine, "Podman" if engine == "podman" and os.getuid() != 0 else "Docker"
    pytest.skip("no container engine runs here")


def test_both_engines_get_the_same_bounds() -> None:
    (docker,), (podman,) = blocks_below("Docker"), blocks_below("Podman")
    in_docker, in_podman = (
        set(re.findall(r"--([\w-]+(?: [^-\s]\S*)?)", block.split(" run ", 1)[1].lower()))
        for block in (docker, podman)
    )
    assert in_podman - in_docker == {"userns nomap"}
    assert in_docker <= in_podman
    assert {"network none", "cap-drop all", "security-opt no-new-privileges"} <= in_docker


@pytest.mark.containers
def test_a_kernel_is_judged_in_a_container_that_bounds_what_it_reaches(tmp_path: Path) -> None:
    engine, section = usable_engine()
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0")[:-1]:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    (image,) = blocks_below("An image")
    (checkout / "Dockerfile").write_text(image, encoding="utf-8")
    kernels = checkout / "kernels"
    kernels.mkdir(mode=0o755)
    shutil.copy(ROOT / "reference_kernels" / "softmax.py", kernels)
    commands = blocks_below(section)[0].replace("\\\n", " ").replace("docker ", f"{engine} ").splitlines()
    build, run = (shlex.split(command.replace("$PWD", str(checkout))) for command in commands)
    subprocess.run([*build[:2], *BUILD_OPTIONS, *build[2:]], cwd=checkout, check=True)

    judged = subprocess.run(run, cwd=checkout, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["verdict"] == "passed"
    place = next(i for i, word in enumerate(run) if re.fullmatch(IMAGE, word))
    probe = [*run[:place], "--entrypoint", "python3", run[place], "-c", PROBE]
    probed = subprocess.run(probe, cwd=checkout, capture_output=True, text=True, check=False)
    assert json.loads(probed.stdout) == CONTAINED, probed.stderr
