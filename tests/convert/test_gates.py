"""A gate opens for a right stage that is not slower than the last one that passed; nothing is guessed."""

from pytorch_to_triton.convert.gates import gated

from .stages import stage, table


def test_without_a_device_right_stages_pass_and_their_speed_is_not_measured() -> None:
    judged = gated([stage(1), stage(2), stage(3)], None)
    assert [s.passed for s in judged] == [True, True, True]
    assert {s.speed for s in judged} == {"not measured"}


def test_a_wrong_stage_does_not_pass() -> None:
    assert [s.passed for s in gated([stage(1), stage(2, "failed")], None)] == [True, False]


def test_an_undecided_stage_does_not_pass() -> None:
    assert not gated([stage(1, "undecided")], None)[0].passed


def test_a_faster_stage_is_not_slower() -> None:
    judged = gated([stage(1), stage(2)], table(stage_1=(2.0, 2.1, 2.2), stage_2=(1.0, 1.1, 1.2)))
    assert [(s.speed, s.passed) for s in judged] == [("not slower", True)] * 2


def test_a_stage_whose_interval_overlaps_is_not_slower() -> None:
    judged = gated([stage(1), stage(2)], table(stage_1=(1.0, 1.1, 1.2), stage_2=(1.15, 1.25, 1.3)))
    assert judged[1].speed == "not slower"


def test_a_stage_beyond_the_interval_is_slower_and_does_not_pass() -> None:
    judged = gated([stage(1), stage(2)], table(stage_1=(1.0, 1.1, 1.2), stage_2=(1.23, 1.25, 1.3)))
    assert (judged[1].speed, judged[1].passed) == ("slower", False)


def test_a_stage_that_takes_one_percent_longer_is_not_slower() -> None:
    judged = gated([stage(1), stage(2)], table(stage_1=(1.0, 1.0, 1.0), stage_2=(1.009, 1.01, 1.011)))
    assert judged[1].speed == "not slower"


def test_a_stage_is_compared_with_the_last_one_that_passed() -> None:
    times = table(stage_1=(1.0, 1.1, 1.2), stage_2=(5.0, 5.1, 5.2), stage_3=(2.0, 2.1, 2.2))
    judged = gated([stage(1), stage(2), stage(3)], times)
    assert [s.speed for s in judged] == ["not slower", "slower", "slower"]


def test_a_stage_that_could_not_be_timed_is_not_measured() -> None:
    judged = gated([stage(1), stage(2)], table(stage_1=(1.0, 1.1, 1.2)))
    assert judged[1].speed == "not measured"
