"""A target on fake tensors, which have shapes and dtypes but no memory: looked at, never called."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from ..calls.call_inputs import named_inputs
from ..dispatch import AroundOperators, arguments_by_name
from ..loading.target import Loaded, load
from ..loading.target_file import ModuleUnconstructed, TargetLoadFailed

REAL_BYTES = 2**30
"""Up to this many bytes real tensors may stand in for fake ones, just to look at a target."""
RANGE = "drawn_from"
"""The attribute of a fake tensor that torch.randint made: its half-open range."""


class OneFakeMode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """The only one of its tensors, also of those that a module copies as it is constructed."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "OneFakeMode":
        return self


def fake_mode() -> FakeTensorMode:
    """Real tensors may take part in what is computed inside: a file may make some as it is imported."""
    return OneFakeMode(allow_non_fake_inputs=True)


class FakeWhenEntered:
    """A fake mode that is made when it is first entered: its imports take seconds, functions need none."""

    @cached_property
    def mode(self) -> FakeTensorMode:
        return fake_mode()

    def __enter__(self) -> FakeTensorMode:
        return self.mode.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.mode.__exit__(*raised)


def load_fake(target: Mapping[str, Any], mode: AbstractContextManager[object]) -> Loaded:
    """The reference, its module on fake tensors, or on real ones where its constructor needs values, or
    those of its buffers matter.

    Raises a TargetError.
    """
    try:
        loaded = load(target, "reference", constructing=mode)
    except (TargetLoadFailed, ModuleUnconstructed):
        return load(target, "reference")
    if loaded.module is not None and values_matter(loaded.module):
        return load(target, "reference")
    return loaded


def values_matter(module: torch.nn.Module) -> bool:
    """Whether those of its buffers do: integers are places in other tensors, and of what no state_dict
    has, positions are made by a kernel itself."""
    state = module.state_dict(keep_vars=True)
    return any((b.dim() and is_integer(b)) or name not in state for name, b in module.named_buffers())


def example_inputs(loaded: Loaded, mode: AbstractContextManager[object]) -> dict[str, Any]:
    """get_inputs() by name, as `fake_inputs` has it."""
    return fake_inputs(lambda: named_inputs(loaded), mode)


def fake_inputs(make: Callable[[], dict[str, Any]], mode: AbstractContextManager[object]) -> dict[str, Any]:
    """What `make` returns: fake tensors, or real ones where it needs values or hides the range of integers.

    Raises what it raises.
    """
    try:
        with mode, AroundOperators(with_range):
            given = make()
    except Exception:
        return make()
    unknown = any(is_integer(t) and not hasattr(t, RANGE) for t in tensors_of(given))
    held = sum(tensor.nbytes for tensor in tensors_of(given))
    return make() if unknown and held <= REAL_BYTES else given


def fake_of(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """The tensor itself where it is fake, else a fake one like it."""
    return tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)


def tensors_of(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def is_integer(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def range_of(tensor: torch.Tensor) -> tuple[int | None, int | None]:
    """The half-open range of an integer tensor's values: that it was drawn from, else what it holds.

    None twice where neither is known.
    """
    if not is_integer(tensor) or tensor.numel() == 0:
        return None, None
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        low, high = getattr(tensor, RANGE, (None, None))
        return low, high
    return int(tensor.min()), int(tensor.max()) + 1


def with_range(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator's result; what torch.randint makes knows its range."""
    result = func(*args, **kwargs)
    if func.overloadpacket is torch.ops.aten.randint:
        given = arguments_by_name(func, args, kwargs)
        setattr(result, RANGE, (int(given.get("low", 0)), int(given["high"])))
    return result
