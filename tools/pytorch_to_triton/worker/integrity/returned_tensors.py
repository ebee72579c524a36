"""Whether what a candidate returns is what it looks like."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn


def plain(value: object) -> str | None:
    """Why a returned leaf is no plain, complete tensor; None where it is one, or no tensor at all."""
    kind = type(value)
    if not issubclass(kind, torch.Tensor):
        return None
    if kind is not torch.Tensor and kind is not nn.Parameter:
        return f"{kind.__name__} is a subclass of torch.Tensor"
    assert isinstance(value, torch.Tensor)
    hidden = sorted(
        name for name in object.__getattribute__(value, "__dict__") if hasattr(torch.Tensor, name)
    )
    if hidden:
        return f"its own attribute {hidden[0]} hides the one of torch.Tensor"
    if value.is_meta:
        return "it is on the meta device and has no values"
    if torch._is_functional_tensor(value) or value._is_zerotensor():
        return "it has no memory of its own"
    if value.is_nested or value.layout != torch.strided:
        return f"its layout is {'nested' if value.is_nested else value.layout}"
    held, needed = value.untyped_storage().nbytes(), bytes_needed(value)
    return f"its storage holds {held} bytes and it needs {needed}" if held < needed else None


def bytes_needed(tensor: torch.Tensor) -> int:
    """The bytes of storage up to the end of the tensor's last element."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.storage_offset() + last + 1) * tensor.element_size()


def aliases(outputs: Iterable[tuple[str, Any]], inputs: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Each output with each input, or earlier output, some of whose elements lie in the same bytes.

    Leaves that are no strided tensors, and storages of no bytes, are passed over.
    """
    candidates = [(name, value) for name, value in inputs if has_memory(value)]
    pairs = []
    for name, value in outputs:
        if has_memory(value):
            pairs += [(name, other) for other, tensor in candidates if overlap(value, tensor)]
            candidates.append((name, value))
    return pairs


def has_memory(value: object) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_meta
        and value.untyped_storage().nbytes() > 0
    )


def overlap(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an element of one has a byte in common with an element of the other.

    Tensors may lie in each other's gaps, like two columns of one buffer.
    """
    (start, end), (other_start, other_end) = span_of(tensor), span_of(other)
    if tensor.device != other.device or max(start, other_start) >= min(end, other_end):
        return False
    if start == other_start or (is_dense(tensor) and is_dense(other)):
        return True
    return bool(torch.isin(bytes_of(tensor), bytes_of(other)).any())


def span_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of the tensor's first byte and of the end of its last element."""
    start = tensor.untyped_storage().data_ptr()
    return start + int(tensor.storage_offset()) * tensor.element_size(), start + bytes_needed(tensor)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the tensor fills its span without gaps."""
    start, end = span_of(tensor)
    return math.prod(size for size, _ in distinct(tensor)) * tensor.element_size() == end - start


def distinct(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Size and stride of each dimension along which the tensor does not repeat itself."""
    return [(n, step) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step]


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """int64, flat, on the tensor's device: the address of each of its bytes."""
    itemsize = tensor.element_size()
    addresses = span_of(tensor)[0] + torch.arange(itemsize, device=tensor.device)
    for size, stride in distinct(tensor):
        steps = torch.arange(size, device=tensor.device) * stride * itemsize
        addresses = (addresses[:, None] + steps).flatten()
    return addresses
