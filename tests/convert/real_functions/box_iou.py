"""The overlap of every box with every other, and each one's best match."""

import torch

INPUTS = {"boxes1": "float32|bfloat16[M, 4] in 0.0..8.0", "boxes2": "float32|bfloat16[N, 4] in 0.0..8.0"}
DIMS = {"M": [1, 7], "N": [1, 9]}


def box_area(boxes: torch.Tensor) -> torch.Tensor:
    """boxes: [M, 4] as x, y, width, height. Returns [M]."""
    return boxes[:, 2] * boxes[:, 3]


def box_iou(boxes1: torch.Tensor, boxes2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """boxes1: [M, 4]; boxes2: [N, 4], both as x, y, width, height. Returns [M, N], and [M] indices."""
    lt = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.min((boxes1[..., :2] + boxes1[..., 2:])[:, None], boxes2[:, :2] + boxes2[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    union = box_area(boxes1)[:, None] + box_area(boxes2) - inter
    iou = inter / (union + 1e-6)
    return iou, iou.argmax(dim=1)
