"""Blocks and stages that fit."""

from pytorch_to_triton.draft.schedule.blocks import pipelined

CONFIG = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 3}
TILE = ("BLOCK_M", "BLOCK_K")


def test_two_operands_keep_their_stages() -> None:
    assert pipelined([CONFIG], [TILE, ("BLOCK_K", "BLOCK_N")]) == (CONFIG,)


def test_so_many_tiles_that_they_do_not_fit_are_loaded_in_fewer_stages() -> None:
    """A tile is 8 KiB: 21 of them in three stages are 504 KiB, more than any GPU has for a program."""
    assert pipelined([CONFIG], [TILE] * 10)[0]["num_stages"] == 2
    assert pipelined([CONFIG], [TILE] * 21)[0]["num_stages"] == 1
