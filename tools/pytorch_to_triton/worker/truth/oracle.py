"""What a call should give: the reference at the case's own dtypes, in float64, and nearby.

In float64 the reference takes the same branches as at the case's own dtypes (declared_tensor.py). `nearby`
shows how much the problem itself amplifies the rounding errors that no kernel can avoid.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
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
from .budget import NEIGHBORS, SAMPLES
from .declared_tensor import WIDE, DeclaredDtypes, NotFollowed, declared, held
from .nearby import comparable, farthest, good_eps, moved, own_eps, rounding, traits_of
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
    sample: Callable[[int], Outputs]
    """Another `nearby`, by its number from 2 on: what a single one moves little by chance, others move."""
    rounding: Callable[[int], Outputs]
    """`precise` with PyTorch's error at neighboring inputs, by their number from 1 on: each element is
    moved by up to one rounding error of its own dtype."""
    precision: str
    """What `precise` was computed in: `float64`, `float32`, `own`."""
    updated: tuple[str, ...] = ()
    """State that the reference, in training, writes to: a candidate may, and need not."""
    elsewhere: Callable[[], Outputs] = dict
    """The reference at the case's own dtypes by PyTorch's kernels for CPUs, where these are others."""
    rounded: Outputs = dataclasses.field(default_factory=dict)
    """`precise` with PyTorch's largest error at several neighboring inputs, where that was asked for."""

    def with_more_samples(self, numbers: Iterable[int] = SAMPLES) -> "Truth":
        """The same, with the farthest of these samples too, element by element, as what is nearby.

        Raises what the reference raises.
        """
        samples = map(self.sample, numbers)
        return dataclasses.replace(self, nearby=farthest(self.precise, self.nearby, samples))

    def with_more_roundings(self) -> "Truth":
        """The same, with what PyTorch errs at neighboring inputs as `rounded`, at most, element by element.

        A row whose elements are all one sum times something bears a single error: PyTorch's may be small by
        chance.
        """
        samples = map(self.rounding, NEIGHBORS)
        return dataclasses.replace(self, rounded=farthest(self.precise, self.precise, samples))


@dataclasses.dataclass(frozen=True)
class ReferenceRun:
    """What the reference did at a case's own dtypes."""

    outputs: Outputs
    written: list[str]
    """The arguments that it wrote to."""
    aliases: list[tuple[str, str]]
    """Outputs, each with an input or output whose memory it shares."""
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
    neighbor: int = 0
    """The number of the neighboring inputs that it runs for; 0: the case's own."""

    def truth(self, case_id: str, seed: int) -> Truth:
        """Run the reference for a case that it can do. Whatever the user's code raises is passed on.

        A reference that cannot run on DeclaredTensors is run on plain float64 ones, then on
        float32 ones, where it takes the same branches on these; else at its own dtypes. So is a huge one,
        in their full precision: float64 takes several times the memory, and so do neighboring inputs.
        """
        run = self.run_as_it_is(case_id, seed)
        if self.holds(case_id, run) > HUGE_BYTES:
            truth = self.truth_by(in_full_precision()(precisely("own")), "own", case_id, run, seed)
            return dataclasses.replace(truth, rounding=lambda number: truth.precise)
        with contextlib.suppress(Exception, NotFollowed):
            return self.truth_by(Oracle.followed, "float64", case_id, run, seed)
        steps = self.steps(case_id, "own", seed)
        for precision in ("float64", "float32"):
            with contextlib.suppress(Exception):
                if same_steps(self.steps(case_id, precision, seed), steps):
                    return self.truth_by(precisely(precision), precision, case_id, run, seed)
        return self.truth_by(precisely("own"), "own", case_id, run, seed)

    def truth_by(self, way: "Way", precision: str, case_id: str, run: ReferenceRun, seed: int) -> Truth:
        """What the reference gives one `way`: sample 0 is precise, others are nearby."""
        precise = way(self, case_id, run, seed, 0)

        def sample(number: int) -> Outputs:
            return comparable(way(self, case_id, run, seed, number), precise)

        def rounding(number: int) -> Outputs:
            there = dataclasses.replace(self, neighbor=number)
            # At other inputs the reference may raise, or take other branches.
            with contextlib.suppress(Exception, NotFollowed):
                other = there.run_as_it_is(case_id, seed)
                exact = way(there, case_id, other, seed, 0)
                return {
                    path: with_error(output, other.outputs.get(path), exact.get(path))
                    for path, output in precise.items()
                }
            return precise

        def elsewhere() -> Outputs:
            return self.on_cpu(case_id, run, seed)

        return Truth(run.outputs, precise, sample(1), sample, rounding, precision, run.updated, elsewhere)

    def inputs(self, case_id: str, seed: int) -> CallInputs:
        """The case's call, or one with neighboring inputs: each time another copy."""
        call = self.exchange.call(case_id, self.device)
        return moved(call, own_eps(call), seed, self.neighbor)

    def holds(self, case_id: str, run: ReferenceRun) -> int:
        """The bytes of the case's inputs and of what the reference makes of them."""
        call = self.exchange.call(case_id, self.device)
        made = sum(output.tensor.nbytes for output in run.outputs.values() if output.tensor is not None)
        return made + sum(tensor.nbytes for tensor in call.tensors().values())

    def run_as_it_is(self, case_id: str, seed: int) -> ReferenceRun:
        """Run at the case's own dtypes."""
        call = self.inputs(case_id, seed)
        returned = self.run(self.reference, call, seed)
        changed = written_to(call, self.inputs(case_id, seed))
        updated = tuple(name for name in changed if name in call.state) if self.in_training else ()
        written = [name for name in changed if name not in updated]
        shared = aliases(returned.items(), call.tensors().items())
        return ReferenceRun(kept(all_outputs(returned, call, written)), written, shared, updated)

    def on_cpu(self, case_id: str, own: ReferenceRun, seed: int) -> Outputs:
        """What PyTorch's kernels for CPUs return; nothing on a CPU, or where it does not run there."""
        if self.device == "cpu":
            return {}
        with contextlib.suppress(Exception):
            reference = with_own_module(self.reference)
            if reference.module is not None:
                reference.module.cpu()
            call = brought_to_cpu(self.inputs(case_id, seed))
            return kept(all_outputs(self.call(reference, call, seed), call, own.written))
        return {}

    @property
    def in_training(self) -> bool:
        """Whether the reference is a module that may update its own state."""
        return self.reference.module is not None and self.reference.module.training

    def followed(self, case_id: str, own: ReferenceRun, seed: int, sample: int) -> Outputs:
        """In float64, or nearby for a `sample` from 1 on, on tensors that report the case's own dtypes.

        Raises NotFollowed where the outputs are not those of `own`.
        """
        reference = with_own_module(self.reference)
        original = self.inputs(case_id, seed)
        wide = mapped(original, lambda name, tensor: tensor.to(WIDE.get(tensor.dtype, tensor.dtype)))
        call = declared(original, moved(wide, good_eps(original), seed, sample))
        # The kernels of fused attention are for short dtypes.
        with rounding(original, seed, sample), DeclaredDtypes(call), sdpa_kernel(SDPBackend.MATH):
            returned = self.run(reference, call, seed)
        outputs = all_outputs(returned, call, own.written)
        if not sample and reported_traits(outputs) != all_traits(own.outputs):
            raise NotFollowed("outputs of other dtypes or shapes")
        return kept({path: held(leaf) for path, leaf in outputs.items()})

    def steps(self, case_id: str, precision: str, seed: int) -> list[Any]:
        """What the reference asks torch for in `precision`, on plain tensors."""
        reference = in_float64(self.reference) if precision == "float64" else self.reference
        call = precise(self.inputs(case_id, seed), precision)
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


