"""Losses over a vocabulary, over policies, masks, pairs and distributions."""

import torch
import torch.nn.functional as F


def masked_cross_entropy_with_z(logits, target, strength):
    """Cross entropy without what is to be ignored (0), and a loss on the normaliser. logits: [M, V], target: [M]."""
    wide = logits.float()
    normaliser = torch.logsumexp(wide, dim=-1)
    each = normaliser - wide.gather(1, target[:, None])[:, 0]
    kept = (target != 0).float()
    count = kept.sum().clamp(min=1)
    return (each * kept).sum() / count + strength * (normaliser.square() * kept).sum() / count


def clipped_policy(log_probability, old, advantage, reference, mask, clip, beta):
    """A policy's clipped objective with a penalty on leaving the reference. All: [B, T]."""
    ratio = torch.exp(log_probability - old)
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    apart = reference - log_probability
    penalty = torch.exp(apart) - apart - 1
    each = (beta * penalty - gain) * mask
    return (each.sum(dim=1) / mask.sum(dim=1)).mean()


def dice(logits, target):
    """The overlap of masks, for each class of each image. logits, target: [B, C, H, W]."""
    probability = torch.sigmoid(logits)
    both = (probability * target).sum(dim=(2, 3))
    either = probability.sum(dim=(2, 3)) + target.sum(dim=(2, 3))
    return 1 - ((2 * both + 1) / (either + 1)).mean()


def triplet(anchor, near, far, margin):
    """Distances of unit vectors. All: [B, D]."""
    anchor, near, far = (F.normalize(x, dim=-1) for x in (anchor, near, far))
    apart = (anchor - near).square().sum(-1) - (anchor - far).square().sum(-1)
    return F.relu(apart + margin).mean()


def supervised_contrastive(similarity, label):
    """All others of the same class are positive. similarity: [N, N], label: [N]."""
    count = label.shape[0]
    own = torch.eye(count, dtype=torch.bool, device=label.device)
    positive = ((label[:, None] == label[None]) & ~own).float()
    logits = (similarity / 0.1).masked_fill(own, -1e9)
    log_probability = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return -((positive * log_probability).sum(1) / positive.sum(1).clamp(min=1)).mean()


def variational(prediction, image, mean, log_variance, beta):
    """Reconstruction and divergence from the prior. prediction, image: [B, P], mean, log_variance: [B, Z]."""
    reconstruction = (prediction - image).abs().sum(dim=1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1)
    return (reconstruction + beta * divergence).mean()


CALLS = {
    "masked_cross_entropy_with_z": {
        "INPUTS": {"logits": "bfloat16[M, V]", "target": "int64[M] in 0..V", "strength": 0.0001},
        "DIMS": {"M": [5, 2048], "V": [1000, 50304]},
        "GRADIENTS": True,
    },
    "clipped_policy": {
        "INPUTS": {
            "log_probability": "float32[B, T] in -1..0",
            "old": "float32[B, T] in -1..0",
            "advantage": "float32[B, T]",
            "reference": "float32[B, T] in -1..0",
            "mask": "float32[B, T] in 0.5..1",
            "clip": 0.2,
            "beta": 0.04,
        },
        "DIMS": {"B": [3, 1024], "T": [9, 4096]},
        "GRADIENTS": True,
    },
    "dice": {
        "INPUTS": {"logits": "float32[B, C, H, W]", "target": "float32[B, C, H, W] in 0..1"},
        "DIMS": {"B": [2, 8], "C": [3, 19], "H": [5, 256], "W": [6, 256]},
        "GRADIENTS": True,
    },
    "triplet": {
        "INPUTS": {
            "anchor": "float32[B, D]",
            "near": "float32[B, D]",
            "far": "float32[B, D]",
            "margin": 0.2,
        },
        "DIMS": {"B": [5, 16384], "D": [16, 512]},
        "GRADIENTS": True,
    },
    "supervised_contrastive": {
        "INPUTS": {"similarity": "float32[N, N] in -1..1", "label": "int64[N] in 0..100"},
        "DIMS": {"N": [33, 4096]},
        "GRADIENTS": True,
    },
    "variational": {
        "INPUTS": {
            "prediction": "float32[B, P]",
            "image": "float32[B, P]",
            "mean": "float32[B, Z]",
            "log_variance": "float32[B, Z] in -2..1",
            "beta": 0.5,
        },
        "DIMS": {"B": [3, 512], "P": [100, 12288], "Z": [8, 1024]},
        "GRADIENTS": True,
    },
}
