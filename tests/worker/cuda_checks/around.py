"""Outside of `fake_gpu()` torch is as it was; code that asks for no device computes the same inside."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from run_checks import loaded
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import build_plan
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.worker.calls.generate import generate_arguments
from pytorch_to_triton.worker.calls.tensors import leaves
from pytorch_to_triton.worker.interpreter.autotuning import InterpreterDriver
from pytorch_to_triton.worker.interpreter.fake_cuda import device_of, fake_gpu
from pytorch_to_triton.worker.loading.packing import by_parameter

ROOT = Path(__file__).parents[3]
AGNOSTIC = [
    *sorted((ROOT / "reference_kernels").glob("*.py")),
    *(path for path in sorted((ROOT / "tests/kernels/honest").glob("*.py")) if "cuda_only" not in path.stem),
][:: 1 if os.environ.get("ALL_KERNELS") else 9]
CUDA_ONLY = ROOT / "tests/kernels/honest/cuda_only_softmax.py"
LIMIT_ELEMENTS = 2**11
CASES = 2
Results = tuple[list[dict[str, Any]], list[dict[str, Any]]]
OWNERS = (
    torch, torch.cuda, torch.cuda.nvtx, torch.cuda.random, torch.cuda.memory, torch.accelerator,
    torch.backends.cuda, torch.library, torch.library.Library, Tensor, CustomOpDef, BackwardCFunction,
    DeviceContext, InterpreterDriver,
)  # fmt: skip


def inputs_of(contents: ModuleType) -> list[dict[str, Any]]:
    """The arguments of the first small cases that the file declares."""
    declaration = parse_declaration(contents.INPUTS, contents.DIMS, getattr(contents, "REQUIRES", []))
    cases = build_plan(declaration, CaseSizeLimits(LIMIT_ELEMENTS, 0)).in_order()[:CASES]
    assert cases
    return [generate_arguments(case.model_dump(mode="json"), seed=1) for case in cases]


def outputs(contents: ModuleType, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the file's function returns and what it leaves in its arguments, by path."""
    given = {key: v.clone() if isinstance(v, Tensor) else v for key, v in arguments.items()}
    torch.manual_seed(1)
    with torch.no_grad():
        packed = by_parameter(given, vars(contents))
        return dict(leaves([getattr(contents, name)(**packed), *packed.values()]))


def assert_same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def results_of(path: Path, cases: list[dict[str, Any]] | None = None) -> Results:
    """The first cases and what the file's functions return."""
    contents = loaded(path)
    cases = cases or inputs_of(contents)
    return cases, [outputs(contents, name, arguments) for arguments in cases for name in ("reference", "run")]


def with_other_operators(path: Path, folder: Path) -> Path:
    """A copy whose operators have other names: torch 2.11 crashes in one that is registered twice."""
    copy, text = folder / path.name, path.read_text()
    for namespace in {*re.findall(r"torch\.ops\.(\w+)\.", text)} - {"aten"}:
        text = re.sub(rf"\b{namespace}\b", f"again_{namespace}", text)
    copy.write_text(text)
    return copy


def code_that_asks_for_no_device_computes_the_same_inside() -> None:
    assert len(AGNOSTIC) > 3
    for path in AGNOSTIC:
        cases, outside = results_of(path)
        with fake_gpu(), TemporaryDirectory() as folder:
            _, inside = results_of(with_other_operators(path, Path(folder)), cases)
            devices = [{v.device.type for v in r.values() if isinstance(v, Tensor)} for r in inside]
        assert all(found == {"cuda"} for found in devices), path
        for actual, expected in zip(inside, outside, strict=True):
            assert_same(actual, expected)


def code_for_a_gpu_alone_computes_what_its_reference_does() -> None:
    with fake_gpu():
        contents = loaded(CUDA_ONLY)
    for arguments in inputs_of(contents):
        expected = contents.reference(**arguments)
        with fake_gpu():
            actual = contents.run(**arguments)
        torch.testing.assert_close(actual, expected)


def torch_is_unchanged_afterwards_even_after_an_exception() -> None:
    before = [dict(vars(owner)) for owner in OWNERS]
    try:
        with fake_gpu():
            torch.set_default_device("cuda")
            raise KeyError
    except KeyError:
        pass
    for owner, attributes in zip(OWNERS, before, strict=True):
        changed = {
            name
            for name in vars(owner).keys() | attributes.keys()
            if vars(owner).get(name) is not attributes.get(name)
        }
        assert changed - {"_GLOBAL_DEVICE_CONTEXT"} == set(), (owner, changed)
    assert torch.get_default_device() == torch.zeros(1).device == torch.device("cpu")
    assert not torch.zeros(1).is_cuda
    assert torch.overrides._get_current_function_mode_stack() == []


def where_an_output_lies_is_known_afterwards() -> None:
    with fake_gpu():
        on_gpu, on_host = torch.zeros(3, device="cuda"), torch.zeros(3)
    assert on_gpu.device == on_host.device == torch.device("cpu")
    assert device_of(on_gpu) == torch.device("cuda:0")
    assert device_of(on_host) == torch.device("cpu")


class Devices(TorchDispatchMode):
    """Notes the device that every new tensor is asked for on, as torch's own code sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.seen.add(result.device.type)
        return result


class Widened(TorchFunctionMode):
    """Turns float32 into float64, as the reference's precise run does."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {key: torch.float64 if v is torch.float32 else v for key, v in (kwargs or {}).items()}
        return func(*args, **named)


def other_modes_work_around_it_and_within_it() -> None:
    with Devices() as outer, fake_gpu(), Widened(), Devices() as inner:
        x = torch.ones(4, device="cuda", dtype=torch.float32)
        assert x.is_cuda
        assert (x.cpu() + 1).device.type == "cpu"
        assert x.dtype == torch.float64
    assert outer.seen == inner.seen == {"cpu"}
