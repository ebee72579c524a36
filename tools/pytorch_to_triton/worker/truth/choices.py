"""What PyTorch leaves free: which of equal values top-k, sorting and medians take, and the order of some.

Where a candidate's results differ, the reference is run again with the candidate's own choices where PyTorch
could have made them. So what follows from a choice is compared too: a gathered weight, a sum, a gradient. A
choice that no result shows, such as that of groups of which members are chosen, is the first of equals there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from typing import Any

import torch

from ..calls.tensors import OutputLeaf, Outputs
from ..dispatch import DispatchMode, arguments_by_name
from .budget import SLACK, for_dtype
from .declared_tensor import held
from .error import typical_size

Choices = Mapping[int, torch.Tensor]
"""Indices by the number of the operator that chooses, counted in the order of the calls."""
NONE: frozenset[int] = frozenset()
ORDERING = frozenset({"topk", "sort"})
SELECTING = frozenset({"kthvalue", "median", "nanmedian"})
"""Those that give one element of each row, with its index where they are told a dim."""


class Choosing(DispatchMode):
    """Inside, operators that choose take `instead` where that is as good a choice."""

    def __init__(self, instead: Choices, *, first: bool = False, unordered: frozenset[int] = NONE) -> None:
        """`first`: the others take the first of equals. `unordered`: the operators whose order is free."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.instead, self.first, self.unordered = instead, first, unordered
        self.made: list[torch.Tensor] = []
        """The indices that were chosen, in the order of the calls."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        selects = func.overloadpacket.__name__ in SELECTING
        if not (selects or func.overloadpacket.__name__ in ORDERING) or isinstance(result, torch.Tensor):
            return result
        given = arguments_by_name(func, args, kwargs or {})
        if given.get("stable") or given["self"].ndim == 0:
            return result
        dim, lacks_dim = given["dim"], selects and not given["keepdim"]
        found = tuple(part.unsqueeze(dim) for part in result) if lacks_dim else result
        is_ordered = given.get("sorted", True) and len(self.made) not in self.unordered
        choice = Choice(given["self"], dim, is_ordered, *found)
        instead = self.instead.get(len(self.made))
        if instead is None and self.first:
            instead = choice.first_with_value() if selects else choice.first_of_equals(given)
        values, indices = found if instead is None else choice.with_indices(instead)
        self.made.append(indices)
        return (values.squeeze(dim), indices.squeeze(dim)) if lacks_dim else (values, indices)


@dataclass(frozen=True)
class Choice:
    """What one operator chose of its operand along a dim."""

    operand: torch.Tensor
    dim: int
    is_ordered: bool
    """Whether the values are sorted; False: any order is as good."""
    values: torch.Tensor
    indices: torch.Tensor

    def with_indices(self, instead: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values and indices, those of `instead` in each row where they are as good: of distinct elements
        with the same values."""
        instead = instead.to(self.indices)
        inside = instead.clamp(0, self.operand.shape[self.dim] - 1)
        values = self.operand.gather(self.dim, inside)
        distinct = inside.sort(self.dim).values.diff(dim=self.dim) != 0
        good = (
            self.whole_rows(inside == instead)
            & self.whole_rows(distinct)
            & self.whole_rows(self.are_alike(values))
        )
        return torch.where(good, values, self.values), torch.where(good, inside, self.indices)

    def first_with_value(self) -> torch.Tensor:
        """The index of the first element that is as the one that was chosen in each row."""
        value, operand = self.values, self.operand
        return ((operand == value) | (operand.isnan() & value.isnan())).long().argmax(self.dim, keepdim=True)

    def first_of_equals(self, given: Mapping[str, Any]) -> torch.Tensor:
        """The indices with the first of equal values in each row, of a call with these arguments."""
        # Top-k begins with the largest unless it is told otherwise, sorting with the smallest.
        descending = given["largest"] if "largest" in given else given["descending"]
        indices = self.operand.sort(dim=self.dim, descending=descending, stable=True).indices
        return indices.narrow(self.dim, 0, self.indices.shape[self.dim])

    def are_alike(self, values: torch.Tensor) -> torch.Tensor:
        """Where the values are those that were chosen, up to the rounding of their dtype; bool."""
        left, right = (held(side).detach().double() for side in (values, self.values))
        if not self.is_ordered:
            left, right = (side.sort(self.dim).values for side in (left, right))
        apart = torch.zeros_like(right)
        if self.values.dtype.is_floating_point:
            size = typical_size(right.transpose(self.dim, -1)).transpose(self.dim, -1)
            apart = for_dtype(SLACK, self.values.dtype) * torch.finfo(self.values.dtype).eps * size
        alike: torch.Tensor = (
            (left == right) | (left.isnan() & right.isnan()) | ((left - right).abs() <= apart)
        )
        return alike

    def whole_rows(self, condition: torch.Tensor) -> torch.Tensor:
        """In which rows along the dim it holds everywhere."""
        return torch.all(condition, dim=self.dim, keepdim=True)


