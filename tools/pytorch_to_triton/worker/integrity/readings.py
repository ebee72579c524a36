"""Where a tensor's elements leave torch, to be computed with by something else."""

import sys
from collections import Counter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .frames import author_of

NAMES = ("numpy", "__array__", "__dlpack__", "tolist")


class Readings(TorchFunctionMode):
    """Counts, as `Tensor.numpy` and the like, what the author's code hands to numpy, DLPack and lists."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts
        self._methods = {getattr(torch.Tensor, name): name for name in NAMES}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = self._methods.get(func)
        if name is not None and author_of(sys._getframe(1)) == "author":
            self._counts[f"Tensor.{name}"] += 1
        return func(*args, **(kwargs or {}))
