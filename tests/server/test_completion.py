"""What a shell is told when somebody presses Tab."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.completion.command import ASK, SCRIPTS

Asked = Callable[..., list[str]]
MODEL = """
raise SystemExit("it was executed")

INPUTS = {"x": "float32[M, N]", "eps": 1e-5}
DIMS = {"M": [1], "N": [2]}


class Norm:
    def forward(self): ...


def gelu(x): ...


def _private(x): ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "my kernels").mkdir()
    (tmp_path / "sessions" / "gelu").mkdir(parents=True)
    (tmp_path / "sessions" / "gelu" / "session.json").write_text("{}")
    (tmp_path / "sessions" / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The words that may take the place of the last one."""

    def answer(*words: str) -> list[str]:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(["pytorch-to-triton", *words]))
        assert main([ASK]) == 0
        printed = capfd.readouterr()
        assert printed.err == ""
        return [line.partition("\t")[0] for line in printed.out.splitlines()]

    return answer


def test_commands_and_options_are_completed_and_offered_again_if_they_may_be_repeated(
    folder: Path, asked: Asked
) -> None:
    assert asked("val") == ["validate"]
    assert asked("docs", "s") == ["search", "status"]
    assert asked("validate", "--re") == [
        "--reference",
        "--require",
        "--require-int64-offsets",
        "--require-mixed-dtypes",
    ]
    assert asked("convert", "model.py:gelu", "--str") == ["--strict"]
    assert asked("validate", "--seed", "1", "--see") == []
    assert asked("validate", "--dim", "M=1", "--di") == ["--dim"]


def test_a_target_is_a_file_and_a_public_name_in_it_read_without_executing_it(
    folder: Path, asked: Asked
) -> None:
    assert asked("validate", "") == ["model.py", "my kernels/", "sessions/"]
    assert asked("validate", "model.py:") == ["model.py:Norm", "model.py:gelu"]
    assert asked("validate", "k.py", "--reference", "model.py:g") == ["model.py:gelu"]
    assert asked("audit", "a.py", f"{folder}/mod") == [f"{folder}/model.py"]
    (folder / "broken.py").write_text("def f(:")
    assert asked("validate", "broken.py:") == []


def test_values_are_completed_by_what_an_option_takes(folder: Path, asked: Asked) -> None:
    assert asked("validate", "--device", "i") == ["interpreter"]
    assert asked("validate", "--device=i") == ["interpreter"]
    assert asked("inspect", "model.py", "--arch", "gfx94") == ["gfx942"]
    assert asked("audit", "--rule", "access_without") == ["access_without_mask"]
    assert asked("docs", "read", "guides/mas") == ["guides/masks"]
    assert asked("convert", "submit", "") == ["sessions/gelu"]
    assert asked("convert", "x.py", "--into", "s") == ["sessions/"]
    assert asked("validate", "model.py:gelu", "--dim", "") == ["M=", "N="]
    assert asked("validate", "model.py", "--input", "e") == ["eps="]
    assert asked("install", "--client", "z") == ["zed"]
    assert asked("completion", "") == ["bash", "zsh", "fish"]


def in_shell(shell: str, script: str, folder: Path) -> str:
    """What a real shell prints, with this program on its PATH."""
    executable = shutil.which(shell)
    if executable is None:
        pytest.skip(f"needs {shell}")
    program = folder / "bin" / "pytorch-to-triton"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pytorch_to_triton_server "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        [executable, "-c", script], capture_output=True, text=True, env=environment, cwd=folder, check=True
    )
    assert done.stderr == ""
    return done.stdout


BASH = """
eval "$(pytorch-to-triton completion bash)"
asked() {
    COMP_LINE=$1 COMP_POINT=${#1}
    _pytorch_to_triton pytorch-to-triton
    printf '[%s]' "${COMPREPLY[@]}"
    echo
}
asked 'pytorch-to-triton validate model.py:g'
asked 'pytorch-to-triton validate mo'
asked 'pytorch-to-triton validate my'
asked 'pytorch-to-triton validate "my k'
asked 'pytorch-to-triton validate --device=i'
asked 'pytorch-to-triton audit --focus num'
"""


def test_bash_gets_what_stands_behind_its_word_breaks(folder: Path) -> None:
    assert in_shell("bash", BASH, folder).splitlines() == [
        "[gelu ]",
        "[model.py]",
        "['my kernels/']",
        "['my kernels/']",
        "[interpreter ]",
        "['numerical stability' ]",
    ]


def test_fish_completes_by_its_script(folder: Path) -> None:
    script = 'pytorch-to-triton completion fish | source; complete -C "pytorch-to-triton validate model.py:"'
    assert sorted(in_shell("fish", script, folder).split()) == ["model.py:Norm", "model.py:gelu"]


def test_zsh_loads_its_script_and_has_a_completion_for_the_program(folder: Path) -> None:
    script = (
        'autoload -U compinit; compinit -u; eval "$(pytorch-to-triton completion zsh)"; '
        "print $_comps[pytorch-to-triton]"
    )
    assert in_shell("zsh", script, folder).strip() == "_pytorch_to_triton"


def test_a_script_is_printed_alone_or_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    for shell, script in SCRIPTS.items():
        assert main(["completion", shell]) == 0
        assert capfd.readouterr().out == script
        assert main(["completion", shell, "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == {"shell": shell, "script": script}
