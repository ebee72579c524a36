"""The least size of each dim at which a target runs, found by trying it on fake tensors."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..loading.target import Loaded
from ..wire import tracing

NEXT = 2
"""How many sizes after the least one are tried too."""
STEPS = 64
"""How far away the next size may be that meets all requirements."""
Point = dict[str, int]


class ResultEmpty(Exception):
    """An operator made a tensor without elements from tensors that have some."""


class NothingEmpty(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, such results are refused: on fake tensors, operators may miss that their input is too small."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [tensor.numel() for tensor in tensors_in((args, kwargs))]
        if given and all(given) and not all(tensor.numel() for tensor in tensors_in(result)):
            raise ResultEmpty(str(func))
        return result


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def checked(given: Mapping[str, torch.Tensor]) -> AbstractContextManager[object]:
    """NothingEmpty, unless the inputs are empty themselves."""
    empty = any(tensor.numel() == 0 for tensor in given.values())
    return nullcontext() if empty else NothingEmpty()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Probe:
    """A target that can be run on fake tensors of any sizes."""

    loaded: Loaded
    tensors: Mapping[str, torch.Tensor]
    state: Mapping[str, torch.Tensor]
    constants: Mapping[str, Any]
    mode: FakeTensorMode
    known: dict[tuple[tuple[int, ...], ...], bool] = field(default_factory=dict)
    """Of shapes that were tried."""

    def runs(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether the target raises nothing on tensors of these shapes."""
        key = tuple(shapes[name] for name in self.tensors)
        if key not in self.known:
            self.known[key] = self._tried(shapes)
        return self.known[key]

    def _tried(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        try:
            with self.mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
                tensors = {name: tensor.new_empty(shapes[name]) for name, tensor in self.tensors.items()}
                given = {**tensors, **self.constants}
                order = [name for name in self.loaded.parameters if name in given]
                arguments = {name: given[name] for name in (*order, *given)}
                with checked(tensors):
                    self.loaded(arguments, dict(self.state))
        except Exception:
            return False
        return True


class LeastSizes:
    """The search over the sizes of one problem."""

    def __init__(self, probe: Probe, sizes: tracing.FreeSizes, conditions: Iterable[str]) -> None:
        self.probe = probe
        self.declared = sizes.dims
        self.shapes = sizes.shapes
        self.conditions = [compile(text, "<requirement>", "eval") for text in conditions]

    def found(self) -> Point:
        """By dim, each with the others as declared and all together; left out: dims that cannot be small."""
        if not (self.runs(self.declared) and self.runs(self.apart())):
            return {}
        found = {name: least for name in self.declared if (least := self.least(name)) is not None}
        return self.together(found) if len(found) == len(self.declared) else found

    def apart(self) -> Point:
        """Sizes near the declared ones, no two alike where requirements allow it."""
        point: Point = {}
        for name, size in self.declared.items():
            others = (
                n for n in range(size, size + STEPS) if n not in point.values() and self.allows(name, n)
            )
            point[name] = next(others, size)
        return point if self.meets(point) else self.declared

    def least(self, name: str) -> int | None:
        """The least size of one dim; None where no size up to half of the declared one will do."""

        def works(size: int) -> bool:
            return self.runs({**self.declared, name: size})

        low, high = 0, self.allowed(name, 1)
        while high is not None and not works(high):
            low, high = high, self.allowed(name, 2 * high)
        if high is None:
            return None
        sizes = [size for size in range(low + 1, high + 1) if self.allows(name, size)]
        least = sizes[bisect_left(sizes, True, key=works)]
        if not all(map(works, self.next_sizes(name, least))):
            return None
        return 0 if least == 1 and self.allows(name, 0) and works(0) else least

    def next_sizes(self, name: str, least: int) -> Iterator[int]:
        """The sizes after the least one, and the one after the declared one."""
        size: int | None = least
        for _ in range(NEXT):
            size = size and self.allowed(name, size + 1, 2 * self.declared[name])
            yield from () if size is None else (size,)
        beyond = self.allowed(name, self.declared[name] + 1, 2 * self.declared[name])
        yield from () if beyond is None else (beyond,)

    def together(self, found: Point) -> Point:
        """The least sizes raised until the target runs where all dims have theirs."""
        point = {name: max(size, 1) for name, size in found.items()}
        while self.meets(point) and not self.runs(point):
            raised = [{**point, name: 2 * size} for name, size in point.items()]
            point = next(filter(self.runs, raised), {name: 2 * size for name, size in point.items()})
            if any(size > self.declared[name] for name, size in point.items()):
                return {}
        return {name: point[name] if point[name] > 1 else least for name, least in found.items()}

    def allowed(self, name: str, size: int, most: int | None = None) -> int | None:
        """The next size from this one on that meets all requirements, up to half of the declared one."""
        last = self.declared[name] // 2 if most is None else most
        sizes = range(size, min(size + STEPS, last + 1))
        return next((n for n in sizes if self.allows(name, n)), None)

    def allows(self, name: str, size: int) -> bool:
        return self.meets({**self.declared, name: size})

    def meets(self, point: Point) -> bool:
        """Whether the point meets all requirements."""
        try:
            return all(eval(condition, {"math": math}, dict(point)) for condition in self.conditions)
        except ArithmeticError:
            return False

    def runs(self, point: Point) -> bool:
        """Whether the target runs at these sizes."""
        shapes = {
            name: tuple(int(size) if size.isdigit() else point[size] for size in shape)
            for name, shape in self.shapes.items()
        }
        return self.probe.runs(shapes)
