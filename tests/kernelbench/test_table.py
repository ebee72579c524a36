"""The table says what is drafted, right and fast, and names what is not."""

import json
from pathlib import Path
from typing import Any

from kernelbench.table import row_of, write_tables
from pytorch_to_triton.sweep.journal import Journal


def recorded(folder: Path, *records: dict[str, Any]) -> Journal:
    kept = Journal(folder / "journal.sqlite")
    for record in records:
        kept.add(record)
    return kept


MACHINE = {
    "item": "*", "phase": "machine", "where": "device", "status": "measured", "device": "a GPU",
    "torch": "2.11", "triton": "3.6", "copy_gb_per_s": 4000.0,
}  # fmt: skip


def drafted(problem: str, name: str, calls: tuple[str, ...] = ()) -> dict[str, Any]:
    found = {"status": "drafted", "made": "a", "traced": True}
    found |= {"ways": {"own kernels": {"kernels": ["k"], "calls": calls}}}
    return {"item": problem, "name": name, "phase": "draft", "where": "", **found}


def judged(problem: str, phase: str, status: str, where: str = "small, interpreter") -> dict[str, Any]:
    return {"item": problem, "phase": phase, "where": where, "status": status, "digest": "a", "why": "x"}


def timed(problem: str, eager: float, compiled: float, draft: float) -> dict[str, Any]:
    medians = {"eager": eager, "compile": compiled, "drafted": draft}
    implementations = {name: {"median_ms": ms} for name, ms in medians.items()}
    found = {"status": "measured", "digest": "a", "bytes": 4_000_000_000, "implementations": implementations}
    return {"item": problem, "phase": "time", "where": "device", **found}


def test_shares_and_ratios_are_of_medians(tmp_path: Path) -> None:
    records = recorded(tmp_path, MACHINE, drafted("1/19", "19_ReLU"), timed("1/19", 3.0, 2.0, 1.25))
    row = row_of("1/19", records)
    assert (row.vs_eager, row.vs_compile) == (2.4, 1.6)
    assert row.floor_ms == 1.0
    assert row.share == 0.8


def test_the_worst_verdict_of_all_sizes_counts(tmp_path: Path) -> None:
    records = recorded(
        tmp_path,
        drafted("1/19", "19_ReLU"),
        judged("1/19", "validate", "passed"),
        judged("1/19", "validate", "failed", "declared, device"),
        judged("1/19", "check", "right"),
    )
    row = row_of("1/19", records)
    assert (row.validated, row.checked) == ("failed", "right")


def test_results_of_an_earlier_draft_are_left_out(tmp_path: Path) -> None:
    again = drafted("1/19", "19_ReLU") | {"made": "b"}
    row = row_of("1/19", recorded(tmp_path, judged("1/19", "check", "wrong"), again))
    assert row.checked == "not done"


def test_the_summary_counts_and_names(tmp_path: Path) -> None:
    refusal = {"message": "`aten.addmm` | is refused"}
    refused = {"item": "2/1", "name": "1_Gemm", "phase": "draft", "where": "", "status": "refused"}
    records = recorded(
        tmp_path,
        MACHINE,
        drafted("1/19", "19_ReLU"),
        timed("1/19", 4.0, 2.0, 1.0),
        drafted("1/50", "50_conv_standard_2D", ("aten.convolution",)),
        timed("1/50", 1.0, 1.0, 4.0),
        judged("1/50", "validate", "passed"),
        judged("1/50", "check", "wrong"),
        {**refused, "traced": True, "refusal": refusal},
    )
    text = write_tables(tmp_path, records, ["1/19", "1/50", "2/1"]).read_text()
    for line in (
        "- traced: 3 of 3",
        "- drafted: 2 of 3",
        "- drafted without a call of PyTorch: 1 of 3",
        "- validated and wrong: 1 of 3",
        "- not slower than eager: 1 of 2",
        "- geometric mean against eager, all: 1.000 (2)",
        "- geometric mean against eager, level 1 without dense convolutions: 4.000 (1)",
        "- slower than eager: 50_conv_standard_2D (0.25)",
        "| 1/19 ReLU | yes | yes | 1 | – | – | – | own kernels | not done | not done "
        "| 4.0000 | 2.0000 | 1.0000 | 4.00 | 2.00 | 100% |",
        "- 2/1 1_Gemm: `aten.addmm` \\| is refused",
    ):
        assert line in text.splitlines()
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["vs_compile"] for row in rows] == [2.0, 0.25, None]


def test_an_implementation_that_failed_costs_its_own_cell(tmp_path: Path) -> None:
    found = timed("1/19", 3.0, 2.0, 1.0)
    found["implementations"]["drafted"] = {"error": "crashed: killed by SIGSEGV"}
    row = row_of("1/19", recorded(tmp_path, MACHINE, drafted("1/19", "19_ReLU"), found))
    assert (row.eager_ms, row.drafted_ms, row.share) == (3.0, None, None)
    assert "drafted: crashed" in row.why
