"""What a call should give: the reference at the case's own dtypes, in float64, and nearby.

In float64 the reference takes the same branches as at the case's own dtypes (declared_tensor.py). `nearby`
shows how much the problem itself amplifies the rounding errors that no kernel can avoid.
"""

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from ..calls.exchange import CallInputs, Exchange, all_outputs, map_tensors, written_to
from ..calls.gradients import with_gradients
from ..calls.tensors import OutputLeaf, Outputs, leaves, output_of
from ..integrity.returned_tensors import aliases
from ..loading.target import Loaded, ModuleCall
from ..random_numbers import DrawnByElement, has_drawn, seed_call
from ..runtime import called_with_gpu
from ..wire.comparison import Unordered
from .budget import NEIGHBORS, SAMPLES, SIGNS
from .choices import NONE, Choices, Choosing, choices_of, shown_in
from .declared_tensor import (
    WIDE,
    DeclaredDtypes,
    DeclaredTensor,
    NotFollowed,
    held,
    is_floating,
    with_declared_dtypes,
)
from .gpu_results import GpuResults
from .nearby import comparable, farthest, good_eps, move_by_eps, own_eps, rounding, traits_of
from .order import in_one_order, leaves_in
from .reference_calls import Steps, same_steps

HUGE_BYTES = 2**32
"""Of inputs and outputs: above, no truth is computed in float64."""
Precision = Literal["declared", "float64", "float32", "own", "full"]
"""How a reference is run: in float64 on tensors that report the case's own dtypes; on plain tensors of
float64 or float32; at the case's own dtypes, and there in their full precision."""
NOT_WATCHED = contextlib.nullcontext()
NAMES: dict[Precision, str] = {"declared": "float64", "full": "own"}
"""What the truth of some is said to be computed in; of the others, their own name."""


class InFloat64(TorchFunctionMode):
    """Inside, what a reference computes in float32 "to be precise" is computed in float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            return torch.Tensor.double(*args, **(kwargs or {}))
        return func(*(widen(a) for a in args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def widen(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


@dataclasses.dataclass(frozen=True)
class ReferenceRun:
    """What the reference did at a case's own dtypes."""

    case_id: str
    seed: int
    outputs: Outputs
    written: list[str]
    """The arguments that it wrote to."""
    aliases: list[tuple[str, str]]
    """Outputs, each with an input or output whose memory it shares."""
    updated: tuple[str, ...]
    """The state that a module in training wrote to: no output."""
    draws: bool = False
    """Whether it drew random numbers."""


