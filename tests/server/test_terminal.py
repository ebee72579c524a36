"""What a terminal, a pipe and an impatient person get: widths, colours, closed pipes, Ctrl-C."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus
from pytorch_to_triton_server.case_tables import counted, row_of
from pytorch_to_triton_server.tables import TerminalTable, table_of

PROGRAM = (sys.executable, "-m", "pytorch_to_triton_server")
ROWS = table_of(
    ("severity", "where", "what", "suggestion"),
    [("high\nsource", "kernels/softmax.py:33", "The last elements are never computed. " * 4, "Round up.")],
)
INTERRUPT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise KeyboardInterrupt

from pytorch_to_triton_server.cli import main
sys.meta_path.insert(0, Interrupt())
sys.exit(main({arguments!r}))
"""


def printed(table: TerminalTable, width: int, *, terminal: bool = True) -> str:
    output = io.StringIO()
    Console(
        file=output, width=width, force_terminal=terminal, color_system="standard" if terminal else None
    ).print(table)
    return output.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_word_is_broken_and_no_cell_cut_at_any_width(width: int) -> None:
    lines = printed(ROWS, width, terminal=False).splitlines()
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    for word in ("kernels/softmax.py:33", "computed.", "Round", "up.", "high", "source"):
        assert word in text.split() or width < 80


def test_a_narrow_terminal_shows_each_row_below_its_first_cell() -> None:
    lines = printed(ROWS, 50, terminal=False).splitlines()
    assert lines[0].strip() == "high source"
    assert any(line.startswith("  where: kernels/softmax.py:33") for line in lines)
    assert printed(ROWS, 120, terminal=False).splitlines()[0].split()[:2] == ["severity", "where"]


def test_colour_is_for_what_asks_for_attention() -> None:
    assert "\x1b[31mhigh" in printed(ROWS, 120)
    fine = printed(table_of(("case", "outcome"), [("N=1", "passed")]), 120)
    assert "\x1b[3" not in fine


def case(name: str, group: str, status: CaseStatus) -> CaseResult:
    return CaseResult.model_validate(
        {"name": name, "group": group, "status": status, "outputs": (), "why": ""}
    )


def test_cases_that_passed_are_counted_by_group_and_a_single_one_named() -> None:
    cases = [case("N=1", "odd", "passed"), case("N=2", "dtype", "passed"), case("N=3", "odd", "passed")]
    assert [row[:3] for row in counted(cases)] == [("2 cases", "odd", "passed"), ("N=2", "dtype", "passed")]
    assert row_of(cases[0])[:3] == ("N=1", "odd", "passed")


@pytest.mark.parametrize("module", ["pytorch_to_triton", "typer", "pydantic", "anyio"])
def test_ctrl_c_while_it_loads_ends_it_quietly_with_130(module: str) -> None:
    code = INTERRUPT.format(module=module, arguments=["audit", "--evidence", "source", __file__, "--json"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "interrupted"


def test_ctrl_c_while_it_works_ends_it_quietly_with_130(spinning_kernel: Path, marker: Path) -> None:
    command = [*PROGRAM, "validate", str(spinning_kernel), "--device", "interpreter", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background, it may be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not marker.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert json.loads(out)["error"]["kind"] == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["validate", "--help"], 0),
        (["docs", "read", "names"], 0),
        (["completion", "bash"], 0),
    ],
)
def test_a_reader_that_leaves_early_gets_no_traceback(arguments: list[str], status: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == status


def test_the_verdict_s_status_stands_although_nobody_reads_it(wrong_kernel: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*PROGRAM, "validate", str(wrong_kernel), "--device", "interpreter", "--json"]
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--json"], ["docs", "--json"], ["nope", "--json"], ["doctor", "--bogus", "--json"],
     ["completion", "--json"], ["install", "--json"], ["--json", "validate"],
     ["serve", "--toolsets", "nope", "--json"]],
)  # fmt: skip
def test_every_mistake_in_a_call_is_one_json_object(arguments: list[str]) -> None:
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["kind"] in ("usage", "bad_input")
    assert error["message"]
    assert error["hint"]
    assert "\n" not in error["message"]


def test_json_may_stand_before_the_command() -> None:
    done = subprocess.run([*PROGRAM, "--json", "--version"], capture_output=True, text=True)
    assert list(json.loads(done.stdout)) == ["version"]
