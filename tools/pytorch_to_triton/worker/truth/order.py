"""Results whose order is declared free, put into one order, so that they can be compared place by place."""

import dataclasses
from collections.abc import Sequence

import torch

from ..calls.tensors import Outputs
from ..loading.target_file import TargetError
from ..wire.comparison import Unordered


class ComparisonUnusable(TargetError):
    """COMPARE names results that are not there, or that have no entries in common."""


def refuse_unusable(free: Sequence[Unordered], outputs: Outputs) -> None:
    """Raises ComparisonUnusable where a declared comparison does not fit what the reference returns."""
    for each in free:
        if absent := [path for path in each.results if path not in outputs]:
            raise ComparisonUnusable(
                f"{each} names {', '.join(absent)}, and the results are {', '.join(outputs)}"
            )
        shapes = [output.traits.get("shape") for output in (outputs[path] for path in each.results)]
        if tensors_of(each, outputs) is None:
            raise ComparisonUnusable(
                f"{each} needs as many entries in each result, and their shapes are "
                f"{', '.join(str(shape) for shape in shapes)}"
            )


def in_one_order(outputs: Outputs, free: Sequence[Unordered]) -> Outputs:
    """The outputs with what is free of order sorted; as they are where they are not of the declared form."""
    sorted_ = dict(outputs)
    for each in free:
        tensors = tensors_of(each, outputs)
        if tensors is None:
            continue
        order = order_of(tensors, each.dim % min(tensor.ndim for tensor in tensors))
        for path, tensor in zip(each.results, tensors, strict=True):
            sorted_[path] = dataclasses.replace(outputs[path], tensor=taken(tensor, order))
    return sorted_


def tensors_of(free: Unordered, outputs: Outputs) -> list[torch.Tensor] | None:
    """The results, alike up to the dim; None where there are no such ones."""
    found = [outputs[path].tensor for path in free.results if path in outputs]
    tensors = [tensor for tensor in found if tensor is not None]
    fewest = min((tensor.ndim for tensor in tensors), default=0)
    if len(tensors) < len(free.results) or not -fewest <= free.dim < fewest:
        return None
    alike = {tensor.shape[: free.dim % fewest + 1] for tensor in tensors}
    return tensors if len(alike) == 1 else None


def order_of(tensors: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """Where each entry is found: sorted by whole numbers, which are exact, then by the others."""
    exact_first = sorted(tensors, key=lambda tensor: tensor.is_floating_point() or tensor.is_complex())
    columns = [column for tensor in exact_first for column in entries(tensor, dim).unbind(-1)]
    order = torch.arange(tensors[0].shape[dim], device=tensors[0].device).expand(tensors[0].shape[: dim + 1])
    for column in reversed(columns):
        order = order.gather(-1, column.gather(-1, order).argsort(dim=-1, stable=True))
    return order


def entries(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """All numbers of each entry along one last dim."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    comparable = real.double() if real.is_floating_point() else real.long()
    return comparable.flatten(dim + 1) if real.ndim > dim + 1 else comparable.unsqueeze(-1)


def taken(tensor: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The entries in this order."""
    if tensor.is_floating_point() and tensor.itemsize == 1:  # torch gathers no float8 on a CPU
        return taken(tensor.view(torch.uint8), order).view(tensor.dtype)
    dim, inside = order.ndim - 1, tensor.shape[order.ndim :]
    index = order.reshape(*order.shape, *(1 for _ in inside)).expand(*order.shape, *inside)
    return tensor.gather(dim, index)


def leaves_in(free: Sequence[Unordered]) -> frozenset[str]:
    """The paths of all results whose order is free."""
    return frozenset(path for each in free for path in each.results)