@dataclasses.dataclass(frozen=True)
class Truth:
    """What one call should give, each by output path."""

    oracle: "Oracle"
    run: ReferenceRun
    mode: Precision
    """What `precise` and all beside it are computed in."""
    precise: Outputs
    """The reference in float64, where it runs in it."""
    nearby: Outputs
    """The same for inputs, and with arithmetic, moved by one rounding error."""
    rounded: Outputs = dataclasses.field(default_factory=dict)
    """`precise` with PyTorch's largest error at several neighboring inputs, where that was asked for."""

    @property
    def pytorch(self) -> Outputs:
        """The reference at the case's own dtypes."""
        return self.run.outputs

    @property
    def precision(self) -> str:
        """What `precise` was computed in: `float64`, `float32`, `own`."""
        return NAMES.get(self.mode, self.mode)

    def with_more_samples(self, numbers: Iterable[int] = SAMPLES) -> "Truth":
        """The same, with the farthest of these samples too, element by element, as what is nearby.

        Raises what the reference raises.
        """
        return dataclasses.replace(
            self, nearby=farthest(self.precise, self.nearby, map(self.sample, numbers))
        )

    def with_more_roundings(self) -> "Truth":
        """The same, with what PyTorch errs at neighboring inputs as `rounded`, at most, element by element.

        A row whose elements are all one sum times something bears a single error: PyTorch's may be small by
        chance.
        """
        return dataclasses.replace(
            self, rounded=farthest(self.precise, self.precise, map(self.rounding, NEIGHBORS))
        )

    def sample(self, number: int) -> Outputs:
        """Another `nearby`, by its number from 2 on: others move what a single one moves little by chance."""
        return comparable(self.oracle.outputs(self.mode, self.run, number), self.precise)

    def rounding(self, number: int) -> Outputs:
        """`precise` with PyTorch's error at neighboring inputs, by their number from 1 on: each element is
        moved by up to one rounding error of its own dtype. Not of a huge reference."""
        there = dataclasses.replace(self.oracle, neighbor=number)
        # At other inputs the reference may raise, or take other branches.
        with contextlib.suppress(Exception, NotFollowed):
            if self.mode != "full":
                other = there.run_as_it_is(self.run.case_id, self.run.seed)
                exact = there.outputs(self.mode, other)
                return {
                    path: with_error(output, other.outputs.get(path), exact.get(path))
                    for path, output in self.precise.items()
                }
        return self.precise

    def at_neighbors(self) -> list[Outputs]:
        """What PyTorch returns at neighboring inputs, at the case's own dtypes; where it raises, nothing."""
        found = []
        for number in SIGNS:
            there = dataclasses.replace(self.oracle, neighbor=number)
            with contextlib.suppress(Exception):
                found.append(there.run_as_it_is(self.run.case_id, self.run.seed).outputs)
        return found

    def following(self, candidate: Outputs) -> "Truth | None":
        """The truth given a candidate's choices where PyTorch leaves any free; None where it leaves none."""
        as_returned = dataclasses.replace(self.oracle, unordered=())
        again = functools.partial(as_returned.run_as_it_is, self.run.case_id, self.run.seed)
        with Choosing({}) as choosing:
            outputs = again().outputs
        if not choosing.made:
            return None
        shown = shown_in(outputs, choosing.made)
        chosen = choices_of(candidate, choosing.made, shown)
        in_any_order = leaves_in(self.oracle.unordered)
        free = frozenset(number for number, place in shown.items() if place.paths <= in_any_order)
        with Choosing(chosen, first=True, unordered=free) as choosing:
            again()
        choices = {**dict(enumerate(choosing.made)), **chosen}
        there = dataclasses.replace(self.oracle, choices=choices, unordered_choices=free)
        return there.truth_in(self.mode, there.run_as_it_is(self.run.case_id, self.run.seed))

    def on_gpus(self) -> Outputs:
        """What it returns with casts and divisions as on GPUs; nothing where that is the same."""
        if self.oracle.device != "cpu":
            return {}
        with GpuResults() as there:
            run = self.oracle.run_as_it_is(self.run.case_id, self.run.seed)
        return run.outputs if there.matters else {}

    def elsewhere(self) -> Outputs:
        """What PyTorch's kernels for CPUs return; nothing on a CPU, or where it does not run there or draws
        random numbers, which are others there."""
        oracle, run = self.oracle, self.run
        if oracle.device == "cpu" or run.draws:
            return {}
        with contextlib.suppress(Exception):
            reference = with_own_module(oracle.reference)
            if reference.module is not None:
                reference.module.cpu()
            inputs = oracle.inputs(run.case_id, run.seed)
            cotangents = {path: tensor.cpu() for path, tensor in inputs.cotangents.items()}
            call = map_tensors(inputs, lambda name, tensor: tensor.cpu())
            call = dataclasses.replace(call, cotangents=cotangents)
            outputs = copy_outputs(all_outputs(oracle.call(reference, call, run.case_id), call, run.written))
            return in_one_order(outputs, oracle.unordered)
        return {}


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
    choices: Choices = dataclasses.field(default_factory=dict)
    """What its operators choose where they are free ..."""
    unordered_choices: frozenset[int] = NONE
    """... and those of them that may do so in any order."""
    unordered: tuple[Unordered, ...] = ()
    """Results of which the order is declared free: here they have one."""
    draws: bool = False
    """Whether the reference draws random numbers."""
    exact: tuple[float, ...] = ()
    """Values of inputs that neighboring inputs have too."""
    limited: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Round each of its calls, which may end that."""

    def truth(self, case_id: str, seed: int) -> Truth:
        """Run the reference for a case that it can do. Whatever the user's code raises is passed on.

        A reference that cannot run on DeclaredTensors is run on plain float64 ones, then on
        float32 ones, where it takes the same branches on these; else at its own dtypes. So is a huge one,
        in their full precision: float64 takes several times the memory, and so do neighboring inputs.
        """
        run = self.run_as_it_is(case_id, seed)
        if self.holds(run) > HUGE_BYTES:
            return self.truth_in("full", run)
        with contextlib.suppress(Exception, NotFollowed):
            return self.truth_in("declared", run)
        steps = self.steps("own", run)
        plain: tuple[Precision, ...] = "float64", "float32"
        for precision in plain:
            with contextlib.suppress(Exception):
                if same_steps(self.steps(precision, run), steps):
                    return self.truth_in(precision, run)
        return self.truth_in("own", run)

    def truth_in(self, mode: Precision, run: ReferenceRun) -> Truth:
        """What the reference gives in one precision: sample 0 is precise, others are nearby."""
        precise = self.outputs(mode, run)
        return Truth(self, run, mode, precise, nearby=comparable(self.outputs(mode, run, 1), precise))

    def inputs(self, case_id: str, seed: int) -> CallInputs:
        """The case's call, or one with neighboring inputs: each time another copy."""
        call = self.exchange.call(case_id, self.device)
        return move_by_eps(call, own_eps(call), seed, self.neighbor, self.exact)

    def holds(self, run: ReferenceRun) -> int:
        """The bytes of the case's inputs and of what the reference makes of them."""
        call = self.exchange.call(run.case_id, self.device)
        output_bytes = sum(
            output.tensor.nbytes for output in run.outputs.values() if output.tensor is not None
        )
        return output_bytes + sum(tensor.nbytes for tensor in call.tensors().values())

    def run_as_it_is(self, case_id: str, seed: int) -> ReferenceRun:
        """Run at the case's own dtypes."""
        call = self.inputs(case_id, seed)
        returned = self.run(self.reference, call, case_id)
        if not self.draws and has_drawn(case_id):
            return dataclasses.replace(self, draws=True).run_as_it_is(case_id, seed)
        changed = written_to(call, self.inputs(case_id, seed))
        in_training = self.reference.module is not None and self.reference.module.training
        updated = tuple(name for name in changed if in_training and name in call.state)
        written = [name for name in changed if name not in updated]
        shared = aliases(returned.items(), call.tensors().items())
        outputs = in_one_order(copy_outputs(all_outputs(returned, call, written)), self.unordered)
        return ReferenceRun(case_id, seed, outputs, written, shared, updated, self.draws)

    def outputs(
        self,
        precision: Precision,
        run: ReferenceRun,
        sample: int = 0,
        watched: contextlib.AbstractContextManager[Any] = NOT_WATCHED,
    ) -> Outputs:
        """In `precision`, or nearby for a `sample` from 1 on.

        Raises NotFollowed where the outputs on tensors that report the case's own dtypes have others.
        """
        reference, original = self.reference_for(precision), self.inputs(run.case_id, run.seed)
        call = in_dtypes(original, precision)
        call = move_by_eps(call, good_eps(original), run.seed, sample, self.exact)
        if precision == "declared":
            call = with_declared_dtypes(original, call)
        with rounding(original, run.seed, sample), computing(precision, original), watched:
            returned = dataclasses.replace(self, draws=run.draws).run(reference, call, run.case_id)
        outputs = in_one_order(copy_outputs(all_outputs(returned, call, run.written)), self.unordered)
        if precision == "declared" and not sample and all_traits(outputs) != all_traits(run.outputs):
            raise NotFollowed("outputs of other dtypes or shapes")
        return outputs

    def steps(self, precision: Precision, run: ReferenceRun) -> list[Any]:
        """What the reference asks torch for in `precision`, on plain tensors."""
        steps = Steps()
        self.outputs(precision, run, watched=steps)
        return steps.taken

    def reference_for(self, precision: Precision) -> Loaded:
        """The reference; in float64 of a module a copy, whose constants are float64 on plain tensors."""
        if precision not in ("declared", "float64"):
            return self.reference
        copied = with_own_module(self.reference)
        if precision == "float64" and copied.module is not None:
            copied.module.double()
        return copied

    def run(self, reference: Loaded, call: CallInputs, case_id: str) -> dict[str, Any]:
        """The leaves of the reference's result by path.

        One that was written for a GPU finds one, also under the interpreter.
        """
        choosing = Choosing(self.choices, unordered=self.unordered_choices)
        with choosing if self.choices else NOT_WATCHED:
            return called_with_gpu(lambda: self.call(reference, call, case_id))

    def call(self, reference: Loaded, call: CallInputs, case_id: str) -> dict[str, Any]:
        # Its random numbers (dropout) are the same in each of its runs, and in the candidate's.
        seed_call(case_id)
        with self.limited(), DrawnByElement() if self.draws else NOT_WATCHED:
            if self.backward:
                return with_gradients(lambda inputs: reference(inputs.arguments, inputs.state), call)
            with torch.no_grad():
                return dict(leaves(reference(call.arguments, call.state)))


