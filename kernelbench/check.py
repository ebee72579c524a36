"""Is a drafted file right? Its `run` beside the problem's `Model`, by nothing but torch.

    python check.py PROBLEM DRAFTED [--small] [--device cuda] [--evaluated]

Prints one line of JSON. Nothing of the project's validation judges here. On the CPU the kernels run under
Triton's interpreter; the project's worker, which corrects the interpreter, takes this file as a job.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__" and "cuda" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import torch

SEED = 20
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Relative and absolute, added; other dtypes have to be equal."""
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
MOST_ELEMENTS = 2**25
"""Of all tensors of a call under the interpreter."""
MANY_ELEMENTS = 2**17
"""So many at the usual small sizes: the interpreter takes minutes, and the smallest sizes have to do."""
SMALLEST = (2, 3)
CHUNK = 2**26
"""So many elements are compared at once."""
TENSOR = re.compile(r"([\w|]+)\[(.*)\](?: in (.+)\.\.(.+))?")

Dims = Mapping[str, int]


class TooLarge(Exception):
    """The smallest sizes that the draft takes are too large for the interpreter."""


def work(report: Any, problem: str, drafted: str, *, small: bool, device: str, evaluated: bool) -> Any:
    """The comparison as a job of the worker: `status` is `right`, `wrong`, `random` or `too_large`."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    text = Path(drafted).read_text(encoding="utf-8")
    run = loaded(drafted).run
    with torch.no_grad():
        contents = loaded(problem)
        model = modelled(contents, device, evaluated=evaluated)
        moved_off_initial_values(model)
        if not small:
            inputs = given(contents, device)
            return {**compared(run, model, inputs), "dims": {}, "elements": count(inputs)}
        try:
            return at_small_sizes(run, model, declared(text), device)
        except TooLarge as error:
            return {"status": "too_large", "why": str(error)}


def at_small_sizes(run: Any, model: torch.nn.Module, text: Mapping[str, Any], device: str) -> Any:
    """The comparison at the smallest sizes that both sides take, on values of one sign and of both."""
    refused = ""
    state = state_of(model)
    points = list(small_points(text.get("DIMS", {}), text.get("REQUIRES", [])))

    def elements_at(dims: Dims) -> int:
        return count(generated(text["INPUTS"], state, dims, torch.rand, "meta"))

    many = bool(points) and elements_at(points[0]) + count(list(state.values())) > MANY_ELEMENTS
    smallest = list(small_points(text.get("DIMS", {}), text.get("REQUIRES", []), SMALLEST)) if many else []
    for dims in (*smallest[:1], *points):
        elements = elements_at(dims)
        if elements > MOST_ELEMENTS and device == "cpu":
            raise TooLarge(refused or f"{elements:,} elements" + f" at {dict(dims)}" * bool(dims))
        found = []
        signs = (torch.randn,) if many else (torch.rand, torch.randn)
        for values in signs:
            inputs = generated(text["INPUTS"], state, dims, values, device)
            try:
                found.append(compared(run, model, inputs))
            except Exception as error:  # a size that eager or a guard of `run` refuses: a larger one may do
                refused = f"{dict(dims)}: {type(error).__name__}: {error}"[:500]
                break
        if len(found) == len(signs):
            worst = next((f for f in found if f["status"] != "right"), found[0])
            return {**worst, "dims": dict(dims), "elements": elements, "refused": refused}
    return {"status": "wrong", "why": f"no small sizes that both sides take; the last: {refused}"}


def small_points(
    dims: Mapping[str, Any], requires: list[str], primes: Sequence[int] = PRIMES
) -> Iterator[Dims]:
    """Sizes to try, the smallest first and the declared ones last."""
    largest = {name: max(sizes) if isinstance(sizes, list | tuple) else sizes for name, sizes in dims.items()}
    tried = []
    for start in range(0, len(primes), 2):
        sizes = itertools.cycle(primes[start:])
        tried.append({name: min(size, next(sizes)) for name, size in largest.items()})
    for most in (16, 64, 256, 1024, 2**16):
        tried.append({name: reduced(size, most) for name, size in largest.items()})
    unlike = {tuple(point.items()): point for point in [*tried, largest]}
    for point in unlike.values():
        if all(eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(point)) for text in requires):
            yield point


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
    return eval(text, {"__builtins__": {}}, dict(dims))


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


def modelled(contents: Any, device: str, *, evaluated: bool) -> torch.nn.Module:
    """The problem's Model, the same at each call; `evaluated`: in eval(), else as its file leaves it."""
    given = contents.get_init_inputs() if hasattr(contents, "get_init_inputs") else []
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    model: torch.nn.Module = made_on(device, lambda: contents.Model(*args, **kwargs)).to(device)
    return model.eval() if evaluated else model


