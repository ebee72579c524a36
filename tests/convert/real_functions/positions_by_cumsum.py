"""Position numbers that skip padding, and the tokens' place in their segment."""

import torch

INPUTS = {"input_ids": "int64[B, T] in 0..4"}
DIMS = {"B": [1, 3], "T": [1, 9, 33]}


def positions_by_cumsum(
    input_ids: torch.Tensor, padding_idx: int = 1, past_key_values_length: int = 0
) -> torch.Tensor:
    """input_ids: [B, T]. Returns [B, T]: padding_idx for padding, counted from padding_idx + 1 otherwise."""
    mask = input_ids.ne(padding_idx).int()
    incremental = (torch.cumsum(mask, dim=1).type_as(mask) + past_key_values_length) * mask
    return incremental.long() + padding_idx
