"""Attention is PyTorch's, with every mask, scale and number of heads."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

Q, K, V = torch.randn(2, 4, 5, 3), torch.randn(2, 4, 7, 3), torch.randn(2, 4, 7, 6)
SEEN = torch.rand(5, 7) > 0.4
SEEN[2] = False
BIAS = torch.zeros(5, 7).masked_fill(~SEEN, -torch.inf)
ATTENTION = "aten.scaled_dot_product_attention.default"
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
    "scaled below zero": {"scale": -1.5},
    "boolean mask, with a query that sees nothing": {"attn_mask": SEEN},
    "additive mask": {"attn_mask": torch.randn(2, 1, 5, 7)},
    "additive mask, with a query that sees nothing": {"attn_mask": BIAS},
    "a mask for each batch": {"attn_mask": torch.rand(2, 1, 1, 7) > 0.3},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_attention_is_pytorchs(name: str) -> None:
    agrees(ATTENTION, Q, K, V, **OPTIONS[name])


@pytest.mark.parametrize(("queries", "keys"), [(7, 5), (5, 5), (1, 4), (4, 1)])
def test_causal_attention_counts_from_the_first_query_and_the_first_key(queries: int, keys: int) -> None:
    agrees(ATTENTION, Q.repeat(1, 1, 2, 1)[:, :, :queries], K[:, :, :keys], V[:, :, :keys], is_causal=True)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_several_query_heads_share_one_of_the_keys(heads: int) -> None:
    agrees(ATTENTION, Q, K[:, :heads], V[:, :heads], enable_gqa=True)


def test_a_query_whose_every_score_is_minus_infinity_gets_zeros() -> None:
    """As the first one of a causal attention does where its only key is infinite."""
    queries, keys = Q[:, :, :, :1].abs(), K[:, :, :, :1].abs()
    keys[:, :, 0] = -torch.inf
    agrees(ATTENTION, queries, keys, V, is_causal=True)
    agrees(ATTENTION, queries, keys[:, :, :1], V[:, :, :1])


def test_attention_needs_no_batch() -> None:
    agrees(ATTENTION, Q[0, 0], K[0, 0], V[0, 0], SEEN)


def test_dropout_stays_with_pytorch() -> None:
    with pytest.raises(Refused, match="at random"):
        lowered(ATTENTION, Q, K, V, dropout_p=0.1)
