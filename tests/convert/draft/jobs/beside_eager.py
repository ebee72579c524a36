"""Run drafted files beside the functions they were drafted from, by plain comparison with eager PyTorch."""

import importlib.util
from itertools import product
from pathlib import Path
from typing import Any

import torch

TOLERANCE = 2e-6


def work(report: Any, functions: list[dict[str, Any]]) -> dict[str, Any]:
    """Each of `functions` is its `name`, the path of its `source` with `f`, the `drafts`, `dims` as lists of
    sizes, `inputs` as name -> list of dims, and where it matters `dtype`, `constants`, `tolerance`, and
    tensors `given` as arguments of torch.linspace. Returns {name: what differs, or ""}."""
    found = {}
    for number, given in enumerate(functions):
        report.during(given["name"])
        found[given["name"]] = differences(given, number)
    return found


def differences(given: dict[str, Any], number: int) -> str:
    f = loaded(given["source"], f"source_{number}").f
    found = []
    for stage, path in enumerate(given["drafts"], start=1):
        run = loaded(path, f"draft_{number}_{stage}").run
        for sizes in product(*given["dims"].values()):
            dims = dict(zip(given["dims"], sizes, strict=True))
            if why := compared(f, run, drawn(given, dims), given):
                found.append(f"stage {stage} at {dims}: {why}")
    return "; ".join(found)


def compared(f: Any, run: Any, tensors: dict[str, torch.Tensor], given: dict[str, Any]) -> str:
    arguments = {**tensors, **given.get("constants", {})}
    expected = f(**arguments)
    try:
        got = run(**arguments)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    if not isinstance(expected, tuple):
        expected, got = (expected,), (got,)
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    tolerance = given.get("tolerance", TOLERANCE)
    return "; ".join(filter(None, map(difference, got, expected, [tolerance] * len(got))))


def difference(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> str:
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    exact = expected.double()
    wrong = ~torch.isclose(got.double(), exact, rtol=tolerance, atol=tolerance, equal_nan=True)
    return f"{int(wrong.sum())} of {wrong.numel()} elements differ" if wrong.any() else ""


def drawn(given: dict[str, Any], dims: dict[str, int]) -> dict[str, torch.Tensor]:
    torch.manual_seed(7)
    dtype = getattr(torch, given.get("dtype", "float32"))
    shapes = {name: [dims.get(d) or int(d) for d in shape] for name, shape in given["inputs"].items()}
    tensors = {name: (3.0 * torch.randn(shape)).to(dtype) for name, shape in shapes.items()}
    return tensors | {name: torch.linspace(*spaced) for name, spaced in given.get("given", {}).items()}


def loaded(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