Way = Callable[[Oracle, str, ReferenceRun, int, int], Outputs]
"""How a case's reference is run, by the oracle, the case, its own run, a seed and the number of a sample."""


def precisely(precision: str) -> Way:
    """In `precision`, or nearby for a sample from 1 on, on plain tensors."""

    def way(oracle: Oracle, case_id: str, own: ReferenceRun, seed: int, sample: int) -> Outputs:
        reference = in_float64(oracle.reference) if precision == "float64" else oracle.reference
        original = oracle.inputs(case_id, seed)
        call = moved(precise(original, precision), good_eps(original), seed, sample)
        with in_precision(precision), rounding(original, seed, sample):
            returned = oracle.run(reference, call, seed)
        return kept(all_outputs(returned, call, own.written))

    return way


def with_error(exact: OutputLeaf, pytorch: OutputLeaf | None, truth: OutputLeaf | None) -> OutputLeaf:
    """The exact output plus PyTorch's error at other inputs; as it is where they cannot be added."""
    if pytorch is None or truth is None or traits_of(truth) != traits_of(exact):
        return exact
    if exact.tensor is None or pytorch.tensor is None or truth.tensor is None:
        return exact
    if not (exact.tensor.is_floating_point() or exact.tensor.is_complex()):
        return exact
    return dataclasses.replace(exact, tensor=exact.tensor + (pytorch.tensor - truth.tensor))


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


def brought_to_cpu(call: CallInputs) -> CallInputs:
    """The call with all its tensors in the CPU's memory."""
    cotangents = {path: tensor.cpu() for path, tensor in call.cotangents.items()}
    return dataclasses.replace(mapped(call, lambda name, tensor: tensor.cpu()), cotangents=cotangents)


def with_own_module(reference: Loaded) -> Loaded:
    """The same reference with a copy of its module, which may keep values between calls."""
    if reference.module is None:
        return reference
    module = copy.deepcopy(reference.module)
    return dataclasses.replace(reference, module=module, call=ModuleCall(module))


def in_float64(reference: Loaded) -> Loaded:
    """The same reference; of a module a copy whose own constants are float64 too."""
    wide = with_own_module(reference)
    if wide.module is not None:
        wide.module.double()
    return wide


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
