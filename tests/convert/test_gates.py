"""A gate opens for a right stage that is not slower than the last one that passed; nothing is guessed."""

from pytorch_to_triton.convert.gates import gated
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.timing import TimingTable

from .stages import stage, table

RIGHT = [stage(1), stage(2), stage(3)]
FIRST = (1.0, 1.1, 1.2)
JUDGED: list[tuple[str, list[StageReport], TimingTable | None, list[tuple[str, bool]]]] = [
    ("nothing measured", RIGHT, None, [("not measured", True)] * 3),
    ("a wrong one", [stage(1), stage(2, "failed")], None, [("not measured", True), ("not measured", False)]),
    ("an undecided one", [stage(1, "undecided")], None, [("not measured", False)]),
    ("faster", RIGHT[:2], table(stage_1=(2.0, 2.1, 2.2), stage_2=FIRST), [("not slower", True)] * 2),
    (
        "intervals that overlap",
        RIGHT[:2],
        table(stage_1=FIRST, stage_2=(1.15, 1.25, 1.3)),
        [("not slower", True)] * 2,
    ),
    (
        "beyond the interval",
        RIGHT[:2],
        table(stage_1=FIRST, stage_2=(1.23, 1.25, 1.3)),
        [("not slower", True), ("slower", False)],
    ),
    (
        "one percent longer",
        RIGHT[:2],
        table(stage_1=(1.0, 1.0, 1.0), stage_2=(1.009, 1.01, 1.011)),
        [("not slower", True)] * 2,
    ),
    (
        "compared with the last that passed",
        RIGHT,
        table(stage_1=FIRST, stage_2=(5.0, 5.1, 5.2), stage_3=(2.0, 2.1, 2.2)),
        [("not slower", True), ("slower", False), ("slower", False)],
    ),
    ("not timed", RIGHT[:2], table(stage_1=FIRST), [("not slower", True), ("not measured", True)]),
]


def test_a_gate_opens_for_a_right_stage_that_is_not_slower_than_the_last_that_passed() -> None:
    for what, stages, times, expected in JUDGED:
        assert [(s.speed, s.passed) for s in gated(stages, [times] if times else [])] == expected, what


def test_over_several_sizes_stages_are_compared_by_the_geometric_mean() -> None:
    small = table(stage_1=(1.0, 1.0, 1.0), stage_2=(1.1, 1.1, 1.1), stage_3=(4.0, 4.0, 4.0))
    large = table(stage_1=(8.0, 8.0, 8.0), stage_2=(4.0, 4.0, 4.0), stage_3=(3.0, 3.0, 3.0))
    assert [s.speed for s in gated(RIGHT, [small, large])] == ["not slower", "not slower", "slower"]
    not_timed = table(stage_1=(1.0, 1.0, 1.0))
    assert [s.speed for s in gated(RIGHT[:2], [not_timed, large])] == ["not slower", "not slower"]
