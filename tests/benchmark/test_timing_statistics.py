"""Medians with intervals that assume nothing about how times are spread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_to_triton.benchmark.figures import is_not_slower, median_interval, spread

TIMES = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=200)


def test_the_interval_holds_the_median_and_is_the_ranks_of_the_binomial_distribution() -> None:
    median, low, high = median_interval([float(n) for n in range(1, 101)])
    assert median == 50.5
    assert low < median < high
    # Le Boudec's table for 100 samples: the 40th to the 61st smallest.
    _, low, high = median_interval([float(n) for n in range(1, 101)])
    assert low in (40.0, 41.0)
    assert high in (60.0, 61.0)


def test_neither_the_order_of_samples_nor_one_outlier_matters_and_few_give_their_whole_range() -> None:
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == median_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    for count in (1, 2, 3, 5):
        samples = [float(n) for n in range(count)]
        assert median_interval(samples)[1:] == (0.0, count - 1.0)
    steady = [1.0] * 59
    assert median_interval([*steady, 1000.0]) == (1.0, 1.0, 1.0)


def test_no_samples_have_neither_median_nor_spread() -> None:
    with pytest.raises(ValueError, match="needs samples"):
        median_interval([])
    with pytest.raises(ValueError, match="two data points"):
        spread([])


def test_overlapping_intervals_are_not_slower() -> None:
    assert is_not_slower(1.0, 1.2)
    assert is_not_slower(1.2, 1.2)
    assert not is_not_slower(1.3, 1.2)


@given(TIMES)
def test_the_median_lies_in_its_interval_and_the_interval_among_the_samples(samples: list[float]) -> None:
    median, low, high = median_interval(samples)
    assert min(samples) <= low <= median <= high <= max(samples)


def test_the_spread_is_the_middle_half_over_the_median_whatever_one_outlier_is() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert spread([2.0] * 10) == 0.0
    assert spread([7.0]) == 0.0
    assert spread([1.0] * 59 + [1000.0]) == 0.0


@given(TIMES, st.floats(0.5, 2.0))
def test_the_spread_does_not_depend_on_the_unit(samples: list[float], factor: float) -> None:
    assert spread([factor * sample for sample in samples]) == pytest.approx(spread(samples))
