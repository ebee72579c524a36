"""What a terminal, a pipe and an impatient person get: widths, colours, closed pipes, Ctrl-C."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.progress import Interrupted, left_of, line_of
from pytorch_to_triton_server.tables import TerminalTable

PROGRAM = (sys.executable, "-m", "pytorch_to_triton_server")
ROWS = TerminalTable(
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


def test_no_word_is_broken_and_no_cell_cut_at_any_width() -> None:
    for width in (60, 80, 120, 200):
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
    fine = printed(TerminalTable(("case", "outcome"), [("N=1", "passed")]), 120)
    assert "\x1b[3" not in fine


def test_ctrl_c_while_it_loads_ends_it_quietly_with_130() -> None:
    for module in ("pytorch_to_triton", "typer", "anyio"):
        code = INTERRUPT.format(
            module=module, arguments=["audit", "--evidence", "source", __file__, "--json"]
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 130
        assert "Traceback" not in done.stderr
        assert json.loads(done.stdout)["error"]["kind"] == "interrupted"


def test_what_ctrl_c_ended_is_named_with_how_far_it_was_and_what_is_left_of_it() -> None:
    (convert,) = (tool for tool in TOOLS if tool.name == "convert")
    interrupted = Interrupted(line_of(122, 264, "stage 2: M=129 N=32"), convert.when_interrupted)
    assert interrupted.message == "The command was interrupted (122 of 264, stage 2: M=129 N=32)."
    assert interrupted.hint.startswith("Nothing was written, and convert starts anew. convert start and ")
    assert Interrupted("", "Run it again.").message == "The command was interrupted."


def test_what_is_left_is_told_once_a_tenth_is_done() -> None:
    assert left_of(60, 180, 20.0) == ", about 40 s left"
    assert left_of(17, 180, 20.0) == ""
    assert left_of(0, None, 20.0) == ""


def test_a_line_of_progress_begins_with_the_count_so_that_only_the_name_of_the_case_is_cut() -> None:
    assert line_of(122, 264, "stage 2: M=129 N=32") == "122 of 264  stage 2: M=129 N=32"
    assert line_of(0, None, "starting the worker") == "starting the worker"


def test_a_reader_that_leaves_early_gets_no_traceback_and_the_status_stands(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "import triton\n\n@triton.jit\ndef f(n):\n    while n:\n        break\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    try:
        for words, status in (
            ("--help", 0),
            ("docs read guides/masks", 0),
            ("completion bash", 0),
            (f"audit {tmp_path / 'wrong.py'} --evidence source --json", 1),
        ):
            command = [*PROGRAM, *words.split()]
            done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
            assert "Traceback" not in done.stderr
            assert "Exception ignored" not in done.stderr
            assert done.returncode == status
    finally:
        os.close(writing)
