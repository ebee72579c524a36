"""One operator call, lowered and evaluated in NumPy, beside the call itself in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.rewriting import check
from pytorch_to_triton.draft.ir.values import Buffer, Cluster, Store, Value
from pytorch_to_triton.draft.lower.row import ROWS, Context, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source
from pytorch_to_triton.worker.random_numbers import DrawnByElement

from .evaluate import evaluate


def lowered(op: str, *args: Any, **kwargs: Any) -> list[np.ndarray[Any, Any]]:
    """What the row of `op` gives for these arguments (tensors, numbers, lists of them), by `evaluate`.

    Raises Refused where the row does.
    """
    load_rows()
    names, arrays = Names(), {}
    known: dict[int, Tensor] = {}

    def taken(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            name = f"t{len(arrays)}"
            if id(x) not in known:
                arrays[name] = x.double().numpy() if x.is_floating_point() else x.numpy()
                known[id(x)] = source(names, name, [sizes.size(n) for n in x.shape], dtype_of(x))
            return known[id(x)]
        return [taken(i) for i in x] if isinstance(x, list | tuple) else x

    expected = called(op, *args, **kwargs)
    one = expected[0] if len(expected) == 1 else None
    shape = tuple(sizes.size(n) for n in one.shape) if one is not None else ()

    def seed() -> Value:
        return taken(torch.randint(2**62, ())).value

    context = Context(names, shape, dtype_of(one) if one is not None else "", "out", seed=seed)
    found = ROWS[op].lowered(context, [taken(a) for a in args], {k: taken(v) for k, v in kwargs.items()})
    parts: tuple[Tensor, ...] = found if isinstance(found, tuple) else (found,)
    values = []
    for tensor, right in zip(parts, expected, strict=False):
        if right is None:
            continue
        assert tensor.dtype == dtype_of(right), f"{op} gives {right.dtype}, its row {tensor.dtype}"
        values.append(computed(tensor, arrays))
    return values


def computed(tensor: Tensor, arrays: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The tensor's elements; its loads are read from the arrays."""
    cluster = Cluster(
        "one", (Store(Buffer("out", tensor.shape, tensor.dtype), tensor.indices, tensor.value),)
    )
    check(cluster)
    known = dict(arrays)
    evaluate(cluster, known, {})
    return known["out"]


def called(op: str, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
    """The operator's own results, floats computed in float64; random numbers are those of the next seeds."""
    namespace, name, overload = op.split(".")
    function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    with torch.random.fork_rng(), DrawnByElement():
        found = function(*args, **kwargs)
    return list(found) if isinstance(found, tuple | list) else [found]


def agrees(op: str, *args: Any, tolerance: float = 1e-5, **kwargs: Any) -> None:
    """Asserts that the row computes what PyTorch does."""
    expected = [r for r in called(op, *args, **kwargs) if r is not None]
    for got, right in zip(lowered(op, *args, **kwargs), expected, strict=False):
        assert got.shape == tuple(right.shape), f"{op}: {got.shape}, not {tuple(right.shape)}"
        wanted = right.double().numpy() if right.is_floating_point() else right.numpy()
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=op)


def dtype_of(x: torch.Tensor) -> str:
    """`float32`, `int64`, ..."""
    return str(x.dtype).removeprefix("torch.")
