"""Tensors that the traced code made itself, such as a table of weights, as operators that make them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

LARGEST = 16
"""So many numbers are written out one by one; of more, only those in even steps are known."""


def constant_tensors(program: ExportedProgram, state: set[str]) -> Iterator[tuple[str, torch.Tensor]]:
    """Placeholders of tensors that are neither arguments nor state, with their values where known."""
    signature = program.graph_signature
    keys = {**signature.inputs_to_lifted_tensor_constants, **signature.inputs_to_buffers}
    for name, key in keys.items():
        value = program.constants.get(key)
        if key not in state and type(value) is torch.Tensor and value.dim() > 0:
            yield name, value


def made(name: str, tensor: torch.Tensor) -> list[dict[str, Any]]:
    """The nodes that make the tensor, the last one under its name; none where it is too large."""
    flat = tensor.flatten()
    shaped = [_node(name, "aten.view.default", [_node_named(f"{name}_flat"), _list(tensor.shape)], tensor)]
    inner = f"{name}_flat" if tensor.dim() > 1 else name
    rest = shaped if tensor.dim() > 1 else []
    if (steps := _even_steps(flat)) is not None:
        made_in = {"dtype": _literal(str(flat.dtype).removeprefix("torch."))}
        arange = _node(inner, "aten.arange.start_step", [_literal(n) for n in steps], flat)
        return [{**arange, "kwargs": made_in}, *rest]
    if not 0 < flat.numel() <= LARGEST or not bool(torch.isfinite(flat).all()):
        return []
    each = [
        _node(f"{name}_{i}", "aten.full.default", [_list([1]), _literal(n.item())], flat[i : i + 1])
        for i, n in enumerate(flat)
    ]
    parts = {"form": "list", "items": [_node_named(node["name"]) for node in each]}
    return [*each, _node(inner, "aten.cat.default", [parts], flat), *rest]


def known_constants(program: ExportedProgram, state: set[str], wanted: set[Node]) -> list[dict[str, Any]]:
    """The nodes that make all constant tensors that a result depends on."""
    needed = {node.name for node in wanted}
    found = constant_tensors(program, state)
    return [node for name, tensor in found if name in needed for node in made(name, tensor)]


def _even_steps(flat: torch.Tensor) -> tuple[int, int, int] | None:
    """Start, end and step of whole numbers in even steps."""
    if flat.dtype == torch.bool or flat.numel() < 2 or not bool(torch.isfinite(flat).all()):
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    end = start + step * flat.numel()
    even = step != 0 and torch.equal(flat, torch.arange(start, end, step, dtype=flat.dtype))
    return (start, end, step) if even else None


def _node(name: str, op: str, arguments: list[dict[str, Any]], tensor: torch.Tensor) -> dict[str, Any]:
    shape = list(tensor.shape)
    return {
        "name": name,
        "op": op,
        "args": arguments,
        "kwargs": {},
        "shape": {"expressions": [str(n) for n in shape], "traced": shape},
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "line": None,
    }


def _literal(value: float | str) -> dict[str, Any]:
    return {"form": "literal", "value": value}


def _list(values: Any) -> dict[str, Any]:
    return {"form": "list", "items": [_literal(n) for n in values]}


def _node_named(name: str) -> dict[str, Any]:
    return {"form": "node", "name": name}
