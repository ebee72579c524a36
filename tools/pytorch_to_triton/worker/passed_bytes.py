"""The bytes of tensors that a call passes on."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors among the leaves, those that tensor descriptors describe included."""
    described = (getattr(leaf, "base", leaf) for leaf in tree_leaves(value))
    return [leaf for leaf in described if isinstance(leaf, torch.Tensor)]


def storage(tensor: torch.Tensor) -> int:
    """What all views of a tensor share."""
    return int(tensor.untyped_storage()._cdata)


def bytes_of(tensor: torch.Tensor) -> int:
    """What the tensor's elements hold, one that is seen again and again counted once."""
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return torch.Size(sizes).numel() * tensor.element_size()


def bytes_again(tensors: list[torch.Tensor]) -> int:
    """Of the tensors that a launch is given again, which it writes where it read them."""
    return sum(bytes_of(t) for n, t in enumerate(tensors) if any(t is other for other in tensors[:n]))


def launch_bytes(value: Any) -> int:
    """What a launch moves of the tensors among its arguments: each once, one that it is given again twice."""
    tensors = tensors_in(value)
    held = {storage(tensor): bytes_of(tensor) for tensor in tensors}
    return sum(held.values()) + bytes_again(tensors)
