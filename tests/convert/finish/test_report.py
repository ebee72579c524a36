"""The report that one attaches to a pull request says what was seen, and what was not."""

import html.parser
from dataclasses import replace
from pathlib import Path

from pytorch_to_triton.benchmark.pictures import draw
from pytorch_to_triton.convert.finish.files import page
from pytorch_to_triton.convert.finish.report import (
    Dossier,
    calls_left,
    changed_lines,
    left_section,
    markdown,
    report_of,
    tuning_in,
)
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.session import Attempt, Condition, Understanding
from pytorch_to_triton.schema.timing import TimingTable

from ...benchmark.sweeps import benchmark, softmax, softmax_sweep
from ..stages import stage

STAGE_1 = '''
@triton.jit
def f_kernel(x_ptr, BLOCK: tl.constexpr):
    """Compute out element by element."""
    pass
'''
STAGE_2 = f"""
import triton


@triton.autotune(configs=[triton.Config({{}}), triton.Config({{}})], key=["N"])
{STAGE_1.strip()}


@triton.jit
def g_kernel(x_ptr):
    pass
"""


def attempt(number: int, stage: int, *, opened: bool, unmet: str = "", accepted: str = "") -> Attempt:
    conditions = [Condition(name="right", met="met", evidence="All 80 cases are right")]
    if unmet:
        conditions.append(Condition(name="coalesced", met="not met", evidence=unmet))
    return Attempt.model_validate(
        {
            "number": number, "stage": stage, "opened": opened, "file": Path(f"{number}/kernel.py"),
            "conditions": conditions, "accepted": accepted, "when": "2026-11-23T08:00:00+00:00",
        }
    )  # fmt: skip


def dossier(timed: Benchmark | None = None) -> Dossier:
    first, shut, second = (
        attempt(1, 1, opened=True),
        attempt(2, 2, opened=False, unmet="lanes lie N | elements apart <script>alert(1)</script>"),
        attempt(3, 2, opened=True, unmet="slower", accepted="it is simpler"),
    )
    return Dossier(
        name="softmax",
        understood=Understanding(
            function="softmax",
            inputs=("x: float32[M, N]",),
            steps=("y = aten.softmax(x)",),
            gradients="no backward pass",
        ),
        stages=((first, STAGE_1), (second, STAGE_2)),
        attempts=(first, shut, second),
        validation=None,
        audit=None,
        benchmark=timed,
        saved="",
        machine="Seen on the CPU, in Triton's interpreter.",
        commands=("pytest test_softmax_triton.py",),
    )


class Structure(html.parser.HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]


def test_what_was_not_measured_is_called_so() -> None:
    text = markdown(report_of(dossier()))
    assert "Speed: not measured, for want of a GPU." in text
    assert "## Speed" not in text
    assert "ms" not in text.partition("## The three stages")[0]


def test_what_is_left_to_pytorch_has_its_share_of_the_time() -> None:
    calls = ("topk: no kernel of a draft sorts",)
    sizes = [with_library(softmax(rows, 4096, kernel=0.5), ms) for rows, ms in ((64, 0.3), (8192, 0.1))]
    timed = benchmark("gates.py", sizes)
    assert left_section(calls, timed).lines == (
        *calls,
        "Share of the GPU's time that is not the kernels': 75 % at M=64 N=4096, 25 % at M=8192 N=4096.",
    )
    assert left_section((), timed).lines == ()
    assert left_section(calls, None).lines == calls


def test_what_the_draft_left_to_pytorch_is_not_said_of_a_kernel_that_leaves_nothing() -> None:
    passed = stage(3).verdict
    understood = dossier().understood.model_copy(update={"calls": ("topk: no kernel of a draft sorts",)})
    for operators, left in (
        ({"aten.empty.memory_format": 1}, ()),
        ({"aten.topk.default": 1}, understood.calls),
    ):
        behavior = passed.behavior.model_copy(update={"operators": operators})
        validation = passed.model_copy(update={"behavior": behavior})
        assert calls_left(replace(dossier(), understood=understood, validation=validation)) == left


def with_library(table: TimingTable, milliseconds: float) -> TimingTable:
    """The table of a kernel that keeps the device busy for 0.4 ms, so much of it outside of Triton."""
    (kernel,) = table.timings
    seen = kernel.model_copy(update={"busy_ms": 0.4, "library_ms": milliseconds})
    return table.model_copy(update={"timings": (seen,)})


def test_every_attempt_is_there_with_what_kept_its_gate_shut_and_why_one_was_accepted() -> None:
    text = markdown(report_of(dossier()))
    rows = [line for line in text.splitlines() if line.startswith(("| 1 |", "| 2 |", "| 3 |"))]
    assert len(rows) == 3
    assert "shut" in rows[1]
    assert r"lanes lie N \| elements apart" in rows[1]
    assert "accepted: it is simpler" in rows[2]


def test_the_stages_say_in_words_what_is_new() -> None:
    (section,) = (s for s in report_of(dossier()).sections if s.heading == "The three stages")
    assert section.table is not None
    first, second = section.table.rows
    assert first[1:3] == ("f_kernel: Compute out element by element", "fixed configurations")
    assert second[1:3] == ("g_kernel", "1 autotuned kernel")
    assert second[3] == changed_lines(STAGE_1, STAGE_2)
    assert tuning_in(STAGE_1) == "fixed configurations"


def test_the_page_needs_nothing_else_and_runs_no_script(tmp_path: Path) -> None:
    timed = benchmark("softmax.py", softmax_sweep())
    timed = timed.model_copy(update={"pictures": draw(timed, tmp_path)})
    text = page(report_of(dossier(timed)))
    structure = Structure(text)
    assert "script" not in structure.tags
    assert structure.tags.count("img") == 2
    assert all(source.startswith("data:image/png;base64,") for source in structure.sources)
    assert "M=16384 N=1024" in text
    assert "&lt;script&gt;" in text
    assert "0.0223" in text
