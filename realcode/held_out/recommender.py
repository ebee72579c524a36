"""A recommender's parts: interactions, attention over a history, ranking losses."""

import torch
import torch.nn.functional as F
from torch import nn


def dot_interaction(dense, embeddings):
    """The products of all pairs of features. dense: [B, D], embeddings: [B, F, D] -> [B, D + F * (F + 1) // 2]."""
    features = torch.cat((dense.unsqueeze(1), embeddings), dim=1)
    products = torch.bmm(features, features.transpose(1, 2))
    rows, columns = torch.tril_indices(features.shape[1], features.shape[1], -1, device=dense.device)
    return torch.cat((dense, products[:, rows, columns]), dim=1)


def history_attention(history, scores, length):
    """The user's history by attention over what there is of it. history: [B, T, D], scores: [B, T], length: [B]."""
    there = torch.arange(scores.shape[1], device=scores.device)[None] < length[:, None]
    weight = torch.softmax(scores.masked_fill(~there, -1e9), dim=-1)
    return (weight.unsqueeze(-1) * history).sum(dim=1)


class FieldGate(nn.Module):
    """Fields weighted by their own means. embeddings: [B, 32, D]."""

    def __init__(self, fields: int = 32) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(fields))
        self.shift = nn.Parameter(torch.zeros(fields))

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        mean = embeddings.mean(dim=-1)
        return embeddings * (2 * torch.sigmoid(mean * self.scale + self.shift)).unsqueeze(-1)


def pairwise_ranking(user, liked, other, decay):
    """Liked items before others, with regularised embeddings. All: [B, D]."""
    margin = (user * liked).sum(-1) - (user * other).sum(-1)
    size = user.square().sum() + liked.square().sum() + other.square().sum()
    return -F.logsigmoid(margin).mean() + decay * size / user.shape[0]


def log_loss(logit, click, weight):
    """Weighted cross entropy of clicks, and the calibration. All: [N]."""
    each = F.softplus(logit) - click * logit
    calibration = (torch.sigmoid(logit) * weight).sum() / (click * weight).sum()
    return (each * weight).sum() / weight.sum(), calibration


CALLS = {
    "dot_interaction": {
        "INPUTS": {"dense": "float32[B, D]", "embeddings": "float32[B, F, D]"},
        "DIMS": {"B": [3, 8192], "D": [16, 64], "F": [4, 26]},
        "GRADIENTS": True,
    },
    "history_attention": {
        "INPUTS": {
            "history": "float32[B, T, D]",
            "scores": "float32[B, T]",
            "length": "int64[B] in 1..T",
        },
        "DIMS": {"B": [3, 4096], "T": [7, 100], "D": [8, 64]},
        "GRADIENTS": True,
    },
    "FieldGate": {
        "INPUTS": {"embeddings": "float32[B, 32, D]"},
        "DIMS": {"B": [3, 16384], "D": [8, 64]},
        "GRADIENTS": True,
    },
    "pairwise_ranking": {
        "INPUTS": {
            "user": "float32[B, D]",
            "liked": "float32[B, D]",
            "other": "float32[B, D]",
            "decay": 0.0001,
        },
        "DIMS": {"B": [5, 65536], "D": [16, 128]},
        "GRADIENTS": True,
    },
    "log_loss": {
        "INPUTS": {
            "logit": "float32[N]",
            "click": "float32[N] in 0..1",
            "weight": "float32[N] in 0.1..2",
        },
        "DIMS": {"N": [1000, 8388608]},
        "GRADIENTS": True,
    },
}
