"""What torch itself says of dtypes: which two promote to which, and the figures of torch.finfo."""

from typing import Any

import torch


def work(report: Any, dtypes: list[str], figures: list[str]) -> dict[str, Any]:
    """`a b` -> dtype for each pair, and `figure dtype` -> number for the floats."""
    pairs = {
        f"{a} {b}": str(torch.promote_types(getattr(torch, a), getattr(torch, b))).removeprefix("torch.")
        for a in dtypes
        for b in dtypes
    }
    floats = [d for d in dtypes if getattr(torch, d).is_floating_point]
    finfo = {f"{f} {d}": getattr(torch.finfo(getattr(torch, d)), f) for f in figures for d in floats}
    return {"promoted": pairs, "finfo": finfo}
