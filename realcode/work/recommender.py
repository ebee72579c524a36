"""A recommender's parts: pooled embeddings, crossed features, a loss."""

import torch


def factorization_machine(embeddings):
    """Sum over all pairs of fields of their products. embeddings: [B, F, D] -> [B]."""
    squared_sum = embeddings.sum(dim=1).pow(2)
    sum_of_squares = embeddings.pow(2).sum(dim=1)
    return 0.5 * (squared_sum - sum_of_squares).sum(dim=-1)


def cross_layer(first, x, weight, bias):
    """A layer of a deep and cross network. first, x: [B, D], weight, bias: [D]."""
    return first * (x * weight).sum(dim=-1, keepdim=True) + bias + x


def masked_mean_pool(embeddings, mask):
    """The mean over the items that are there. embeddings: [B, T, D], mask: [B, T]."""
    kept = mask.unsqueeze(-1).to(embeddings.dtype)
    return (embeddings * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1.0)


def weighted_huber(prediction, target, weight, delta):
    """The weighted mean of Huber losses. All: [N]."""
    error = prediction - target
    size = error.abs()
    loss = torch.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))
    return (weight * loss).sum() / weight.sum()


def bagged_embeddings(table, ids, weight):
    """The weighted sum of the rows of a bag. table: [V, D], ids, weight: [B, T] -> [B, D]."""
    return (table[ids] * weight.unsqueeze(-1)).sum(dim=1)


CALLS = {
    "factorization_machine": {
        "INPUTS": {"embeddings": "float32[B, F, D]"},
        "DIMS": {"B": [5, 16384], "F": [3, 39], "D": [8, 32]},
        "GRADIENTS": True,
    },
    "cross_layer": {
        "INPUTS": {
            "first": "float32[B, D]",
            "x": "float32[B, D]",
            "weight": "float32[D]",
            "bias": "float32[D]",
        },
        "DIMS": {"B": [5, 16384], "D": [24, 1248]},
        "GRADIENTS": True,
    },
    "masked_mean_pool": {
        "INPUTS": {"embeddings": "float32[B, T, D]", "mask": "bool[B, T]"},
        "DIMS": {"B": [5, 8192], "T": [3, 50], "D": [8, 64]},
        "GRADIENTS": True,
    },
    "weighted_huber": {
        "INPUTS": {
            "prediction": "float32[N]",
            "target": "float32[N]",
            "weight": "float32[N] in 0.1..2",
            "delta": 1.0,
        },
        "DIMS": {"N": [1000, 8388608]},
        "GRADIENTS": True,
    },
    "bagged_embeddings": {
        "INPUTS": {
            "table": "float32[V, D]",
            "ids": "int64[B, T] in 0..V",
            "weight": "float32[B, T]",
        },
        "DIMS": {"V": [100, 1000000], "D": [8, 64], "B": [5, 16384], "T": [3, 20]},
    },
}
