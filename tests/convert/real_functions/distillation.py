"""A student's distance from its teacher at a temperature."""

import torch
import torch.nn.functional as F

INPUTS = {
    "student_logits": "float32|bfloat16[M, N]",
    "teacher_logits": "float32|bfloat16[M, N]",
    "temperature": 2.0,
}
DIMS = {"M": [1, 7], "N": [2, 33]}


def distillation(
    student_logits: torch.Tensor, teacher_logits: torch.Tensor, temperature: float = 4.0
) -> torch.Tensor:
    """student_logits, teacher_logits: [M, N]. Returns one number."""
    log_p = F.log_softmax(student_logits / temperature, dim=1)
    q = F.softmax(teacher_logits.detach() / temperature, dim=1)
    return F.kl_div(log_p, q, reduction="batchmean") * temperature**2
