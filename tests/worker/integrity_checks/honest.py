"""Honest candidates violate nothing, however they are written."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from author import Author, act

from pytorch_to_triton.worker.integrity.operators import Launches, Operators
from pytorch_to_triton.worker.integrity.returned_tensors import aliases, plain
from pytorch_to_triton.worker.integrity.sandbox import Sandbox
from pytorch_to_triton.worker.integrity.settings import Leftovers, Patches, SettingsSnapshot

SCALE = """
import torch, triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

def scaled(x):
    out = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), BLOCK=64)
    return out
"""


SCALED = """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return scaled(x)
    @staticmethod
    def backward(ctx, grad):
        return scaled(grad.contiguous())

def with_gradient(x):
    x = x.detach().requires_grad_()
    torch.autograd.backward([Scaled.apply(x), Scaled.apply(x)], [torch.ones_like(x)] * 2)
    return x.grad

def of_sum(x):
    x.requires_grad_()
    Scaled.apply(x).sum().backward()
    return x.grad
"""


def observations_of(run: Callable[[], Any]) -> dict[str, Any]:
    """What all observers find about one call, inside and afterwards; empty lists where all is well."""
    with tempfile.TemporaryDirectory() as secret, tempfile.TemporaryDirectory() as kept:
        patches, flags, leftovers, operators = Patches(), SettingsSnapshot(), Leftovers(), Operators()
        sandbox = Sandbox([Path(secret)], [Path(kept)], lambda violation: None)
        with sandbox.watching(), operators, Launches(operators) as launches:
            result = run()
        outputs = [("out", result)]
        return {
            "violations": sandbox.violations,
            "patches": [*patches.changed()],
            "flags": [*flags.changed()],
            "leftovers": [*leftovers.running()],
            "plain": [plain(result)],
            "aliases": aliases(outputs, []),
            "launched": [entry["kernel"] for entry in launches.launched],
            "made": operators.made_by_triton(result),
            "computed": sorted(operators.counts),
        }


def assert_honest(run: Callable[[], Any]) -> dict[str, Any]:
    observed = observations_of(run)
    for name in ("violations", "patches", "flags", "leftovers", "aliases"):
        assert observed[name] == [], (name, observed[name])
    assert observed["plain"] == [None], observed["plain"]
    assert observed["made"], observed
    assert observed["launched"], observed
    json.dumps(observed)
    return observed


def candidate(source: str, call: Callable[[Any], Any]) -> dict[str, Any]:
    """The observed about an author's file, which is loaded inside the watch too."""
    author = Author(source)
    return assert_honest(lambda: call(author.load()))


def an_nn_module_is_honest() -> None:
    source = SCALE + (
        "class ModelNew(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.ones(100))\n"
        "    def forward(self, x):\n"
        "        return scaled(x * self.weight)\n"
    )
    observed = candidate(source, lambda module: module.ModelNew()(torch.randn(100)).detach())
    assert "aten.mul" in observed["computed"]


def ordinary_python_is_honest() -> None:
    source = SCALE + (
        "import abc, collections, contextlib, dataclasses, enum, functools, inspect, io, itertools, json\n"
        "import logging, math, os, platform, random, tempfile, time, traceback, typing, warnings, ctypes\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Sizes:\n    block: int = 64\n"
        "Point = collections.namedtuple('Point', 'x y')\n"
        "class Pair(typing.NamedTuple):\n    x: int\n    y: int\n"
        "class Colour(enum.Enum):\n    RED = 1\n"
        "Made = enum.Enum('Made', 'A B')\n"
        "Where = typing.TypedDict('Where', {'x': int})\n"
        "T = typing.TypeVar('T')\n"
        "class Shape(typing.Protocol):\n    def area(self) -> int: ...\n"
        "log = logging.getLogger(__name__)\n"
        "@functools.lru_cache\n"
        "def block(n): return Sizes().block\n"
        "def run(x):\n"
        "    log.warning('about %s', Point(1, 2), stack_info=True)\n"
        "    with warnings.catch_warnings():\n"
        "        warnings.simplefilter('ignore')\n"
        "        warnings.warn('slow', stacklevel=2)\n"
        "    try:\n        1 / 0\n    except ZeroDivisionError:\n        traceback.format_exc()\n"
        "    with tempfile.TemporaryDirectory() as folder:\n"
        "        with open(os.path.join(folder, 'log'), 'w') as file:\n            print(Made.A, file=file)\n"
        "    with tempfile.NamedTemporaryFile() as one, tempfile.TemporaryFile() as other:\n"
        "        one.write(b'1'), other.write(b'2')\n"
        "    with open(__file__) as file:\n        file.read()\n"
        "    exec('y = 1', {})\n"
        "    inspect.signature(run), inspect.getsource(run), run.__code__, run.__globals__\n"
        "    assert Pair(1, 2) and platform.system() and torch.cuda.device_count() >= 0\n"
        "    block(3)\n"
        "    return scaled(x)\n"
    )
    candidate(source, lambda module: module.run(torch.randn(100)))


