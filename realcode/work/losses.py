"""Losses over classes, a vocabulary and pairs."""

import torch
import torch.nn.functional as F


def label_smoothing(logits, target, smoothing):
    """Cross entropy against smoothed labels. logits: [M, V], target: [M]."""
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)
    at_target = -log_probabilities.gather(1, target.unsqueeze(1)).squeeze(1)
    uniform = -log_probabilities.mean(dim=-1)
    return ((1 - smoothing) * at_target + smoothing * uniform).mean()


def focal(logits, target, alpha, gamma):
    """The focal loss of a detector. logits, target: [M, C], target 0 or 1."""
    probability = torch.sigmoid(logits)
    entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    at_target = probability * target + (1 - probability) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - at_target) ** gamma * entropy).sum() / logits.shape[0]


def distillation(student, teacher, temperature):
    """KL divergence from the teacher's softened probabilities. student, teacher: [M, V]."""
    log_student = F.log_softmax(student.float() / temperature, dim=-1)
    log_teacher = F.log_softmax(teacher.float() / temperature, dim=-1)
    return F.kl_div(log_student, log_teacher, reduction="batchmean", log_target=True) * temperature**2


def dpo(chosen, rejected, chosen_ids, rejected_ids, reference_margin, beta):
    """Preferences from both answers' logits. chosen, rejected: [B, T, V], ids: [B, T], margin: [B]."""

    def score(logits, ids):
        return torch.log_softmax(logits.float(), dim=-1).gather(2, ids.unsqueeze(-1)).squeeze(-1).sum(-1)

    margin = score(chosen, chosen_ids) - score(rejected, rejected_ids)
    return -F.logsigmoid(beta * (margin - reference_margin)).mean()


def contrastive(similarity, log_scale):
    """Images with their texts and texts with their images. similarity: [N, N], log_scale: [1]."""
    logits = similarity * log_scale.exp()
    own = torch.arange(logits.shape[0], device=logits.device)
    return 0.5 * (F.cross_entropy(logits, own) + F.cross_entropy(logits.t(), own))


CALLS = {
    "label_smoothing": {
        "INPUTS": {"logits": "bfloat16[M, V]", "target": "int64[M] in 0..V", "smoothing": 0.1},
        "DIMS": {"M": [5, 4096], "V": [1000, 32000]},
        "GRADIENTS": True,
    },
    "focal": {
        "INPUTS": {
            "logits": "float32[M, C]",
            "target": "float32[M, C] in 0..1",
            "alpha": 0.25,
            "gamma": 2.0,
        },
        "DIMS": {"M": [7, 131072], "C": [5, 80]},
        "GRADIENTS": True,
    },
    "distillation": {
        "INPUTS": {"student": "bfloat16[M, V]", "teacher": "bfloat16[M, V]", "temperature": 2.0},
        "DIMS": {"M": [5, 2048], "V": [1000, 32000]},
        "GRADIENTS": True,
    },
    "dpo": {
        "INPUTS": {
            "chosen": "bfloat16[B, T, V]",
            "rejected": "bfloat16[B, T, V]",
            "chosen_ids": "int64[B, T] in 0..V",
            "rejected_ids": "int64[B, T] in 0..V",
            "reference_margin": "float32[B]",
            "beta": 0.1,
        },
        "DIMS": {"B": [2, 4], "T": [5, 512], "V": [1000, 32000]},
        "GRADIENTS": True,
    },
    "contrastive": {
        "INPUTS": {"similarity": "float32[N, N] in -1..1", "log_scale": "float32[1] in 2..3"},
        "DIMS": {"N": [33, 4096]},
        "GRADIENTS": True,
    },
}