@dataclass(frozen=True)
class Shown:
    """Where an operator's indices show among the outputs: as they are in `last`, or divided, as those into a
    flattened tensor are: quotients in `first`, remainders in `last`."""

    last: str
    first: str | None = None
    divisor: int = 0

    @property
    def paths(self) -> frozenset[str]:
        return frozenset({self.last} if self.first is None else {self.first, self.last})

    def indices_in(self, outputs: Outputs) -> torch.Tensor | None:
        """Flat, int64; None where the outputs are no whole numbers of one length."""
        last = whole_numbers(outputs.get(self.last))
        if self.first is None or last is None:
            return last
        first = whole_numbers(outputs.get(self.first))
        if first is None or first.shape != last.shape:
            return None
        return self.divisor * first + last


def shown_in(outputs: Outputs, made: Sequence[torch.Tensor]) -> dict[int, Shown]:
    """Where the outputs show each operator's indices, in whatever integer dtype, by its number."""
    numbers = {path: whole_numbers(output) for path, output in outputs.items()}
    flat = {path: values for path, values in numbers.items() if values is not None}
    every = ((number, place_of(indices.flatten(), flat)) for number, indices in enumerate(made))
    return {number: shown for number, shown in every if shown is not None}


def place_of(indices: torch.Tensor, outputs: Mapping[str, torch.Tensor]) -> Shown | None:
    """Where flat outputs show these indices; None where they do not."""
    whole = (Shown(path) for path, values in outputs.items() if torch.equal(values, indices))
    of_size = {path: values for path, values in outputs.items() if values.shape == indices.shape}
    divided = (
        Shown(last, first, divisor)
        for first, last in permutations(of_size, 2)
        if (divisor := divisor_of(indices, of_size[first], of_size[last]))
    )
    return next(chain(whole, divided), None)


def divisor_of(indices: torch.Tensor, quotients: torch.Tensor, remainders: torch.Tensor) -> int | None:
    """What the indices were divided by; None where these are not their quotients and remainders."""
    there = quotients.nonzero()
    if not there.numel():
        return None
    divisor = int((indices - remainders)[there[0]] // quotients[there[0]])
    is_remainder = bool(((remainders >= 0) & (remainders < divisor)).all())
    return divisor if is_remainder and torch.equal(divisor * quotients + remainders, indices) else None


def choices_of(candidate: Outputs, made: Sequence[torch.Tensor], shown: Mapping[int, Shown]) -> Choices:
    """The candidate's indices for each operator whose own show among the outputs."""
    chosen = {number: place.indices_in(candidate) for number, place in shown.items()}
    return {
        number: indices.reshape(made[number].shape)
        for number, indices in chosen.items()
        if indices is not None and indices.numel() == made[number].numel()
    }


def whole_numbers(output: OutputLeaf | None) -> torch.Tensor | None:
    """The values of an integer output, flat and as int64; None of any other."""
    if output is None or output.tensor is None or not is_integer(output.tensor.dtype):
        return None
    return output.tensor.long().flatten()


def is_integer(dtype: torch.dtype) -> bool:
    return not (dtype == torch.bool or dtype.is_floating_point or dtype.is_complex)
