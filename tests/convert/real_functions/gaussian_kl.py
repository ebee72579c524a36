"""A variational autoencoder's loss: squared errors, and how far its posterior is from a standard normal."""

import torch
import torch.nn.functional as F

INPUTS = {
    "recon": "float32|bfloat16[B, N]",
    "x": "float32|bfloat16[B, N]",
    "mu": "float32|bfloat16[B, D]",
    "logvar": "float32|bfloat16[B, D] in -3.0..1.0",
    "beta": 0.5,
}
DIMS = {"B": [1, 5], "N": [7, 32], "D": [1, 9]}


def gaussian_kl(
    recon: torch.Tensor, x: torch.Tensor, mu: torch.Tensor, logvar: torch.Tensor, beta: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """recon, x: [B, N]; mu, logvar: [B, D]. Returns the loss and its KL part."""
    mse = F.mse_loss(recon, x, reduction="sum") / x.size(0)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1)
    kld = kld.mean(dim=0)
    return mse + beta * kld, kld
