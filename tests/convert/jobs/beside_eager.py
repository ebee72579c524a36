"""Drafted files beside eager PyTorch, in every declared dtype and with one tensor in another."""

import importlib.util
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def work(report: Any, drafts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """For each draft what differs, by its name: the dtypes and the first words of the difference."""
    return {draft["name"]: list(differences(draft)) for draft in drafts}


def differences(draft: dict[str, Any]) -> Iterator[str]:
    try:
        yield from beside_eager(draft)
    except Exception as error:
        yield f"raised {error!r}"


def beside_eager(draft: dict[str, Any]) -> Iterator[str]:
    eager = getattr(loaded(draft["target"]), draft["function"])
    runs = [loaded(file).run for file in draft["files"]]
    for sizes in draft["sizes"]:
        for dtypes in in_dtypes(draft["tensors"]):
            given = generated(draft["tensors"], dtypes, sizes)
            try:
                expected = eager(**given)
            except RuntimeError:
                continue
            for run in runs:
                yield from compared(run, given, expected, f"{sizes} {dtypes}")


def loaded(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_dtypes(tensors: dict[str, Any]) -> list[dict[str, str]]:
    """All tensors in each dtype as far as they declare it, and each tensor alone in each of its dtypes."""
    first = {name: declared[0] for name, (declared, _, _) in tensors.items()}
    every = dict.fromkeys(chain.from_iterable(declared for declared, _, _ in tensors.values()))
    alike = [{n: d if d in tensors[n][0] else first[n] for n in tensors} for d in every]
    apart = [{**first, n: d} for n in tensors for d in tensors[n][0]]
    return [dict(items) for items in dict.fromkeys(tuple(d.items()) for d in [*alike, *apart])]


def generated(
    tensors: dict[str, Any], dtypes: dict[str, str], sizes: dict[str, int]
) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    return {
        name: (scale * torch.randn([sizes[d] for d in shape], generator=generator)).to(
            getattr(torch, dtypes[name])
        )
        for name, (_, shape, scale) in tensors.items()
    }


def compared(run: Any, given: dict[str, torch.Tensor], expected: Any, what: str) -> Iterator[str]:
    try:
        found = run(**given)
    except AssertionError as refusal:
        if "drafted for" not in str(refusal):
            yield f"{what}: {refusal}"
        return
    short = max(TOLERANCE.get(str(t.dtype)[6:], 0.0) for t in given.values())
    try:
        torch.testing.assert_close(found, expected, rtol=short, atol=short, equal_nan=True)
    except AssertionError as difference:
        yield f"{what}: {difference}"