def given(contents: Any, device: str) -> list[Any]:
    """What get_inputs() returns, on the device."""
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
    """Weights of one and statistics of zero would hide that a draft leaves them out."""
    torch.manual_seed(SEED)
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            noise = torch.rand_like(tensor)
            tensor.copy_(tensor * (1 + 0.2 * noise) + 0.05 * noise)


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under the names that a drafted `run` gives them."""
    named = itertools.chain(model.named_parameters(), model.named_buffers())
    return {name.replace(".", "_"): tensor for name, tensor in named}


def bound(run: Any, inputs: list[Any], state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """The arguments of `run`: inputs in their order, state by name."""
    names = list(inspect.signature(run).parameters)
    by_position = dict(zip(names, inputs, strict=False))
    return {**by_position, **{name: state[name] for name in names[len(inputs) :] if name in state}}


def compared(run: Any, model: torch.nn.Module, inputs: list[Any]) -> dict[str, Any]:
    """`right` or `wrong`, with the largest difference from eager. Whatever either side raises is raised."""
    state = {name: tensor.clone() for name, tensor in state_of(model).items()}
    expected = outputs_of(lambda: model(*inputs))
    found = outputs_of(lambda: run(**bound(run, inputs, state)))
    if len(found) != len(expected):
        return {"status": "wrong", "why": f"{len(found)} outputs, not {len(expected)}"}
    largest = 0.0
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            shapes = f"{tuple(ours.shape)} {ours.dtype}, not {tuple(theirs.shape)} {theirs.dtype}"
            return {"status": "wrong", "why": f"output {at} is {shapes}"}
        failing, difference = differences(ours, theirs)
        largest = max(largest, difference)
        if failing:
            why = f"output {at}: {failing:,} of {ours.numel():,} elements differ, by up to {difference:.3g}"
            if differences(outputs_of(lambda: model(*inputs), SEED + 1)[at], theirs)[0]:
                return {"status": "random", "why": f"{why}; eager differs from itself with another seed"}
            return {**beside_float64(model, inputs, at, ours, theirs, why), "largest_difference": difference}
    return {"status": "right", "why": "", "largest_difference": largest}


def outputs_of(call: Any, seed: int = SEED) -> list[torch.Tensor]:
    """What the call returns where random numbers, such as dropout's, start from the seed."""
    torch.manual_seed(seed)
    return list(leaves(call()))


def beside_float64(
    model: torch.nn.Module, inputs: list[Any], at: int, ours: torch.Tensor, theirs: torch.Tensor, why: str
) -> dict[str, Any]:
    """`right` where the draft's output is as close to the same computation in float64 as eager's is."""
    wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    try:
        # The model itself, for a copy's lambdas would still compute with the model's own modules.
        truth = list(leaves(model.double()(*wide)))[at]
    except RuntimeError as error:
        return {"status": "wrong", "why": f"{why}; not computed in float64: {error}"[:500]}
    finally:
        model.float()
    (_, error_of_ours), (_, error_of_theirs) = differences(ours, truth), differences(theirs, truth)
    same_places = bool((ours.isfinite() == theirs.isfinite()).all())
    close = ours.is_floating_point() and same_places and error_of_ours <= 2 * error_of_theirs
    errors = f"from float64 by {error_of_ours:.3g}, eager by {error_of_theirs:.3g}"
    return {"status": "right" if close else "wrong", "why": f"{why}; {errors}"}


def differences(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[int, float]:
    """How many elements differ by more than the dtype's tolerance, and the largest finite difference."""
    tolerance = TOLERANCE.get(theirs.dtype, 0.0)
    failing, largest = 0, 0.0
    # A view, or a copy where it has to be one, chunk by chunk: whole differences may not fit into memory.
    flat = (ours.reshape(-1), theirs.reshape(-1))
    for one, other in zip(*(torch.split(tensor, CHUNK) for tensor in flat), strict=True):
        if tolerance:
            close = torch.isclose(one, other.to(one.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            close = one == other
        failing += int((~close).sum())
        apart = (one.double() - other.double()).abs()
        if apart.numel():
            largest = max(largest, float(apart.nan_to_num(0.0, 0.0, 0.0).max()))
    return failing, largest


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of what a call returned, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)


def count(inputs: list[Any]) -> int:
    return sum(math.prod(tensor.shape) for tensor in leaves(inputs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("drafted")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--evaluated", action="store_true", help="the draft is of the model in eval()")
    given = parser.parse_args()
    how = {"small": given.small, "device": given.device, "evaluated": given.evaluated}
    print(json.dumps(work(None, given.problem, given.drafted, **how)))


if __name__ == "__main__":
    main()
