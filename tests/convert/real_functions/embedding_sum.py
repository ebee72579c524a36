"""A token's embedding: its word, its position and its segment, normalised."""

import torch
from torch import nn

INPUTS = {"input_ids": "int64[B, T] in 0..50", "token_type_ids": "int64[B, T] in 0..2"}
DIMS = {"B": [1, 2], "T": [1, 7, 16]}


class Embeddings(nn.Module):
    """input_ids, token_type_ids: [B, T], T at most `longest`. Returns [B, T, width]."""

    def __init__(self, vocabulary: int = 50, width: int = 20, longest: int = 64) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(longest, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("position_ids", torch.arange(longest).expand((1, -1)), persistent=False)

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
        seq_length = input_ids.size(1)
        position_ids = self.position_ids[:, :seq_length]
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        embeddings = embeddings + self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(embeddings))
