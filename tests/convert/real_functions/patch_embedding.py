"""An image as a sequence of patches, with a class token and learnt positions."""

import torch
from torch import nn

INPUTS = {"pixel_values": "float32|bfloat16[B, 3, 12, 12]"}
DIMS = {"B": [1, 3]}


class PatchEmbedding(nn.Module):
    """pixel_values: [B, 3, image, image]. Returns [B, 1 + (image / patch) ** 2, width]."""

    def __init__(self, image: int = 12, patch: int = 4, width: int = 18) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position_embeddings = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        embeddings = self.projection(pixel_values).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(pixel_values.shape[0], -1, -1)
        embeddings = torch.cat((cls_tokens, embeddings), dim=1)
        return embeddings + self.position_embeddings
