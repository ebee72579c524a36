"""Tensors on disk: raw storage bytes with JSON beside them, so that nothing is ever unpickled.

A value is written as one record: `{"form": "tensor", "file", "bytes", "dtype", "shape", "strides",
"offset"}`, `{"form": "list", "items"}`, `{"form": "packed", "packing"}`, `{"form": "output", "traits",
"tensor"}` or `{"form": "constant", "value"}`.
"""

import ctypes
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..allocation import storage_bytes
from ..interpreter.fake_cuda import device_of
from ..runtime import interpreting
from ..wire.packing import Packing, packing_of

Record = dict[str, Any]


def write_values(values: Mapping[str, Any], folder: Path) -> None:
    """Write named values into `folder`: values.json and one file a tensor."""
    folder.mkdir(parents=True, exist_ok=True)
    names = iter(range(1 << 30))
    records = {name: write_value(value, folder, names) for name, value in values.items()}
    (folder / "values.json").write_text(json.dumps(records))


def read_values(folder: Path, device: str) -> dict[str, Any]:
    """Read what `write_values` wrote, into fresh memory on `device`, strides and storage offsets kept.

    Raises ValueError where the bytes do not fit their record.
    """
    records = json.loads((folder / "values.json").read_text())
    return {name: read_value(record, folder, device) for name, record in records.items()}


def write_value(value: Any, folder: Path, names: Iterator[int]) -> Record:
    if isinstance(value, torch.Tensor):
        return write_tensor(value, folder / f"{next(names)}.bin")
    if isinstance(value, list | tuple):
        return {"form": "list", "items": [write_value(item, folder, names) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"form": "constant", "value": value}
    if isinstance(value, Packing):
        return {"form": "packed", "packing": value.as_json()}
    if isinstance(value, OutputLeaf):
        return {"form": "output", "traits": value.traits, "tensor": write_value(value.tensor, folder, names)}
    raise TypeError(
        f"an input of type {type(value).__name__} cannot be passed; tensors, plain constants, and dicts, "
        "lists, tuples, NamedTuples and dataclasses of them can"
    )


def read_value(record: Record, folder: Path, device: str) -> Any:
    if record["form"] == "tensor":
        return read_tensor(record, folder, device)
    if record["form"] == "list":
        return [read_value(item, folder, device) for item in record["items"]]
    if record["form"] == "output":
        return OutputLeaf(record["traits"], read_value(record["tensor"], folder, device))
    return packing_of(record["packing"]) if record["form"] == "packed" else record["value"]


def write_tensor(tensor: torch.Tensor, file: Path) -> Record:
    """Write the tensor's whole storage, with whatever lies between its elements."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    data = storage_bytes(tensor).cpu()
    file.write_bytes(memory(data))
    return {
        "form": "tensor",
        "file": file.name,
        "bytes": data.numel(),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "offset": tensor.storage_offset(),
    }


def read_tensor(record: Record, folder: Path, device: str) -> torch.Tensor:
    """The tensor in a storage of its own, strides and storage offset kept."""
    data = torch.empty(record["bytes"], dtype=torch.uint8)
    with (folder / record["file"]).open("rb") as file:
        if file.readinto(memory(data)) != record["bytes"]:
            raise ValueError(f"{record['file']} is shorter than {record['bytes']} bytes")
    storage = data.to(device).untyped_storage()
    view = torch.empty(0, dtype=getattr(torch, record["dtype"]), device=device)
    return view.set_(storage, record["offset"], record["shape"], record["strides"])


def on_gpu(value: Any) -> Any:
    """A tensor on the GPU or on what poses as one; anything else as it is."""
    return value.cuda() if isinstance(value, torch.Tensor) else value


def memory(data: torch.Tensor) -> Any:
    """The bytes of a flat uint8 CPU tensor as a writable buffer, without a copy."""
    return (ctypes.c_char * data.numel()).from_address(data.data_ptr()) if data.numel() else bytearray()


@dataclass(frozen=True)
class OutputLeaf:
    """One leaf of what a call returned."""

    traits: dict[str, Any]
    """`type`, and of a tensor or number `dtype`, `shape`, `device`."""
    tensor: torch.Tensor | None
    """Its values, contiguous; a Python number as a 0-dimensional tensor; None of anything else."""


Outputs = dict[str, OutputLeaf]
"""By path."""


def output_of(leaf: Any, why_not_plain: str | None = None) -> OutputLeaf:
    """A copy of the leaf; what is no plain tensor has a type and nothing else."""
    if why_not_plain is not None:
        return OutputLeaf({"type": why_not_plain}, None)
    is_tensor = isinstance(leaf, torch.Tensor)
    kind = "Tensor" if is_tensor else type(leaf).__name__
    tensor = leaf if is_tensor else number_as_tensor(leaf)
    if tensor is None:
        return OutputLeaf({"type": kind}, None)
    traits = {
        "type": kind,
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        # Under the interpreter, that which it would have on a GPU.
        "device": (device_of(tensor) if interpreting() else tensor.device).type,
    }
    plain = tensor.detach().resolve_conj().resolve_neg()
    return OutputLeaf(
        traits, torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).copy_(plain)
    )


def same_output(left: OutputLeaf | None, right: OutputLeaf | None) -> bool:
    """Equal in every trait and every bit."""
    if left is None or right is None or left.traits != right.traits:
        return False
    if left.tensor is None or right.tensor is None:
        return left.tensor is right.tensor
    return bool(storage_bytes(left.tensor).equal(storage_bytes(right.tensor)))


def number_as_tensor(leaf: Any) -> torch.Tensor | None:
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.float32)
    return torch.tensor(leaf) if isinstance(leaf, bool | int) else None


def leaves(value: Any, path: str = "out") -> list[tuple[str, Any]]:
    """A nested result as (path, leaf) pairs: `out`, `out[0]`, `out.logits`, `out.cache[1]`.

    A NamedTuple is a tuple: a kernel may return a plain one in its place.
    """
    if isinstance(value, Mapping):
        named = [(f"{path}.{key}", item) for key, item in value.items()]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = [(f"{path}.{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    elif isinstance(value, list | tuple):
        named = [(f"{path}[{i}]", item) for i, item in enumerate(value)]
    else:
        return [(path, value)]
    return [leaf for key, item in named for leaf in leaves(item, key)]
