"""Pages of help: every command has one that ends with calls that work, and fits its terminal."""

import re
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.examples import EXAMPLES, PANELS
from pytorch_to_triton_server.run_command import every_command

MODEL = """
import torch

INPUTS = {"x": "float32[M, N]", "bias": "float32[N]"}
DIMS = {"M": [7], "N": [33]}


def gelu_bias(x, bias):
    return torch.nn.functional.gelu(x + bias)
"""
RUN = (
    "audit kernels --evidence source", "docs search make_block_ptr",
    "docs read tl.load", "docs status", "device", "convert list", "completion bash",
    "install --client zed --dry-run",
)  # fmt: skip
"""The examples that are run here; each is parsed."""
SLOW = ("doctor", "inspect kernel.py --arch sm_90", "benchmark kernel.py --estimate H200")
"""Those that take seconds: they are run with the corpora, and what they do has tests of its own."""


def commands(group: Any, path: str = "") -> dict[str, Any]:
    """Every command by its path, the groups among them."""
    found = {path: group}
    for name, command in getattr(group, "commands", {}).items():
        found |= commands(command, f"{path} {name}".strip())
    return found


COMMANDS = commands(every_command())
CALLS = [example.typed for examples in EXAMPLES.values() for example in examples]


def help_of(path: str, capfd: pytest.CaptureFixture[str]) -> str:
    assert main([*path.split(), "--help"]) == 0
    return capfd.readouterr().out


@pytest.fixture
def folder(right_kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the examples are typed."""
    right_kernel.rename(tmp_path / "kernel.py")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "double.py").write_text((tmp_path / "kernel.py").read_text())
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_every_command_has_a_few_examples_with_which_its_page_ends(capfd: pytest.CaptureFixture[str]) -> None:
    assert set(EXAMPLES) == set(COMMANDS), "examples.py has two to four calls of each command"
    assert {path: len(examples) for path, examples in EXAMPLES.items() if not 2 <= len(examples) <= 4} == {}
    for path, examples in EXAMPLES.items():
        printed = help_of(path, capfd)
        _, _, shown = printed.partition("\nExamples:\n")
        lines = [line.strip() for line in shown.strip().splitlines()]
        assert lines == [text for one in examples for text in (one.typed, one.does)], path


def test_every_example_is_a_call_of_the_command_that_shows_it(folder: Path) -> None:
    for path, examples in EXAMPLES.items():
        for example in examples:
            program, *words = shlex.split(example.typed.partition(" > ")[0])
            assert program == "pytorch-to-triton"
            command, context = every_command(), None
            while getattr(command, "commands", None):
                context = command.make_context("pytorch-to-triton", words, parent=context)
                name, command, words = command.resolve_command(
                    context, [*context._protected_args, *context.args]
                )
                assert name
            command.make_context("pytorch-to-triton", words, parent=context)
            shown_by = path.removesuffix(" all")
            assert (
                not shown_by
                or example.typed.startswith(f"pytorch-to-triton {shown_by.split()[0]} ")
                or (example.typed == f"pytorch-to-triton {shown_by}")
            )


@pytest.mark.usefixtures("kept_open")
@pytest.mark.parametrize("call", [*RUN, *(pytest.param(call, marks=pytest.mark.corpora) for call in SLOW)])
def test_an_example_does_what_it_says(call: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert f"pytorch-to-triton {call}" in CALLS
    status = main(shlex.split(call))
    printed = capfd.readouterr()
    assert status in (0, 1), printed.err  # 1: a search without a hit, a kernel with findings
    assert printed.out
    assert not (folder / ".config" / "zed").exists()  # a dry run


def test_the_program_s_page_lists_each_command_once_by_what_it_is_for(
    capfd: pytest.CaptureFixture[str],
) -> None:
    listed = [name for names in PANELS.values() for name in names]
    commands = sorted(path for path in COMMANDS if path and " " not in path)
    assert sorted(listed) == commands, "PANELS in examples.py lists each command"
    printed = help_of("", capfd)
    assert [title for title in PANELS if f"\n{title}:\n" in printed] == list(PANELS)


def test_a_page_fits_its_terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for columns, path in product((60, 200), COMMANDS):
        monkeypatch.setenv("COLUMNS", str(columns))
        # An example is to be copied: it is not broken.
        page = help_of(path, capfd).partition("\nExamples:\n")[0].partition("\n\n")[2]
        long = [line for line in page.splitlines() if len(line) > min(columns, 100)]
        # A word that is longer than a line stays whole.
        assert [line for line in long if len(line.split()) > 2] == [], path


def test_a_page_names_every_option_with_its_words_and_default_without_colours(
    capfd: pytest.CaptureFixture[str],
) -> None:
    printed = " ".join(help_of("validate", capfd).split())
    assert "validate KERNEL [OPTIONS]" in printed
    assert "--device auto|cuda|interpreter" in printed
    assert "[default: 120]" in printed
    assert "--dim TEXT" in printed
    assert re.search(r"--dim TEXT .*?\(may be repeated\)", printed)
    assert "--json" in printed
    assert "4 the function cannot be converted" in printed
    assert "\x1b" not in help_of("validate", capfd)
