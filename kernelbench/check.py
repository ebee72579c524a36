"""Is a drafted file right? Its `run` beside the problem's `Model`, by nothing but torch.

A job of the worker. Nothing of the project's validation judges here; both sides draw the same random numbers.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import itertools
import keyword
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

SEED = 20
FLOAT8 = {torch.float8_e4m3fn: 0.13, torch.float8_e5m2: 0.26}
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2, **FLOAT8}
"""Relative and absolute, added; other dtypes have to be equal."""
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
MOST_ELEMENTS = 2**25
"""Of all tensors of a call under the interpreter."""
MANY_ELEMENTS = 2**17
"""So many at the usual small sizes: the interpreter takes minutes, the smallest have to do."""
SMALLEST = (2, 3)
IMPORTED = frozenset({"torch", "triton", "tl", "math", "libdevice"})
"""No state is called like what a drafted file imports."""
CHUNK = 2**26
"""So many elements are compared at once."""
TENSOR = re.compile(r"([\w|]+)\[(.*)\](?: in (.+)\.\.(.+))?")

Dims = Mapping[str, int]
Call = Callable[[], Any]


class Undecided(Exception):
    """Why nothing is compared. `unrun`: eager raises; `too_large`: for the interpreter."""


def work(
    report: Any, problem: Mapping[str, Any], drafted: str, *, small: bool, device: str, evaluated: bool
) -> Any:
    """The comparison as a job: `status` is `right`, `wrong`, `random`, `too_large` or `unrun`."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    run = loaded(drafted).run
    with torch.no_grad():
        contents = loaded(problem["path"])
        model = modelled(problem, contents, device, evaluated=evaluated)
        moved_off_initial_values(model)
        sides = Sides(run, model, problem["backward"])
        try:
            if small:
                return at_small_sizes(sides, declared(Path(drafted).read_text("utf-8")), device)
            inputs = given(problem, contents, device)
            return {**compared(sides, inputs), "dims": {}, "elements": count(inputs)}
        except Undecided as error:
            return dict(zip(("status", "why"), error.args, strict=True))


class Sides(NamedTuple):
    """A drafted `run` and the model that it is drafted from."""

    run: Any
    model: torch.nn.Module
    backward: bool
    """Whether their gradients are compared too."""

    def expected(self, inputs: list[Any]) -> Call:
        """The model's call, which leaves its state and arguments as they were, for results depend on them."""
        given = copies(inputs)

        def call() -> Any:
            before = [(tensor, tensor.clone()) for tensor in self.model.buffers()]
            results = self.model(*given)
            for tensor, values in before:
                tensor.data.copy_(values)
            return results

        return self.passes(call, [*given, *self.model.parameters()])

    def actual(self, inputs: list[Any]) -> Call:
        """The draft's call, on a state of its own."""
        held = state_of(self.model)
        state = {name: tensor.clone() for name, tensor in held.items()}
        weights = [state[name] for name, tensor in held.items() if isinstance(tensor, torch.nn.Parameter)]
        given = copies(inputs)
        arguments = bound(self.run, given, state)
        return self.passes(lambda: self.run(**arguments), [*given, *weights])

    def passes(self, call: Call, arguments: Sequence[Any]) -> Call:
        """The call, with the gradients of the arguments where they are wanted."""
        return partial(differentiated, call, differentiable(arguments)) if self.backward else call


