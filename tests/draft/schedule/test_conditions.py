"""Conditions on sizes say where they hold: always, nowhere, or at which sizes."""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.schedule.blocks import power_of_two
from pytorch_to_triton.draft.schedule.conditions import half_empty
from pytorch_to_triton.inputs.expression import holds


def test_rows_that_leave_a_third_of_a_long_block_empty_are_known() -> None:
    condition = half_empty(sizes.size("N"), 16384)
    assert condition is not None
    for n in (64, 3000, 4096, 4097, 5120, 5461, 5462, 8192, 8193, 10922, 10923, 16384, 17000):
        empties = 4096 < n <= 16384 and 3 * n <= 2 * power_of_two(n)
        assert holds(condition, {"N": n}) == empties, n
        assert half_empty(sizes.size(n), 16384) == ("" if empties else None), n
