"""What a call should give: the reference at the case's own dtypes, in float64, and nearby.

In float64 the reference takes the same branches as at the case's own dtypes (declared_tensor.py). `nearby`
shows how much the problem itself amplifies the rounding errors that no kernel can avoid.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from ..calls.exchange import CallInputs, Exchange, all_outputs, mapped, written_to
from ..calls.gradients import with_gradients
from ..calls.tensors import OutputLeaf, Outputs, leaves, output_of
from ..integrity.returned_tensors import aliases
from ..loading.target import Loaded, ModuleCall
from ..runtime import called_with_gpu
from .blocks import pieces
from .declared_tensor import WIDE, DeclaredDtypes, NotFollowed, declared, held
from .rounding import Rounding
from .steps import Steps, same_steps

HUGE_BYTES = 2**32
"""Of inputs and outputs: above, no truth is computed in float64."""


class InFloat64(TorchFunctionMode):
    """Inside, what a reference computes in float32 "to be precise" is computed in float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            return torch.Tensor.double(*args, **(kwargs or {}))
        return func(*(widened(a) for a in args), **{k: widened(v) for k, v in (kwargs or {}).items()})


def widened(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


@dataclasses.dataclass(frozen=True)
class Truth:
    """What one call should give, each by output path."""

    pytorch: Outputs
    """The reference at the case's own dtypes."""
    precise: Outputs
    """The reference in float64, where it runs in it."""
    nearby: Outputs
    """The same for inputs, and with arithmetic, moved by one rounding error."""
    precision: str
    """What `precise` was computed in: `float64`, `float32`, `own`."""
    updated: tuple[str, ...] = ()
    """State that the reference, in training, writes to: a candidate may, and need not."""


@dataclasses.dataclass(frozen=True)
class ReferenceRun:
    """What the reference did at a case's own dtypes."""

    outputs: Outputs
    written: list[str]
    """The arguments that it wrote to."""
    aliases: list[tuple[str, str]]
    """Outputs, each with the input or output whose memory it shares."""
    updated: tuple[str, ...]
    """The state that a module in training wrote to: no output."""


@dataclasses.dataclass(frozen=True)
class Oracle:
    """The reference, and how its runs are set up."""

    reference: Loaded
    exchange: Exchange
    device: str
    backward: bool
    """Whether gradients are outputs too."""

    def truth(self, case_id: str, seed: int) -> Truth:
        """Run the reference for a case that it can do. Whatever the user's code raises is passed on.

        A reference that cannot run on DeclaredTensors is run on plain float64 ones, then on
        float32 ones, where it takes the same branches on these; else at its own dtypes. So is a huge one,
        in their full precision: float64 takes several times the memory.
        """
        run = self.run_as_it_is(case_id, seed)
        if self.holds(case_id, run) > HUGE_BYTES:
            with in_full_precision():
                found = self.precisely(case_id, "own", run.written, seed)
            return Truth(run.outputs, *found, "own", run.updated)
        with contextlib.suppress(Exception, NotFollowed):
            return Truth(run.outputs, *self.followed(case_id, run, seed), "float64", run.updated)
        steps = self.steps(case_id, "own", seed)
        for precision in ("float64", "float32"):
            with contextlib.suppress(Exception):
                if same_steps(self.steps(case_id, precision, seed), steps):
                    found = self.precisely(case_id, precision, run.written, seed)
                    return Truth(run.outputs, *found, precision, run.updated)
        return Truth(run.outputs, *self.precisely(case_id, "own", run.written, seed), "own", run.updated)

    def holds(self, case_id: str, run: ReferenceRun) -> int:
        """The bytes of the case's inputs and of what the reference makes of them."""
        call = self.exchange.call(case_id, self.device)
        made = sum(output.tensor.nbytes for output in run.outputs.values() if output.tensor is not None)
        return made + sum(tensor.nbytes for tensor in call.tensors().values())

    def run_as_it_is(self, case_id: str, seed: int) -> ReferenceRun:
        """Run at the case's own dtypes."""
        call = self.exchange.call(case_id, self.device)
        returned = self.run(self.reference, call, seed)
        changed = written_to(call, self.exchange.call(case_id, self.device))
        updated = tuple(name for name in changed if name in call.state) if self.in_training else ()
        written = [name for name in changed if name not in updated]
        found = aliases(returned.items(), call.tensors().items())
        shared = [(alias["output"], alias["of"]) for alias in found]
        return ReferenceRun(kept(all_outputs(returned, call, written)), written, shared, updated)

    @property
    def in_training(self) -> bool:
        """Whether the reference is a module that may update its own state."""
        return self.reference.module is not None and self.reference.module.training

    def followed(self, case_id: str, own: ReferenceRun, seed: int) -> tuple[Outputs, Outputs]:
        """In float64 and nearby, on tensors that report the case's own dtypes.

        Raises NotFollowed where the outputs are not those of `own`.
        """
        reference = with_own_module(self.reference)
        found = []
        for near in (False, True):
            original = self.exchange.call(case_id, self.device)
            wide = mapped(original, lambda name, tensor: tensor.to(WIDE.get(tensor.dtype, tensor.dtype)))
            rounding = Rounding(arithmetic_eps(original), seed) if near else contextlib.nullcontext()
            call = declared(original, moved(wide, original, seed) if near else wide)
            # The kernels of fused attention are for short dtypes.
            with rounding, DeclaredDtypes(call), sdpa_kernel(SDPBackend.MATH):
                returned = self.run(reference, call, seed)
            outputs = all_outputs(returned, call, own.written)
            if not near and reported_traits(outputs) != all_traits(own.outputs):
                raise NotFollowed("outputs of other dtypes or shapes")
            found.append(kept({path: held(leaf) for path, leaf in outputs.items()}))
        return found[0], comparable(found[1], found[0])

    def precisely(
        self, case_id: str, precision: str, written: list[str], seed: int
    ) -> tuple[Outputs, Outputs]:
        """In `precision` and nearby, on plain tensors."""
        reference = in_float64(self.reference) if precision == "float64" else self.reference
        found = []
        for near in (False, True):
            original = self.exchange.call(case_id, self.device)
            call = precise(original, precision)
            if near:
                call = moved(call, original, seed)
            rounding = Rounding(arithmetic_eps(original), seed) if near else contextlib.nullcontext()
            with in_precision(precision), rounding:
                returned = self.run(reference, call, seed)
            found.append(kept(all_outputs(returned, call, written)))
        return found[0], comparable(found[1], found[0])

    def steps(self, case_id: str, precision: str, seed: int) -> list[Any]:
        """What the reference asks torch for in `precision`, on plain tensors."""
        reference = in_float64(self.reference) if precision == "float64" else self.reference
        call = precise(self.exchange.call(case_id, self.device), precision)
        steps = Steps()
        with in_precision(precision), steps:
            self.run(reference, call, seed)
        return steps.taken

    def run(self, reference: Loaded, call: CallInputs, seed: int) -> dict[str, Any]:
        """The leaves of the reference's result by path.

        One that was written for a GPU finds one, also under the interpreter.
        """
        return called_with_gpu(lambda: self.call(reference, call, seed))

    def call(self, reference: Loaded, call: CallInputs, seed: int) -> dict[str, Any]:
        # The reference's own random numbers (dropout) are the same in each of its runs.
        torch.manual_seed(seed)
        if self.backward:
            return with_gradients(lambda given: reference(given.arguments, given.state), call)
        with torch.no_grad():
            return dict(leaves(reference(call.arguments, call.state)))


@contextlib.contextmanager
def in_full_precision() -> Iterator[None]:
    """Inside, float32 products are float32: without it, convolutions on GPUs may round to TF32."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def kept(outputs: dict[str, Any]) -> Outputs:
    """The outputs as they are now."""
    return {path: output_of(leaf) for path, leaf in outputs.items()}


def comparable(nearby: Outputs, precise: Outputs) -> Outputs:
    """`nearby`, but the precise output where its traits differ: a shape may depend on values."""
    return {
        path: nearby[path] if path in nearby and traits_of(nearby[path]) == traits_of(output) else output
        for path, output in precise.items()
    }


def traits_of(output: OutputLeaf) -> tuple[Any, ...]:
    """Type, dtype and shape; None for those that it lacks."""
    return tuple(output.traits.get(trait) for trait in ("type", "dtype", "shape"))


def all_traits(outputs: Outputs) -> dict[str, tuple[Any, ...]]:
    return {path: traits_of(output) for path, output in outputs.items()}


def reported_traits(outputs: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """By path, the `traits_of` each output at the case's own dtypes."""
    return {
        path: ("Tensor", str(leaf.dtype).removeprefix("torch."), list(leaf.shape))
        if isinstance(leaf, torch.Tensor)
        else traits_of(output_of(leaf))
        for path, leaf in outputs.items()
    }


def with_own_module(reference: Loaded) -> Loaded:
    """The same reference with a copy of its module, which may keep values between calls."""
    if reference.module is None:
        return reference
    module = copy.deepcopy(reference.module)
    return dataclasses.replace(reference, module=module, call=ModuleCall(module))


def in_float64(reference: Loaded) -> Loaded:
    """The same reference; of a module a copy whose own constants are float64 too."""
    if reference.module is None:
        return reference
    module = copy.deepcopy(reference.module).double()
    return dataclasses.replace(reference, module=module, call=ModuleCall(module))


@contextlib.contextmanager
def in_precision(precision: str) -> Iterator[None]:
    """In float64, new tensors are float64 by default, and float32 means float64."""
    if precision != "float64":
        yield
        return
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with InFloat64():
            yield
    finally:
        torch.set_default_dtype(default)


def precise(call: CallInputs, precision: str) -> CallInputs:
    """The call with its floating tensors in `precision`; `own` leaves them as they are."""
    if precision == "own":
        return call
    dtype: torch.dtype = getattr(torch, precision)
    return mapped(call, lambda name, tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def moved(call: CallInputs, original: CallInputs, seed: int) -> CallInputs:
    """The call with every floating element moved by up to one rounding error of the arithmetic.

    That is float32's where the original tensor is float32 or shorter: good kernels compute in it.
    """
    torch.manual_seed(seed)
    dtypes = {name: tensor.dtype for name, tensor in original.tensors().items()}

    def move(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        arithmetic = torch.float64 if dtypes[name] == torch.float64 else torch.float32
        eps = torch.finfo(arithmetic).eps
        parts = [step(piece, eps) for piece in pieces(tensor)]
        return parts[0] if len(parts) == 1 else torch.cat(parts).view(tensor.shape)

    def step(tensor: torch.Tensor, eps: float) -> torch.Tensor:
        steps = 2 * torch.rand(tensor.shape, device=tensor.device) - 1
        return tensor * (1 + eps * steps.double()).to(tensor.dtype)

    return mapped(call, move)


def arithmetic_eps(call: CallInputs) -> float:
    """One rounding error of the arithmetic that good kernels of these inputs compute in."""
    floating = [t.dtype for t in call.tensors().values() if t.is_floating_point()]
    only_float64 = bool(floating) and all(dtype == torch.float64 for dtype in floating)
    return torch.finfo(torch.float64 if only_float64 else torch.float32).eps
