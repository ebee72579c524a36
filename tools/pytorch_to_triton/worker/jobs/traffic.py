"""Job `traffic`: what a call of a kernel file launches, and how many bytes that moves.

The call is made on tensors without memory, and nothing is launched. Each launch moves each of its tensors
once, read or written; what a kernel reads again is taken to come from the cache.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from .. import wire
from ..dispatch import AroundOperators
from ..job_report import JobReport
from ..loading.target import load
from ..passed_bytes import bytes_again, bytes_of, storage, tensors_in
from ..replacement import replaced
from ..untimed_tuning import UntimedTuning
from ..wire.packing import packing_of


def work(
    report: JobReport,
    candidate: wire.Target,
    arguments: list[wire.Json],
    needed: Mapping[str, int],
    *,
    backward: bool,
) -> wire.TrafficAnswer:
    """One call's launches, with those of its backward pass where that is wanted.

    `needed` says how many bytes of an argument a launch reads at most: of a table, what is looked up.
    """
    report.during("load")
    UntimedTuning(trials=0)
    loaded = load(candidate, "candidate")
    given = {argument["name"]: without_memory(argument) for argument in arguments}
    variables = [
        tensor.requires_grad_(backward) for tensor in tensors_in(given) if tensor.is_floating_point()
    ]
    most = {storage(given[name]): count for name, count in needed.items()}
    counter = TrafficCounter(most)
    report.during("call")
    with counter.in_place_of_launches(), torch.set_grad_enabled(backward):
        with AroundOperators(counter.call):
            results = loaded(given, {})
        if outputs := [output for output in tensors_in(results) if output.requires_grad]:
            weights = [torch.empty_like(output) for output in outputs]
            with AroundOperators(counter.call):
                torch.autograd.grad(outputs, variables, weights, allow_unused=True)
    return wire.TrafficAnswer(launches=tuple(counter.launches), bytes_moved=counter.bytes_moved)


def without_memory(argument: wire.Json) -> Any:
    """The argument on the meta device; a constant as it is."""
    if argument["form"] == "packed":
        return packing_of(argument["packing"])
    if argument["form"] == "constant":
        return argument["value"]
    return torch.empty(argument["shape"], dtype=getattr(torch, argument["dtype"]), device="meta")


class TrafficCounter:
    """Counts what Triton and PyTorch launch."""

    def __init__(self, most: Mapping[int, int]) -> None:
        self.most = most
        """Bytes read of a storage at most."""
        self.launches: list[str] = []
        """Names of kernels and of PyTorch's operators, in order."""
        self.bytes_moved = 0

    @contextmanager
    def in_place_of_launches(self) -> Iterator[None]:
        """Inside, launches are counted, of compiled kernels and of interpreted ones."""

        def run(kernel: Any, *args: Any, **kwargs: Any) -> None:
            tensors = tensors_in([args, kwargs])
            self.count(kernel.fn.__name__, tensors)
            self.bytes_moved += bytes_again(tensors)

        with replaced(JITFunction, "run", run), replaced(InterpretedFunction, "run", run):
            yield

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator of PyTorch's."""
        result = func(*args, **kwargs)
        read, written = tensors_in([args, kwargs]), tensors_in(result)
        known = {storage(tensor) for tensor in read}
        is_view = not func._schema.is_mutable and all(storage(tensor) in known for tensor in written)
        if not (is_view or func.overloadpacket.__name__.startswith(("empty", "new_empty"))):
            self.count(str(func.overloadpacket), [*read, *written])
        return result

    def count(self, name: str, tensors: Iterable[torch.Tensor]) -> None:
        """A launch that moves these tensors."""
        self.launches.append(name)
        held = {storage(tensor): bytes_of(tensor) for tensor in tensors}
        self.bytes_moved += sum(min(count, self.most.get(at, count)) for at, count in held.items())
