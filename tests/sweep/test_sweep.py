"""Items of every kind end in one state each, and a sweep that is killed goes on where it was."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.sweep.journal import Journal
from pytorch_to_triton_server.score import open_scorer

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(7, 33)]


def get_init_inputs():
    return []
"""
RIGHT = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x < 0, tl.zeros_like(x), x) * 2, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
"""
CONSTRUCTED = "    def __init__(self, k):\n        super().__init__()\n        self.k = k\n\n    def forward"
SCALED_PROBLEM = (
    PROBLEM.replace("return []", "return [scale]")
    .replace("class Model(nn.Module):", "base = 1.0\nscale = base * 2\n\n\nclass Model(nn.Module):")
    .replace("    def forward", CONSTRUCTED)
    .replace("torch.relu(x) * 2", "torch.relu(x) * self.k")
)
SCALED = RIGHT.replace("    def forward", CONSTRUCTED)
"""An answer to it that leaves it to the problem how modules are constructed."""
CANDIDATES = {
    "right": RIGHT,
    "wrong": RIGHT.replace("x) * 2", "x) * 2.5"),
    "cheating": RIGHT.replace("        return out", "        return torch.relu(x) * 2"),
    "broken": "import nothing_of_this_name\n",
    "crashed": RIGHT.replace("x = x.contiguous()", "import os; os.abort()"),
    "timed out": RIGHT.replace("x = x.contiguous()", "while True: pass"),
}
"""By the state in which each ends."""
AT_IMPORT = "while True: pass\n"
ENDS = {**{state: state for state in CANDIDATES}, "drafted": "right", "at import": "timed out"}
"""The state of each item of `pairs`."""


def pairs(folder: Path) -> Path:
    lines = [{"key": state, "problem": PROBLEM, "candidate": text} for state, text in CANDIDATES.items()]
    file = folder / "pairs.jsonl"
    lines += [{"key": "drafted", "problem": PROBLEM}]
    lines += [{"key": "at import", "problem": PROBLEM, "candidate": AT_IMPORT}]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def command(source: Path, out: Path, *options: str) -> list[str]:
    shared = ["--device", "interpreter", "--jobs", "2", "--seconds-per-item", "8", "--json"]
    return [
        sys.executable,
        "-m",
        "pytorch_to_triton_server",
        "sweep",
        str(source),
        "--into",
        str(out),
        *shared,
        *options,
    ]


def swept(source: Path, out: Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(command(source, out, *options), capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def states(out: Path) -> dict[str, str]:
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    return {line["key"]: line["state"] for line in lines}


def test_every_item_ends_in_one_state_and_costs_only_itself(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = swept(pairs(tmp_path), out)
    assert states(out) == ENDS
    assert sum(report["states"].values()) == len(ENDS)
    assert report["cheats"]["torch_operator"] == 1
    assert (out / "drafts" / "drafted.py").is_file()
    journal = sqlite3.connect(out / "journal.sqlite")
    before = dict(journal.execute("SELECT item, record FROM records"))
    swept(tmp_path / "pairs.jsonl", out, "--again", "failed")
    after = dict(journal.execute("SELECT item, record FROM records"))
    assert {key for key in before if before[key] != after[key]} == {"timed out", "crashed", "at import"}


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    out, source = tmp_path / "out", pairs(tmp_path)
    journal = Journal(out / "journal.sqlite")
    with subprocess.Popen(
        command(source, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as sweep:
        while sweep.poll() is None and len(list(journal)) < 2:
            pass
        os.kill(sweep.pid, signal.SIGKILL)
    before = list(journal)
    assert 1 < len(before) < len(ENDS) + 1
    swept(source, out)
    after = list(journal)
    assert all(record in after for record in before)
    assert states(out) == ENDS


def test_an_interrupted_sweep_says_what_it_has_done(tmp_path: Path) -> None:
    out = tmp_path / "out"
    journal = Journal(out / "journal.sqlite")
    with subprocess.Popen(
        command(pairs(tmp_path), out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as sweep:
        while sweep.poll() is None and len(list(journal)) < 2:
            pass
        os.kill(sweep.pid, signal.SIGINT)
        _, said = sweep.communicate()
    assert sweep.returncode == 130, said
    assert "report.md" in said
    assert {"waiting"} < {*states(out).values()}


def test_what_has_no_answer_is_not_drafted_in_its_place(tmp_path: Path) -> None:
    problems, answers = tmp_path / "problems", tmp_path / "answers"
    for folder in (problems, answers):
        folder.mkdir()
    (problems / "one.py").write_text(PROBLEM)
    (problems / "two.py").write_text(PROBLEM)
    (answers / "one.py").write_text(RIGHT)
    swept(problems, tmp_path / "out", "--candidates", str(answers))
    assert states(tmp_path / "out") == {"one": "right", "two": "not drafted"}


def test_only_what_has_changed_is_done_again(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    for name in ("one", "two"):
        (source / f"{name}.py").write_text(PROBLEM + RIGHT)
    swept(source, out)
    (source / "two.py").write_text(PROBLEM + CANDIDATES["wrong"])
    journal = sqlite3.connect(out / "journal.sqlite")
    before = dict(journal.execute("SELECT item, record FROM records"))
    swept(source, out)
    after = dict(journal.execute("SELECT item, record FROM records"))
    assert after["one"] == before["one"]
    assert states(out) == {"one": "right", "two": "wrong"}


def test_without_drafting_what_has_no_kernel_is_not_drafted(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "source" / "out"
    source.mkdir()
    (source / "one.py").write_text(PROBLEM + RIGHT)
    (source / "two.py").write_text("def f(x):\n    return x + 1\n")
    (source / "gone.py").symlink_to(tmp_path / "missing.py")
    (source / "odd.py").write_text("-" * 100_000)
    swept(source, out, "--phase", "validate")
    assert states(out) == {"odd": "not drafted", "one": "right", "two:f": "not drafted"}
    (out / "kernel.py").write_text(PROBLEM + RIGHT)
    swept(source, out, "--phase", "validate")
    assert "out/kernel" not in states(out)
    (source / "one.py").unlink()
    refused = command(source, out, "--phase", "validate")
    assert "has no kernel to validate" in subprocess.run(refused, capture_output=True, text=True).stderr


def test_a_scorer_says_what_each_candidate_is_worth() -> None:
    wanted = ("right", "cheating", "wrong", "broken")
    with open_scorer(device="interpreter", jobs=2, seconds=30, memory_gib=4) as scorer:
        scores = scorer.score_all([(PROBLEM, CANDIDATES[state]) for state in wanted])
        hungry = RIGHT.replace("x = x.contiguous()", "x = x.contiguous(); eaten = bytearray(6 << 30)")
        eaten = scorer.score(PROBLEM, hungry)
        said = ("", "I cannot do that.", "x" * 5000, "no\ud800\n", "import torch")
        answers = scorer.score_all([(PROBLEM, answer) for answer in said])
        scaled = scorer.score(SCALED_PROBLEM, SCALED)
    assert tuple(score.state for score in scores) == wanted
    assert {score.state for score in answers} == {"broken"}
    assert scaled.state == "right"
    assert [score.is_right for score in scores] == [True, False, False, False]
    assert "torch_operator" in scores[1].cheats
    assert scores[0].speedup is None
    assert eaten.state == "crashed"
    assert "over the limit of 4.0 GiB" in eaten.cause


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--phase", "validate,draw"], "There is no phase draw."),
        (["--phase", "time"], "Timing needs a GPU"),
        (["--against", "missing"], "missing holds no results of a sweep"),
        (["--into", "/proc/missing"], "Nothing can be written into /proc/missing"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = subprocess.run(
        command(pairs(tmp_path), tmp_path / "out", *options), capture_output=True, text=True, check=False
    )
    assert message in done.stderr
    assert done.returncode in (2, 3)