def with_error(exact: OutputLeaf, pytorch: OutputLeaf | None, truth: OutputLeaf | None) -> OutputLeaf:
    """The exact output plus PyTorch's error at other inputs; as it is where they cannot be added."""
    values = [leaf.tensor for leaf in (exact, pytorch, truth) if leaf and leaf.tensor is not None]
    if truth is None or traits_of(truth) != traits_of(exact) or len(values) < 3 or not is_floating(values[0]):
        return exact
    return dataclasses.replace(exact, tensor=values[0] + (values[1] - values[2]))


def copy_outputs(outputs: dict[str, Any]) -> Outputs:
    """The outputs as they are now, with the traits that they report."""
    return {path: copy_leaf(leaf) for path, leaf in outputs.items()}


def copy_leaf(leaf: Any) -> OutputLeaf:
    output = output_of(held(leaf))
    if not isinstance(leaf, DeclaredTensor):
        return output
    dtype = str(leaf.dtype).removeprefix("torch.")
    return dataclasses.replace(output, traits={**output.traits, "dtype": dtype})


def all_traits(outputs: Outputs) -> dict[str, tuple[Any, ...]]:
    return {path: traits_of(output) for path, output in outputs.items()}


def with_own_module(reference: Loaded) -> Loaded:
    """The same reference with a copy of its module, which may keep values between calls."""
    if reference.module is None:
        return reference
    module = copy.deepcopy(reference.module)
    return dataclasses.replace(reference, module=module, call=ModuleCall(module, reference.parameters))


def in_dtypes(call: CallInputs, precision: Precision) -> CallInputs:
    """The call with its tensors in the dtypes that are computed with."""

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if precision == "declared":
            return tensor.to(WIDE.get(tensor.dtype, tensor.dtype))
        return tensor.to(getattr(torch, precision)) if tensor.is_floating_point() else tensor

    return call if precision in ("own", "full") else map_tensors(call, change)


@contextlib.contextmanager
def computing(precision: Precision, original: CallInputs) -> Iterator[None]:
    """Inside, a reference computes in `precision`: in float64, new tensors and float32 are float64."""
    with contextlib.ExitStack() as stack:
        if precision == "declared":
            stack.enter_context(DeclaredDtypes(original))
            # The kernels of fused attention are for short dtypes.
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if precision == "float64":
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float64)
            stack.enter_context(InFloat64())
        # Otherwise convolutions on GPUs may round to TF32.
        backends: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
        for backend in backends if precision == "full" else ():
            stack.callback(setattr, backend, "allow_tf32", backend.allow_tf32)
            backend.allow_tf32 = False
        yield
