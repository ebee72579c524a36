"""Tensors and results come back from disk as they were, layout included."""

from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_to_triton.worker.calls.tensors import (
    OutputLeaf,
    leaves,
    output_of,
    read_values,
    write_values,
)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).view(3, 4).T,
        torch.arange(12, dtype=torch.int16)[::2],
        torch.arange(12.0)[5:].to(torch.bfloat16),
        torch.arange(12.0)[5:],
        torch.tensor(3.0).expand(2, 3),
        torch.empty(0, 3),
        torch.tensor(True),
        torch.tensor([torch.nan, -0.0, torch.inf]).to(torch.float8_e5m2),
    ],
    ids=["transposed", "every second", "bfloat16", "offset", "expanded", "empty", "0-dim", "float8"],
)
def test_a_tensor_keeps_values_strides_and_offset(tensor: torch.Tensor, tmp_path: Path) -> None:
    write_values({"x": tensor}, tmp_path)
    back = read_values(tmp_path, "cpu")["x"]
    assert back.dtype == tensor.dtype
    assert (back.shape, back.stride()) == (tensor.shape, tensor.stride())
    assert back.storage_offset() == tensor.storage_offset()
    assert torch.allclose(back.double(), tensor.double(), rtol=0, atol=0, equal_nan=True)


def test_lists_and_constants_come_back(tmp_path: Path) -> None:
    write_values({"xs": [torch.ones(2), torch.zeros(3)], "k": 2, "mode": "tanh", "no": None}, tmp_path)
    back = read_values(tmp_path, "cpu")
    assert [item.tolist() for item in back["xs"]] == [[1, 1], [0, 0, 0]]
    assert (back["k"], back["mode"], back["no"]) == (2, "tanh", None)


def test_what_cannot_be_passed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="of type object cannot be passed"):
        write_values({"x": object()}, tmp_path)


Pair = namedtuple("Pair", "left right")


@dataclass
class Answer:
    logits: Any
    cache: list[Any]


@pytest.mark.parametrize(
    ("result", "paths"),
    [
        (1, ["out"]),
        ((1, 2), ["out[0]", "out[1]"]),
        ({"a": 1, "b": [2]}, ["out.a", "out.b[0]"]),
        (Pair(1, (2, 3)), ["out[0]", "out[1][0]", "out[1][1]"]),
        (Answer(1, [2]), ["out.logits", "out.cache[0]"]),
        (None, ["out"]),
        ([], []),
    ],
)
def test_a_nested_result_is_flattened_to_named_paths(result: Any, paths: list[str]) -> None:
    assert [path for path, _ in leaves(result)] == paths


def test_outputs_are_kept_dense_and_numbers_are_reported_from_tensors(tmp_path: Path) -> None:
    leaf = torch.ones(3, 2).T
    outputs = {path: output_of(value) for path, value in {"t": leaf, "n": 2.5, "i": 3, "none": None}.items()}
    leaf.zero_()
    write_values(outputs, tmp_path)
    back = read_values(tmp_path, "cpu")
    assert [back[path].traits["type"] for path in outputs] == ["Tensor", "float", "int", "NoneType"]
    assert back["t"].traits == {"type": "Tensor", "dtype": "float32", "shape": [2, 3], "device": "cpu"}
    tensor, number = back["t"].tensor, back["i"].tensor
    assert tensor is not None
    assert number is not None
    assert (tensor.stride(), tensor.tolist()) == ((3, 1), [[1, 1, 1], [1, 1, 1]])
    assert number.item() == 3
    assert back["none"].tensor is None


def test_what_is_no_plain_tensor_is_kept_as_its_type_alone(tmp_path: Path) -> None:
    write_values({"out": output_of(torch.ones(3), "LazyTensor")}, tmp_path)
    assert read_values(tmp_path, "cpu")["out"] == OutputLeaf({"type": "LazyTensor"}, None)


def test_bytes_that_are_too_few_for_their_record_are_refused(tmp_path: Path) -> None:
    write_values({"out": output_of(torch.ones(3))}, tmp_path)
    (tmp_path / "0.bin").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"0\.bin is shorter than 12 bytes"):
        read_values(tmp_path, "cpu")
