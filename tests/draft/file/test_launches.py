"""What `run` computes for a launch: grids, blocks, and which tensors decide how wide offsets are."""

from math import ceil
from typing import Any

import pytest

from pytorch_to_triton.draft.file.launches import blocks_in, largest, without_implied
from pytorch_to_triton.draft.file.module import ON_THE_HOST
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer
from pytorch_to_triton.draft.schedule.blocks import KNOWN, covering, power_of_two


def on_the_host(name: str) -> dict[str, Any]:
    """A function that drafted files define."""
    found: dict[str, Any] = {}
    exec(ON_THE_HOST[name], found)
    return found


@pytest.mark.parametrize("block", ["1", "64", "block_m"])
def test_a_grid_has_a_program_for_each_block_and_for_the_rest(block: str) -> None:
    for rows in (0, 1, 63, 64, 65, 4096):
        known = {"n_rows": rows, "block_m": 48, **on_the_host("cdiv")}
        length = known["block_m"] if block == "block_m" else int(block)
        assert eval(blocks_in("n_rows", block), known) == ceil(rows / length)


def test_a_grid_of_known_sizes_is_a_number() -> None:
    assert blocks_in("27", "16") == "2"


@pytest.mark.parametrize("limit", [None, 256])
def test_a_covering_block_is_the_next_power_of_two_of_sizes_known_at_run_time(limit: int | None) -> None:
    text = covering(sizes.size("2*N + 1"), limit)
    for n in (0, 1, 3, 4, 127, 128, 5120):
        whole = power_of_two(2 * n + 1)
        for known in (KNOWN, {"min": min, **on_the_host("next_power_of_2")}):
            assert eval(text, {"N": n, **known}) == (min(whole, limit) if limit else whole)


def test_a_tensor_that_is_never_the_largest_does_not_decide_how_wide_offsets_are() -> None:
    x, y, weight, partial = (
        Buffer(name, tuple(map(sizes.size, shape)), "float32")
        for name, shape in {"x": "MN", "y": "MN", "weight": "N", "partial": "P"}.items()
    )
    assert largest([weight, x, y, partial]) == [x, partial]


@pytest.mark.parametrize(
    ("condition", "failed", "asked"),
    [
        ("B * S <= 65536 and T > 512", ["T <= 512"], "B * S <= 65536"),
        ("B * S <= 65536 and T > 512", ["T <= 256"], "B * S <= 65536 and T > 512"),
        ("T > 512", ["T <= 512"], "T > 512"),
        ("B > 3 or S <= 2 and T > 512", ["T <= 512"], "B > 3 or S <= 2 and T > 512"),
        ("B * S <= 65536 and T > 512", ["B > 3 and T <= 512"], "B * S <= 65536 and T > 512"),
    ],
)
def test_a_branch_does_not_ask_again_what_the_one_before_it_decided(
    condition: str, failed: list[str], asked: str
) -> None:
    assert without_implied(condition, failed, "") == asked
    assert without_implied(f"{condition} and N <= 512", failed, "N <= 512") in (
        asked,
        f"{condition} and N <= 512",
    )