def autotuned_and_heuristic_kernels_are_honest() -> None:
    source = SCALE + (
        "configs = [triton.Config({'BLOCK': b}) for b in (32, 64)]\n"
        "tuned = triton.autotune(configs, key=['n'], restore_value=['out_ptr'])(scale_kernel)\n"
        "guessed = triton.heuristics({'BLOCK': lambda args: 64})(scale_kernel)\n"
        "def run(x):\n"
        "    out = torch.empty_like(x)\n"
        "    tuned[lambda meta: (triton.cdiv(100, meta['BLOCK']),)](x, out, 100)\n"
        "    guessed[(2,)](x, out, 100)\n"
        "    return out\n"
    )
    x = torch.randn(100)
    observed = candidate(source, lambda module: module.run(x))
    assert observed["launched"] == ["scale_kernel"]
    assert observed["computed"] == ["aten.empty_like"], observed["computed"]


def an_autograd_function_is_honest() -> None:
    candidate(SCALE + SCALED, lambda module: module.of_sum(torch.randn(100)))


def a_custom_operator_is_honest() -> None:
    source = SCALE + (
        "@torch.library.custom_op('integrity::scaled', mutates_args=())\n"
        "def op(x: torch.Tensor) -> torch.Tensor:\n    return scaled(x)\n"
    )
    candidate(source, lambda module: module.op(torch.randn(100)))


def an_operator_of_a_library_is_honest_with_gradients_too() -> None:
    source = SCALE + (
        "library = torch.library.Library('integrity_library', 'FRAGMENT')\n"
        "library.define('scaled(Tensor x) -> Tensor')\n"
        "library.impl('scaled', scaled, 'CompositeExplicitAutograd')\n"
        "op = torch.ops.integrity_library.scaled\n"
        "torch.library.register_autograd('integrity_library::scaled', lambda ctx, g: op(g), lib=library)\n"
        "def with_gradient(x):\n"
        "    x = x.detach().requires_grad_()\n"
        "    op(x).backward(torch.ones_like(x))\n"
        "    return x.grad\n"
    )
    observed = candidate(source, lambda module: module.op(torch.randn(100)))
    assert observed["computed"] == ["aten.empty_like", "aten.randn"], observed["computed"]
    candidate(
        source.replace("_library", "_differentiated"), lambda module: module.with_gradient(torch.randn(100))
    )


def autograds_own_sum_of_two_gradients_is_honest() -> None:
    observed = candidate(SCALE + SCALED, lambda module: module.with_gradient(torch.ones(100)))
    assert "aten.add" not in observed["computed"], observed["computed"]
    summed = SCALED.replace("grad.contiguous())", "grad) + 1")
    observed = candidate(SCALE + summed, lambda module: module.with_gradient(torch.ones(100)))
    assert "aten.add" in observed["computed"], observed["computed"]


def a_sibling_module_in_a_kept_folder_is_imported() -> None:
    author = Author("import sys\nsys.path.insert(0, KEPT)\n" + act("import integrity_sibling"))
    (author.kept / "integrity_sibling.py").write_text("SIZE = 3\n")
    author.act()
    assert author.sandbox.violations == []
