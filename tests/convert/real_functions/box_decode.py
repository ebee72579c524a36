"""Boxes from anchors and predicted shifts, cut off at the image."""

import math

import torch

INPUTS = {
    "deltas": "float32|bfloat16[N, 4]",
    "anchors": "float32|bfloat16[N, 4] in 1.0..9.0",
}
DIMS = {"N": [1, 7, 65]}
CLIP = math.log(1000.0 / 16)


def box_decode(
    deltas: torch.Tensor,
    anchors: torch.Tensor,
    weights: tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0),
    size: tuple[int, int] = (8, 12),
) -> torch.Tensor:
    """deltas: [N, 4]; anchors: [N, 4] as x1, y1, x2, y2. Returns [N, 4] within `size` (height, width)."""
    widths = anchors[:, 2] - anchors[:, 0]
    heights = anchors[:, 3] - anchors[:, 1]
    ctr_x = anchors[:, 0] + 0.5 * widths
    ctr_y = anchors[:, 1] + 0.5 * heights
    dx, dy, dw, dh = (deltas / deltas.new_tensor(weights)).unbind(dim=1)
    pred_x, pred_y = dx * widths + ctr_x, dy * heights + ctr_y
    pred_w = torch.exp(dw.clamp(max=CLIP)) * widths
    pred_h = torch.exp(dh.clamp(max=CLIP)) * heights
    boxes = torch.stack(
        [pred_x - 0.5 * pred_w, pred_y - 0.5 * pred_h, pred_x + 0.5 * pred_w, pred_y + 0.5 * pred_h], dim=1
    )
    x, y = boxes[:, 0::2].clamp(0, size[1]), boxes[:, 1::2].clamp(0, size[0])
    return torch.stack((x, y), dim=2).flatten(1)
