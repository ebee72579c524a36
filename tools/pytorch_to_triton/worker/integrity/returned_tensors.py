"""Whether what a candidate returns is what it looks like."""

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


def aliases(outputs: Iterable[tuple[str, Any]], inputs: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Each output whose storage is also that of an input or of an earlier output.

    `{"output": name, "of": name, "overlaps": whether the two tensors' own bytes, gaps included, meet}`.
    Leaves that are no strided tensors, and storages of no bytes, are passed over.
    """
    seen = [(name, value) for name, value in inputs if has_memory(value)]
    found = []
    for name, value in outputs:
        if not has_memory(value):
            continue
        for other, tensor in seen:
            if meet(storage_span(value), storage_span(tensor)):
                overlaps = meet(own_span(value), own_span(tensor))
                found.append({"output": name, "of": other, "overlaps": overlaps})
        seen.append((name, value))
    return found


Span = tuple[torch.device, int, int]


def has_memory(value: object) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_meta
        and value.untyped_storage().nbytes() > 0
    )


def storage_span(tensor: torch.Tensor) -> Span:
    """Device, first byte and end of the tensor's whole storage."""
    storage = tensor.untyped_storage()
    return tensor.device, storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def own_span(tensor: torch.Tensor) -> Span:
    """Device, first byte and end of what lies between the tensor's first and last element."""
    device, start, _ = storage_span(tensor)
    return device, start + int(tensor.storage_offset()) * tensor.element_size(), start + bytes_needed(tensor)


def meet(one: Span, other: Span) -> bool:
    return one[0] == other[0] and max(one[1], other[1]) < min(one[2], other[2])
