"""Job `oracle`: draw each case's inputs, run the reference on them in float64 and at the case's own dtypes.

Leaves state, inputs, truth, nearby and pytorch in the exchange folder. `nearby` tells how far the problem
itself amplifies the rounding errors that no kernel can avoid.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .describe import named_inputs
from .draw import draw_arguments, generator, perturbed_state
from .exchange import Call, Exchange, all_outputs, written_to
from .failure import describe_failure
from .report import Report
from .rounding import Rounding
from .target import Loaded, ModuleCall, keyword, load
from .tensors import write_outputs, write_values


class InFloat64(TorchFunctionMode):
    """Inside, what a reference computes in float32 "to be precise" is computed in float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            return torch.Tensor.double(*args, **(kwargs or {}))
        return func(*(widened(a) for a in args), **{k: widened(v) for k, v in (kwargs or {}).items()})


def widened(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


@dataclasses.dataclass(frozen=True)
class Oracle:
    """The reference, and how its runs are set up."""

    reference: Loaded
    exchange: Exchange
    seed: int
    device: str

    def solve(self, case: dict[str, Any]) -> dict[str, Any]:
        """Write everything about one case; an exception of the user's code is the case's result."""
        try:
            write_values(self.draw(case), self.exchange.case("inputs", case["id"]))
            written = self.run_as_it_is(case["id"])
            return {"status": "ok", "written": written, "truth": self.run_precisely(case["id"], written)}
        except Exception as error:
            return {"status": "raised", "failure": describe_failure(error, case["name"])}

    def draw(self, case: dict[str, Any]) -> dict[str, Any]:
        """The case's arguments on the CPU: drawn here, or by the file's inputs(**dims) or get_inputs()."""
        if case["arguments"]:
            return draw_arguments(case, self.seed)
        torch.manual_seed(generator(self.seed, case["name"]).initial_seed())
        contents = self.reference.contents
        if not hasattr(contents, "inputs"):
            return named_inputs(self.reference) if hasattr(contents, "get_inputs") else {}
        given = contents.inputs(**case["dims"])
        named = given if isinstance(given, Mapping) else zip(self.reference.parameters, given, strict=False)
        return dict(named)

    def run_as_it_is(self, case_id: str) -> list[str]:
        """Run at the case's own dtypes; the names of the arguments that the reference writes to."""
        call = self.exchange.call(case_id, self.device)
        result = self.run(self.reference, call)
        written = list(written_to(call, self.exchange.call(case_id, self.device)))
        write_outputs(all_outputs(result, call, written), self.exchange.case("pytorch", case_id))
        return written

    def run_precisely(self, case_id: str, written: list[str]) -> str:
        """Run for the truth; the dtype in which it was computed.

        A reference that cannot run in float64 is run in float32; where that fails too, at its own dtypes.
        """
        for precision in ("float64", "float32"):
            try:
                self.write_truth(case_id, precision, written)
            except Exception:
                continue
            return precision
        self.write_truth(case_id, "own", written)
        return "own"

    def write_truth(self, case_id: str, precision: str, written: list[str]) -> None:
        reference = in_float64(self.reference) if precision == "float64" else self.reference
        for place in ("truth", "nearby"):
            original = self.exchange.call(case_id, self.device)
            call = precise(original, precision)
            if place == "nearby":
                call = moved(call, original, self.seed)
            rounding = Rounding(arithmetic_eps(original), self.seed) if place == "nearby" else no_rounding()
            with in_precision(precision), rounding:
                result = self.run(reference, call)
            write_outputs(all_outputs(result, call, written), self.exchange.case(place, case_id))

    def run(self, reference: Loaded, call: Call) -> Any:
        # What the reference draws itself (dropout) is the same in each of its runs.
        torch.manual_seed(self.seed)
        with torch.no_grad():
            return reference(call.arguments, call.state)


def work(
    report: Report, target: dict[str, Any], cases: list[dict[str, Any]], seed: int, folder: str, device: str
) -> dict[str, Any]:
    """An item once the reference is loaded, then one a case: status, `truth` (its precision), `written`.

    `cases` are the JSON of schema/case.py with an `id` each, which names its folder.
    """
    report.during("load")
    reference = load(target, "reference")
    oracle = Oracle(reference, Exchange(Path(folder)), seed, device)
    if not oracle.exchange.state.exists():
        write_values(perturbed_state(reference.state, trained(reference), seed), oracle.exchange.state)
    report.item({"loaded": reference.name})
    for done, case in enumerate(cases):
        report.during(case["name"])
        report.progress(done, len(cases), f"reference: {case['name']}")
        report.item({"case": case["name"], **oracle.solve(case)})
    return {"device": torch.cuda.get_device_name() if device == "cuda" else "CPU"}


def trained(reference: Loaded) -> set[str]:
    """The names of a module's state that are parameters, not buffers."""
    return (
        set()
        if reference.module is None
        else {keyword(key) for key, _ in reference.module.named_parameters()}
    )


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


def precise(call: Call, precision: str) -> Call:
    """The call with its floating tensors in `precision`; `own` leaves them as they are."""
    if precision == "own":
        return call
    dtype: torch.dtype = getattr(torch, precision)
    return mapped(call, lambda name, tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def moved(call: Call, original: Call, seed: int) -> Call:
    """The call with every floating element moved by up to one rounding error of the arithmetic.

    That is float32's where the original tensor is float32 or shorter: good kernels compute in it.
    """
    torch.manual_seed(seed)
    dtypes = {name: tensor.dtype for name, tensor in original.tensors().items()}

    def move(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        arithmetic = torch.float64 if dtypes[name] == torch.float64 else torch.float32
        steps = 2 * torch.rand(tensor.shape, device=tensor.device) - 1
        return tensor * (1 + torch.finfo(arithmetic).eps * steps.double()).to(tensor.dtype)

    return mapped(call, move)


def arithmetic_eps(call: Call) -> float:
    """One rounding error of the arithmetic that good kernels of these inputs compute in."""
    floating = [t.dtype for t in call.tensors().values() if t.is_floating_point()]
    only_float64 = bool(floating) and all(dtype == torch.float64 for dtype in floating)
    return torch.finfo(torch.float64 if only_float64 else torch.float32).eps


def no_rounding() -> contextlib.AbstractContextManager[None]:
    """The run for the truth, as exact as its precision."""
    return contextlib.nullcontext()


def mapped(call: Call, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Call:
    """The call with `change` applied to every tensor, given its name."""

    def visit(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(name, value)
        return (
            [visit(f"{name}[{i}]", item) for i, item in enumerate(value)]
            if isinstance(value, list)
            else value
        )

    return Call(
        {name: visit(name, value) for name, value in call.arguments.items()},
        {name: visit(name, value) for name, value in call.state.items()},
    )
