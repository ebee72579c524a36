"""Tensors on disk: raw storage bytes with JSON beside them, so that nothing is ever unpickled.

A value is written as one record: `{"form": "tensor", "file", "bytes", "dtype", "shape", "strides",
"offset"}`, `{"form": "list", "items"}` or `{"form": "constant", "value"}`.
"""

import ctypes
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]


def write_values(values: Mapping[str, Any], folder: Path) -> None:
    """Write named values into `folder`: values.json and one file a tensor."""
    folder.mkdir(parents=True, exist_ok=True)
    names = iter(range(1 << 30))
    records = {name: write_value(value, folder, names) for name, value in values.items()}
    (folder / "values.json").write_text(json.dumps(records))


def read_values(folder: Path, device: str) -> dict[str, Any]:
    """Read what `write_values` wrote, into fresh memory on `device`, strides and storage offsets kept."""
    records = json.loads((folder / "values.json").read_text())
    return {name: read_value(record, folder, device) for name, record in records.items()}


def write_value(value: Any, folder: Path, names: Iterator[int]) -> Record:
    if isinstance(value, torch.Tensor):
        return write_tensor(value, folder / f"{next(names)}.bin")
    if isinstance(value, list | tuple):
        return {"form": "list", "items": [write_value(item, folder, names) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"form": "constant", "value": value}
    raise TypeError(
        f"an input of type {type(value).__name__} cannot be passed; tensors, lists and plain constants can"
    )


def read_value(record: Record, folder: Path, device: str) -> Any:
    if record["form"] == "tensor":
        return read_tensor(record, folder, device)
    if record["form"] == "list":
        return [read_value(item, folder, device) for item in record["items"]]
    return record["value"]


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
        file.readinto(memory(data))
    storage = data.to(device).untyped_storage()
    view = torch.empty(0, dtype=getattr(torch, record["dtype"]), device=device)
    return view.set_(storage, record["offset"], record["shape"], record["strides"])


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's whole storage as a flat uint8 tensor that shares it."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def memory(data: torch.Tensor) -> Any:
    """The bytes of a flat uint8 CPU tensor as a writable buffer, without a copy."""
    return (ctypes.c_char * data.numel()).from_address(data.data_ptr()) if data.numel() else bytearray()


def write_outputs(outputs: list[tuple[str, Any]], folder: Path) -> None:
    """Write what a call returned, flattened: outputs.json holds a record for each path.

    Tensors are written contiguous; a Python number as a 0-dimensional tensor, which `type` tells apart.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        {"path": path, **write_output(leaf, folder / f"{i}.bin")} for i, (path, leaf) in enumerate(outputs)
    ]
    (folder / "outputs.json").write_text(json.dumps(records))


def write_output(leaf: Any, file: Path) -> Record:
    kind = "Tensor" if is_tensor(leaf) else type(leaf).__name__
    tensor = leaf if is_tensor(leaf) else number_as_tensor(leaf)
    if tensor is None:
        return {"form": "other", "type": kind}
    dense = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())
    return {**write_tensor(dense, file), "type": kind, "device": tensor.device.type}


def read_outputs(folder: Path) -> dict[str, Record]:
    """The records of `write_outputs` by path."""
    records: list[Record] = json.loads((folder / "outputs.json").read_text())
    return {record["path"]: record for record in records}


def number_as_tensor(leaf: Any) -> torch.Tensor | None:
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.float32)
    return torch.tensor(leaf) if isinstance(leaf, bool | int) else None


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def leaves(value: Any, path: str = "out") -> list[tuple[str, Any]]:
    """A nested result as (path, leaf) pairs: `out`, `out[0]`, `out.logits`, `out.cache[1]`."""
    if isinstance(value, Mapping):
        named = [(f"{path}.{key}", item) for key, item in value.items()]
    elif hasattr(value, "_fields"):
        named = [(f"{path}.{key}", getattr(value, key)) for key in value._fields]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = [(f"{path}.{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    elif isinstance(value, list | tuple):
        named = [(f"{path}[{i}]", item) for i, item in enumerate(value)]
    else:
        return [(path, value)]
    return [leaf for key, item in named for leaf in leaves(item, key)]
