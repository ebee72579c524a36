"""Sizes that are plain numbers are written as a person would, and drafts of them audit clean."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.read_source import read
from pytorch_to_triton.draft.file.launches import Stage

from .graphs import single, text

STAGES: tuple[Stage, ...] = (1, 2, 3)
ROWS = single("softmax.int", ("x", -1), ("M", "512"))
UNEVEN_ROWS = single("softmax.int", ("x", -1), ("M", "100"))
LONG_ROWS = single("softmax.int", ("x", -1), ("M", "40000"))
COLUMNS = single("softmax.int", ("x", 1), ("M", "64", "32"))
TILES = single("add.Tensor", ("x", "w"), ("M", "64"), x=("M", "64"), w=("64",))
FIXED = single("exp.default", ("x",), ("8", "64"))
GRAPHS = {
    "rows": ROWS, "uneven rows": UNEVEN_ROWS, "long rows": LONG_ROWS, "columns": COLUMNS, "tiles": TILES,
    "nothing but literal sizes": FIXED,
}  # fmt: skip


@pytest.mark.parametrize("what", GRAPHS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_draft_of_literal_sizes_audits_clean(what: str, stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "draft.py"
    file.write_text(text(GRAPHS[what], stage), encoding="utf-8")
    assert [f for f in read(file).findings if f.severity in ("critical", "high", "medium")] == []


@pytest.mark.parametrize("what", ["rows", "columns", "tiles", "nothing but literal sizes"])
def test_a_literal_size_is_no_key_of_the_autotuner(what: str) -> None:
    assert 'key=["64"]' not in text(GRAPHS[what], 2)
    assert 'key=["512"]' not in text(GRAPHS[what], 2)


def test_the_block_of_a_literal_size_is_a_number() -> None:
    rows, uneven = text(ROWS, 3), text(UNEVEN_ROWS, 3)
    assert "next_power_of_2" not in rows + uneven + text(COLUMNS, 3)
    assert "BLOCK_N=512" in rows
    assert "col_mask" not in rows, "512 elements fill a block of 512"
    assert "BLOCK_N=128" in uneven
    assert "col_mask = col < 100" in uneven
