"""A share of the tests is what continuous integration has the time for."""

import pytest

from .conftest import share_of


def test_the_shares_hold_every_test_once() -> None:
    tests = list(range(10))
    shares = [tests[share_of(f"{number}/3")] for number in (1, 2, 3)]
    assert sorted(test for share in shares for test in share) == tests
    assert [len(share) for share in shares] == [4, 3, 3]


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "/3", "a/b", "2/0"])
def test_a_share_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="the second of three"):
        share_of(text)
