"""Medians with intervals that assume nothing about how times are spread."""

import pytest

from pytorch_to_triton.benchmark.statistics import is_not_slower, median_interval


def test_the_interval_holds_the_median() -> None:
    median, low, high = median_interval([float(n) for n in range(1, 101)])
    assert median == 50.5
    assert low < median < high


def test_the_interval_is_the_ranks_of_the_binomial_distribution() -> None:
    # Le Boudec's table for 100 samples: the 40th to the 61st smallest.
    _, low, high = median_interval([float(n) for n in range(1, 101)])
    assert low in (40.0, 41.0)
    assert high in (60.0, 61.0)


def test_the_order_of_samples_does_not_matter() -> None:
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == median_interval([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_samples_give_their_whole_range(count: int) -> None:
    samples = [float(n) for n in range(count)]
    assert median_interval(samples)[1:] == (0.0, count - 1.0)


def test_one_outlier_among_many_leaves_the_interval_alone() -> None:
    steady = [1.0] * 59
    assert median_interval([*steady, 1000.0]) == (1.0, 1.0, 1.0)


def test_no_samples_have_no_median() -> None:
    with pytest.raises(ValueError, match="needs samples"):
        median_interval([])


def test_overlapping_intervals_are_not_slower() -> None:
    assert is_not_slower(1.0, 1.2)
    assert is_not_slower(1.2, 1.2)
    assert not is_not_slower(1.3, 1.2)
