"""Blocks and stages that fit."""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.patterns.columns import LOOPS
from pytorch_to_triton.draft.schedule.blocks import pipelined, stages, within

CONFIG = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 3}
TILE = ("BLOCK_M", "BLOCK_K")


def test_two_operands_keep_their_stages() -> None:
    assert pipelined([CONFIG], [TILE, ("BLOCK_K", "BLOCK_N")]) == (CONFIG,)


def test_so_many_tiles_that_they_do_not_fit_are_loaded_in_fewer_stages() -> None:
    """A tile is 8 KiB: 21 of them in three stages are 504 KiB, more than any GPU has for a program."""
    assert pipelined([CONFIG], [TILE] * 10)[0]["num_stages"] == 2
    assert pipelined([CONFIG], [TILE] * 21)[0]["num_stages"] == 1


def test_a_loop_of_one_turn_has_nothing_on_its_way() -> None:
    text = stages(5, "block_n", 1, sizes.size("N"), "(M > 2048)")
    for rows, expected in ((2048, 1), (2049, 2)):
        assert eval(text, {"block_n": 4096, "N": 4096, "M": rows}) == expected


def test_a_tile_of_few_columns_has_as_many_elements_in_more_rows() -> None:
    assert within(LOOPS, {"BLOCK_N": sizes.size("N")}, given_to="BLOCK_K") == LOOPS
    for tile in within(LOOPS, {"BLOCK_N": sizes.size(4)}, given_to="BLOCK_K"):
        assert tile["BLOCK_N"] == 16
        assert tile["BLOCK_K"] >= 64
