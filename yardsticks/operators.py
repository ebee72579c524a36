"""PyTorch's own database of operators as problems: a file for each sample input, whose Model is one line.

It is a job of the worker, which takes this file.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

WHOLE = (torch.float32, torch.int64, torch.bool)
"""Of these an operator's inputs have the first that it takes."""
UNDEFINED = ("empty", "resize")
"""Parts of the names of operators whose results are whatever the memory held."""
LOOKED_AT = 64
"""Sample inputs of an operator among which some are chosen."""
LEFT_OUT = "left_out.json"
"""The file of the folder that says which operators have no problem, and why."""
MOST_ELEMENTS = 20_000
"""Of the inputs of a problem: they are written out."""
FILE = '''\
"""{name} at a sample input of PyTorch's database of operators."""

from math import inf, nan  # as PyTorch's numbers are written

import torch
from torch import nn


class Model(nn.Module):
    def forward(self{parameters}):
        return {call}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


class NotOneLine(Exception):
    """The operator cannot be called in a line at this sample."""


def work(report: Any, into: str, samples: int, patterns: Sequence[str]) -> dict[str, str]:
    """Write up to so many problems of each operator that a pattern names, unless the folder has some.

    Returns which operators have none, and why.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    kept = Path(into, LEFT_OUT)
    left_out = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for operator in op_db:
        name = operator.formatted_name
        folder = Path(into, name)
        known = name in left_out or folder.exists()
        if known or not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        texts, why = texts_of(operator, samples)
        if not texts:
            left_out[name] = why
            continue
        folder.mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / f"{number}.py").write_text(text, encoding="utf-8")
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(left_out, indent=1), encoding="utf-8")
    return left_out


def texts_of(operator: Any, samples: int) -> tuple[list[str], str]:
    """The operator's problems, each of another call; where there is none, why."""
    if any(part in operator.name for part in UNDEFINED):
        return [], "its result is undefined"
    dtypes = operator.supported_dtypes("cpu")
    dtype = next((dtype for dtype in WHOLE if dtype in dtypes), None)
    if dtype is None:
        return [], "it takes neither float32 nor integers"
    texts: dict[str, str] = {}
    why = "it has no sample input"
    for sample in itertools.islice(operator.sample_inputs("cpu", dtype), LOOKED_AT):
        try:
            call, text = problem_of(operator, sample)
        except NotOneLine as reason:
            why = str(reason)
        except Exception as error:  # what a sample's own call raises
            why = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        else:
            texts.setdefault(call, text)
    return spread(list(texts.values()), samples), why


def spread(values: list[str], count: int) -> list[str]:
    """So many of them, from the first to the last."""
    if len(values) <= count:
        return values
    return [values[at * (len(values) - 1) // max(1, count - 1)] for at in range(count)]


def problem_of(operator: Any, sample: Any) -> tuple[str, str]:
    """The sample's call in a line, and the problem's file. Raises NotOneLine."""
    given = (sample.input, *sample.args)
    with torch.no_grad(), OneCall() as recorded:
        result = operator.op(*given, **sample.kwargs)
    refuse_unusual([leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)])
    written = Written()
    if named(operator.name) is operator.op:
        call = written.call(f"torch.{operator.name}", given, sample.kwargs)
    else:
        function, args, kwargs = recorded.only()
        call = written.call(name_of(function), args, kwargs)
    parameters = "".join(f", {name}" for name in written.names())
    inputs = ", ".join(as_text(tensor) for tensor in written.tensors)
    name = operator.formatted_name
    return call, FILE.format(name=name, parameters=parameters, call=call, inputs=inputs)


def named(name: str) -> object:
    """What of torch has this dotted name; None where nothing has."""
    try:
        return attrgetter(name)(torch)
    except AttributeError:
        return None


def refuse_unusual(results: list[torch.Tensor]) -> None:
    """Raises NotOneLine for what no drafted function returns, or nothing at all."""
    if not results:
        raise NotOneLine("it returns no tensor")
    if any(t.layout != torch.strided or t.is_complex() or t.is_quantized for t in results):
        raise NotOneLine("it returns complex, sparse or quantised tensors")
    if not any(t.numel() for t in results):
        raise NotOneLine("it returns empty tensors")


class OneCall(TorchFunctionMode):
    """The calls inside that give tensors, but not those that they make themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any]] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(result)):
            self.calls.append((function, args, kwargs or {}))
        return result

    def only(self) -> tuple[Any, Any, Any]:
        """The one call that was made. Raises NotOneLine."""
        if len(self.calls) != 1:
            raise NotOneLine(f"it takes {len(self.calls)} calls")
        return self.calls[0]


class Written:
    """Arguments as source, their tensors as parameters in the order in which they come."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def names(self) -> list[str]:
        return [f"x{number}" for number in range(len(self.tensors))]

    def call(self, name: str, args: Any, kwargs: Any) -> str:
        """The call of the function of this name as an expression. Raises NotOneLine."""
        given = [self.text(value) for value in args]
        keywords = [f"{key}={self.text(value)}" for key, value in kwargs.items()]
        if not self.tensors:
            raise NotOneLine("it takes no tensor, and its result lies on the CPU")
        if sum(t.numel() for t in self.tensors) > MOST_ELEMENTS or any(not t.numel() for t in self.tensors):
            raise NotOneLine("its inputs are empty, or large")
        method = name.removeprefix("torch.Tensor.")
        if method == name:
            return f"{name}({', '.join([*given, *keywords])})"
        if method.endswith(".__get__"):
            return f"{given[0]}.{method.removesuffix('.__get__')}"
        return f"{given[0]}.{method}({', '.join([*given[1:], *keywords])})"

    def text(self, value: Any) -> str:
        """One argument as source. Raises NotOneLine."""
        match value:
            case torch.Tensor():
                if value.layout != torch.strided or value.is_complex():
                    raise NotOneLine("it takes complex or sparse tensors")
                self.tensors.append(value)
                return self.names()[-1]
            case slice():
                return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
            case tuple() | list():
                items = [self.text(item) for item in value]
                return f"[{', '.join(items)}]" if isinstance(value, list) else f"({', '.join([*items, ''])})"
            case bool() | int() | float() | str() | None:
                return repr(value)
            case torch.dtype() | torch.memory_format() | torch.layout():
                return str(value)
            case torch.device():
                return f'"{value}"'
        if value is Ellipsis:
            return "..."
        raise NotOneLine(f"it takes a {type(value).__name__}")


def name_of(function: Any) -> str:
    """The function as code names it. Raises NotOneLine."""
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{function}".replace("::", ".")
    name = resolve_name(function)
    if name is None:
        raise NotOneLine("it has no public name")
    return str(name)


def as_text(tensor: torch.Tensor) -> str:
    """The tensor as source that makes one like it."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    return f"torch.tensor({plain.tolist()}, dtype={tensor.dtype})"
