"""Conditions on sizes say where they hold: always, nowhere, or at which sizes."""

import pytest

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.schedule.blocks import covering, power_of_two
from pytorch_to_triton.draft.schedule.conditions import any_of, half_empty, on_longer_axes, strictest
from pytorch_to_triton.draft.schedule.schedule import Schedule, Walk
from pytorch_to_triton.inputs.expression import holds


def test_rows_that_leave_a_third_of_a_long_block_empty_are_known() -> None:
    condition = half_empty(sizes.size("N"), 16384)
    assert condition is not None
    for n in (64, 3000, 4096, 4097, 5120, 5461, 5462, 8192, 8193, 10922, 10923, 16384, 17000):
        empties = 4096 < n <= 16384 and 3 * n <= 2 * power_of_two(n)
        assert holds(condition, {"N": n}) == empties, n
        assert half_empty(sizes.size(n), 16384) == ("" if empties else None), n


def test_what_was_measured_on_short_rows_keeps_the_elements_of_a_program_and_a_warp_on_long_ones() -> None:
    """Of 16 channels, each of which 64 neighbours belong to, in blocks that a program holds whole."""
    walks = {
        "row": Walk("grid", "BLOCK_M"),
        "channel": Walk("whole", "BLOCK_C"),
        "col": Walk("whole", "BLOCK_N"),
    }
    sized = {"BLOCK_C": "16", "BLOCK_N": covering(sizes.size("N"))}
    measured = {"BLOCK_M": 4, "num_warps": 4}
    schedule = Schedule(walks, tuple(walks), (measured,), (), sized, covered={"BLOCK_C": 16, "BLOCK_N": 64})
    longer = on_longer_axes(schedule, measured)
    for block_n in (64, 128, 256, 1024):
        known = {"block_n": block_n, "min": min, "max": max}
        rows, warps = (int(eval(longer[name], known)) for name in ("BLOCK_M", "num_warps"))
        assert rows == max(4 * 64 // block_n, 1)
        assert warps == min(max(16 * block_n // 1024, 4), 16)


def test_of_several_upper_limits_of_a_size_the_lowest_is_left() -> None:
    given = ["D // 4 <= 16384", "N <= 512", "D // 4 <= 8192", "(N <= 64) or (M <= 8)", "N <= 512"]
    assert strictest(given) == ("D // 4 <= 8192", "N <= 512", "(N <= 64) or (M <= 8)")


@pytest.mark.parametrize(
    ("conditions", "limit"),
    [
        (["N <= 512"], "N <= 512"),
        (["T > 1024 and T <= 16384", "T <= 16384"], "T <= 16384"),
        (["N <= 64", "M <= 8 and N <= 256"], "(N <= 64) or (M <= 8 and N <= 256)"),
        (["64 < N <= 96 or 128 < N <= 192", "N <= 256"], "(64 < N <= 96 or 128 < N <= 192) or (N <= 256)"),
    ],
)
def test_the_sizes_that_kernels_take_name_no_condition_that_a_wider_one_includes(
    conditions: list[str], limit: str
) -> None:
    assert any_of(conditions) == limit