def copies(inputs: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def at_small_sizes(sides: Sides, text: Mapping[str, Any], device: str) -> Any:
    """The comparison at the smallest sizes that both sides take, on values of one sign and of both."""
    refused = ""
    state = state_of(sides.model)
    points = list(small_points(text.get("DIMS", {}), text.get("REQUIRES", [])))

    def elements_at(dims: Dims) -> int:
        return count(generated(text["INPUTS"], state, dims, torch.rand, "meta"))

    many = bool(points) and elements_at(points[0]) + count(list(state.values())) > MANY_ELEMENTS
    smallest = list(small_points(text.get("DIMS", {}), text.get("REQUIRES", []), SMALLEST)) if many else []
    for dims in (*smallest[:1], *points):
        elements = elements_at(dims)
        if elements > MOST_ELEMENTS and device == "cpu":
            raise Undecided("too_large", refused or f"{elements:,} elements at {dict(dims) or 'fixed sizes'}")
        comparisons = []
        for values in (signs := [torch.randn] if many else [torch.rand, torch.randn]):
            inputs = generated(text["INPUTS"], state, dims, values, device)
            try:
                comparisons.append(compared(sides, inputs))
            except Exception as error:  # a size that eager or a guard of `run` refuses: a larger one may do
                refused = f"{dict(dims)}: {type(error).__name__}: {error}"[:500]
                # Eager may refuse values below 0 alone, such as indices.
                signs = signs[: len(comparisons)] if isinstance(error, Undecided) else signs
                break
        if comparisons and len(comparisons) == len(signs):
            worst = next((f for f in comparisons if f["status"] != "right"), comparisons[0])
            return {**worst, "dims": dict(dims), "elements": elements, "refused": refused}
    return {"status": "wrong", "why": f"no small sizes that both sides take; the last: {refused}"}


def small_points(
    dims: Mapping[str, Any], requires: list[str], primes: Sequence[int] = PRIMES
) -> Iterator[Dims]:
    """Sizes to try, the smallest first and the declared ones last."""
    most_of = largest(dims)
    tried = []
    for start in range(0, len(primes), 2):
        sizes = itertools.cycle(primes[start:])
        tried.append({name: min(size, next(sizes)) for name, size in most_of.items()})
    for most in (16, 64, 256, 1024, 2**16):
        tried.append({name: reduced(size, most) for name, size in most_of.items()})
    unlike = {tuple(point.items()): point for point in [*tried, most_of]}
    for point in unlike.values():
        if all(size_of(text, point) for text in requires):
            yield point


def largest(dims: Mapping[str, Any]) -> dict[str, int]:
    """Every dim at the largest of its sizes."""
    return {name: max(sizes) if isinstance(sizes, list | tuple) else sizes for name, sizes in dims.items()}


def reduced(size: int, most: int) -> int:
    """The size halved as often as it can be while it is over `most`; divisors of it stay divisors."""
    while size > most and size % 2 == 0:
        size //= 2
    return size


def declared(text: str) -> dict[str, Any]:
    """INPUTS, DIMS and REQUIRES of a drafted file."""
    assigned = (node for node in ast.parse(text).body if isinstance(node, ast.Assign))
    named = {node.targets[0].id: node.value for node in assigned if isinstance(node.targets[0], ast.Name)}
    return {n: ast.literal_eval(named[n]) for n in ("INPUTS", "DIMS", "REQUIRES") if n in named}


def generated(
    inputs: Mapping[str, Any], state: Mapping[str, Any], dims: Dims, values: Any, device: str
) -> list[Any]:
    """The arguments of forward at these sizes; `values` makes floats of a shape, as torch.rand does."""
    torch.manual_seed(SEED)
    return [tensor_of(text, dims, values, device) for name, text in inputs.items() if name not in state]


def tensor_of(text: Any, dims: Dims, values: Any, device: str) -> Any:
    """`float32[M, 2*N]` or `int64[M] in 0..N` as a tensor; anything else is a constant."""
    match = TENSOR.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return text
    dtype = getattr(torch, match[1].partition("|")[0])
    shape = [size_of(part, dims) for part in match[2].split(",") if part.strip()]
    if dtype.is_floating_point and match[3] is None:
        return values(shape, device=device).to(dtype)
    low, high = (size_of(match[3], dims), size_of(match[4], dims)) if match[3] else (0, 2)
    if dtype.is_floating_point:
        return (low + (high - low) * torch.rand(shape, device=device)).to(dtype)
    return torch.randint(int(low), int(high), shape, device=device).to(dtype)


def size_of(text: str, dims: Dims) -> Any:
    return eval(text, {"__builtins__": {}, "min": min, "max": max, "math": math}, dict(dims))


def loaded(path: str) -> Any:
    """The file as a module of its own."""
    name = f"checked_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def as_module(function: Callable[..., Any]) -> torch.nn.Module:
    module = torch.nn.Module()
    module.forward = function
    return module


def modelled(problem: Mapping[str, Any], contents: Any, device: str, *, evaluated: bool) -> torch.nn.Module:
    """The problem's module, the same at each call; `evaluated`: in eval(), else as its file leaves it."""
    if problem["function"]:
        named = getattr(contents, problem["function"])
        made = made_on(device, named) if isinstance(named, type) else as_module(named)
        return made.to(device).eval()
    given = contents.get_init_inputs() if hasattr(contents, "get_init_inputs") else []
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    model: torch.nn.Module = made_on(device, lambda: contents.Model(*args, **kwargs))
    for part in model.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and not hasattr(type(part), name):  # a draft is given it too
                part.register_buffer(name, part.__dict__.pop(name), persistent=False)
    model.to(device)
    return model.eval() if evaluated else model


def given(problem: Mapping[str, Any], contents: Any, device: str) -> list[Any]:
    """What get_inputs() returns, on the device; or inputs of the largest declared sizes."""
    if wanted := problem["declared"]:
        return generated(wanted["INPUTS"], {}, largest(wanted["DIMS"]), torch.randn, device)
    inputs = made_on(device, contents.get_inputs)
    return [value.to(device) if isinstance(value, torch.Tensor) else value for value in inputs]


def made_on(device: str, make: Callable[[], Any]) -> Any:
    """What `make` returns, made on the device where that can be: on the CPU, gigabytes take seconds."""
    torch.manual_seed(SEED)
    try:
        with torch.device(device):
            return make()
    except (RuntimeError, TypeError):
        torch.manual_seed(SEED)
        return make()


def moved_off_initial_values(model: torch.nn.Module) -> None:
    """Weights of one and statistics of zero would hide that a draft leaves them out; it may make the rest."""
    torch.manual_seed(SEED)
    saved = model.state_dict()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and name in saved:
            noise = torch.rand_like(tensor)
            tensor.copy_(tensor * (1 + 0.2 * noise) + 0.05 * noise)


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under the names that a drafted `run` gives them."""
    named = dict(itertools.chain(model.named_parameters(), model.named_buffers()))
    taken = {*inspect.signature(model.forward).parameters, *IMPORTED}
    state: dict[str, torch.Tensor] = {}
    for key in sorted(named, key=[*model.state_dict(), *named].index):
        name = re.sub(r"\W", "_", key)
        while not name.isidentifier() or keyword.iskeyword(name) or name in taken | state.keys():
            name = f"module_{name}"
        state[name] = named[key]
    return state


def bound(run: Any, inputs: list[Any], state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """The arguments of `run`: inputs in their order, state by name."""
    names = list(inspect.signature(run).parameters)
    by_position = dict(zip(names, inputs, strict=False))
    return {**by_position, **{name: state[name] for name in names[len(inputs) :] if name in state}}


def differentiable(arguments: Sequence[Any]) -> list[torch.Tensor]:
    """The floating-point tensors among them, which require grad from now on."""
    return [t.requires_grad_() for t in arguments if isinstance(t, torch.Tensor) and t.is_floating_point()]


def differentiated(
    call: Call, variables: Sequence[torch.Tensor], weights: Sequence[torch.Tensor] | None = None
) -> list[torch.Tensor]:
    """What the call returns, and the gradients of its weighted sum; without `weights` by random ones."""
    with torch.enable_grad():
        outputs = list(leaves(call()))
        reached = [output for output in outputs if output.requires_grad]
        given = weights_of(outputs) if weights is None else weights
        computed = torch.autograd.grad(reached, variables, given, allow_unused=True)
    gradients = [torch.zeros_like(v) if g is None else g for v, g in zip(variables, computed, strict=True)]
    return [*(output.detach() for output in outputs), *gradients]


def weights_of(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Gradients for the outputs that have some: the same numbers in any dtype from bfloat16 on.

    They are not those of the inputs: along its input a norm has no gradient, and only rounding would be left.
    """
    torch.manual_seed(SEED + 1)
    reached = [output for output in outputs if output.requires_grad]
    return [torch.randn(o.shape, device=o.device).bfloat16().to(o.dtype) for o in reached]


def compared(sides: Sides, inputs: list[Any]) -> dict[str, Any]:
    """`right` or `wrong`, with the largest difference from eager. Whatever the draft raises is raised."""
    try:
        expected = outputs_of(sides.expected(inputs))
    except torch.OutOfMemoryError:  # of what runs beside it
        raise
    except Exception as error:
        raise Undecided("unrun", f"PyTorch: {type(error).__name__}: {error}"[:500]) from error
    outputs = outputs_of(sides.actual(inputs))
    if len(outputs) != len(expected):
        return {"status": "wrong", "why": f"{len(outputs)} outputs, not {len(expected)}"}
    largest = 0.0
    for at, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            shapes = f"{tuple(ours.shape)} {ours.dtype}, not {tuple(theirs.shape)} {theirs.dtype}"
            return {"status": "wrong", "why": f"output {at} is {shapes}"}
        failing, difference = differences(ours, theirs)
        largest = max(largest, difference)
        if failing:
            why = f"output {at}: {failing:,} of {ours.numel():,} elements differ, by up to {difference:.3g}"
            if differences(outputs_of(sides.expected(inputs), SEED + 1)[at], theirs)[0]:
                return {"status": "random", "why": f"{why}; eager differs from itself with another seed"}
            return {**beside_float64(sides, inputs, at, ours, theirs, why), "largest_difference": difference}
    return {"status": "right", "why": "", "largest_difference": largest}


def outputs_of(call: Any, seed: int = SEED) -> list[torch.Tensor]:
    """What the call returns where random numbers, such as dropout's, start from the seed."""
    from ..random_numbers import DrawnByElement  # type: ignore[import-not-found]  # of the worker

    torch.manual_seed(seed)
    with DrawnByElement():
        return list(leaves(call()))


def beside_float64(
    sides: Sides, inputs: list[Any], at: int, ours: torch.Tensor, theirs: torch.Tensor, why: str
) -> dict[str, Any]:
    """`right` where it is as close to the same in float64 as eager's is: of whole numbers, as often."""
    wide = [
        x.detach().double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]
    dtypes = {name: tensor.dtype for name, tensor in state_of(sides.model).items()}
    try:
        # The model itself, for a copy's lambdas would still compute with the model's own modules.
        sides.model.double()
        truth = outputs_of(sides.expected(wide))[at]
    except RuntimeError as error:
        return {"status": "wrong", "why": f"{why}; not computed in float64: {error}"[:500]}
    finally:
        for name, tensor in state_of(sides.model).items():
            tensor.data = tensor.data.to(dtypes[name])
    (apart, largest), (apart_of_eager, of_eager) = differences(ours, truth), differences(theirs, truth)
    as_often = ours.is_floating_point() or apart <= 2 * apart_of_eager
    close = as_often and largest <= 2 * of_eager and bool((ours.isfinite() == theirs.isfinite()).all())
    errors = f"from float64 by {largest:.3g} ({apart:,}), eager by {of_eager:.3g} ({apart_of_eager:,})"
    return {"status": "right" if close else "wrong", "why": f"{why}; {errors}"}


def differences(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[int, float]:
    """How many elements differ by more than the dtype's tolerance, and the largest finite difference."""
    tolerance = TOLERANCE.get(theirs.dtype, 0.0)
    if theirs.dtype in FLOAT8:
        ours, theirs = ours.float(), theirs.float()
    failing, largest = 0, 0.0
    # A view, or a copy where it has to be one, chunk by chunk: whole differences may not fit into memory.
    flat = (ours.reshape(-1), theirs.reshape(-1))
    for mine, other in zip(*(torch.split(tensor, CHUNK) for tensor in flat), strict=True):
        if tolerance:
            close = torch.isclose(mine, other.to(mine.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            close = mine == other
        failing += int((~close).sum())
        apart = (mine.double() - other.double()).abs()
        largest = max(largest, float(apart.nan_to_num(0.0, 0.0, 0.0).max()) if apart.numel() else 0.0)
    return failing, largest


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of what a call returned, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from leaves(item)


def count(inputs: list[Any]) -> int:
    return sum(math.prod(tensor.shape) for tensor in leaves(inputs))
