"""What a terminal shows of an inspection."""

from pathlib import Path

import pytest

from pytorch_to_triton.schema.compiled import (
    Estimate,
    InspectedKernel,
    Inspection,
    InstructionCounts,
    Remark,
    TextPage,
)
from pytorch_to_triton_server.inspection_tables import compiled_at, estimate_table, join_labels, remark_rows
from pytorch_to_triton_server.show import closing_lines

from .compiled import argument, inspected

NARROW = Remark(kind="narrow_access", message="Line 7 loads 32 bits.")
ESTIMATE = Estimate(
    gpu="H200",
    waves=2.5,
    least_bytes=2**27,
    us={"memory": 28, "issue": 82},
    binds="issue",
    sentence="estimated for H200: memory 28 us, instructions 82 us: bound by issue",
)
LOW = Remark(kind="low_occupancy", message="Occupancy is 6 %.")


def kernel(label: str, *remarks: Remark, pointer: str = "*fp16") -> InspectedKernel:
    """A kernel with two pointers and an integer."""
    taken = (argument("a_ptr", pointer), argument("b_ptr", "*fp16"), argument("n", "i32"))
    return inspected(label, remarks, arguments=taken)


def inspection(*kernels: InspectedKernel, dims: dict[str, int], page: TextPage | None = None) -> Inspection:
    return Inspection(
        summary="Compiled.",
        next_step="Go on.",
        verdict="compiled",
        lines=(),
        target="k.py",
        arch="sm_90",
        dims=dims,
        provenance="compiled",
        kernels=kernels,
        notes=("A note.",),
        page=page,
    )


def test_sizes_and_pointer_types_are_shown_once() -> None:
    found = inspection(kernel("k#1"), kernel("k#2"), dims={"M": 1024, "K": 64})
    assert compiled_at(found) == "At M=1024 K=64 with a_ptr: *fp16, b_ptr: *fp16."
    assert list(closing_lines(found)) == [compiled_at(found), "Note: A note.", "Compiled.", "Go on."]


def test_kernels_with_other_pointer_types_are_shown_apart() -> None:
    found = inspection(kernel("k"), kernel("l", pointer="tensordesc<fp32[8]>"), dims={})
    assert compiled_at(found) == (
        "With k(a_ptr: *fp16, b_ptr: *fp16), l(a_ptr: tensordesc<fp32[8]>, b_ptr: *fp16)."
    )


def test_a_remark_on_several_configurations_is_one_row() -> None:
    kernels = [kernel(f"k#{n}", NARROW, *([LOW] if n in (1, 3) else [])) for n in range(1, 7)]
    found = inspection(*kernels, kernel("l", NARROW), dims={})
    assert remark_rows(found) == [
        ("k#1 to #6", NARROW.message),
        ("k#1, #3", LOW.message),
        ("l", NARROW.message),
    ]


def test_what_a_warp_issues_is_shown_by_loops_and_by_what_most_of_it_is() -> None:
    outside = InstructionCounts(depth=0, turns=1, share=1, counts={"integers": 20, "memory": 10})
    loop = InstructionCounts(
        line=7, depth=1, turns=8, share=0.5, counts={"special_functions": 30, "integers": 15}
    )
    sections = (outside, loop)
    known = kernel("k").model_copy(update={"sections": sections, "estimate": ESTIMATE})
    unknown = loop.model_copy(update={"turns": None, "share": None})
    other = known.model_copy(update={"label": "l", "sections": (outside, unknown)})
    shown = estimate_table(inspection(known, other, dims={}))
    assert [row[:5] for row in shown.rows] == [
        ("k", "30 + 8 x 45", "57 % special functions, 38 % integers, 5 % memory", "2.5", "134 MB"),
        ("l", "30 + ? x 45", "47 % integers, 40 % special functions, 13 % memory", "2.5", "134 MB"),
    ]
    assert {row[5] for row in shown.rows} == {ESTIMATE.sentence}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((2,), "k#2"), ((1, 2), "k#1, #2"), ((1, 2, 3, 5, 11, 12, 13), "k#1 to #3, #5, #11 to #13")],
)
def test_neighbouring_labels_are_a_range(numbers: tuple[int, ...], text: str) -> None:
    assert join_labels([f"k#{number}" for number in numbers]) == text


def test_a_page_is_shown_with_the_file_that_holds_all() -> None:
    page = TextPage(
        kernel="k", kind="ptx", page=1, pages=2, first_line=1, text="ret;", whole=Path("/texts/k.ptx")
    )
    lines = list(closing_lines(inspection(kernel("k"), dims={}, page=page)))
    assert lines[-2:] == ["ptx of k, page 1 of 2 (in full: /texts/k.ptx):", "ret;"]
