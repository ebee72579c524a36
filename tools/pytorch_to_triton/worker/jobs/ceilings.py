"""Job `ceilings`: the most that this device reaches, on random data."""

from collections.abc import Callable, Iterator
from itertools import repeat
from statistics import median
from typing import Any

import torch

from ..device import Flush, cold_milliseconds
from ..job_report import JobReport

COPY_BYTES = 2**30
COPY_OF_MEMORY = 8
"""On a small device, a copy takes at most one part in this many of its memory."""
MATRIX = 8192
"""Rows and columns of the products; large enough that every GPU of today reaches its rate."""
SLOW_MATRIX = 4096
"""For dtypes without fast units."""
REPEATS = 15
WARM_UP = 5


def work(report: JobReport) -> dict[str, Any]:
    """Copy bandwidth in GB/s, read plus written, and dense products in TFLOP/s by operand dtype."""
    report.during("copy")
    report.progress(0, None, "measuring what this device can do")
    rates = {}
    for name, product, size in products():
        report.during(f"products of {name}")
        try:
            rates[name] = 2 * size**3 / milliseconds(product) / 1e9
        except RuntimeError:  # this device has no such product
            continue
    return {"device": torch.cuda.get_device_name(), "copy_gbytes_per_s": copy_rate(), "matmul_tflops": rates}


def copy_rate() -> float:
    """Of the fastest of three ways to copy: the driver's, torch's, and torch's for wide elements."""
    size = min(COPY_BYTES, torch.cuda.mem_get_info()[1] // COPY_OF_MEMORY)
    source = torch.randint(256, (size,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    wide = (target.view(torch.complex128), source.view(torch.complex128))
    ways: tuple[Callable[[], object], ...] = (
        lambda: target.copy_(source),
        lambda: wide[0].copy_(wide[1]),
        lambda: torch.mul(source.view(torch.float32), 1.0, out=target.view(torch.float32)),
    )
    return max(2 * size / milliseconds(way) / 1e6 for way in ways)


def products() -> Iterator[tuple[str, Callable[[], object], int]]:
    """Each dtype's square product, and its size."""
    for name in ("bfloat16", "float16"):
        yield name, product(getattr(torch, name), MATRIX), MATRIX
    for name, tf32 in (("tf32", True), ("float32", False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        yield name, product(torch.float32, SLOW_MATRIX), SLOW_MATRIX
    yield "float64", product(torch.float64, SLOW_MATRIX), SLOW_MATRIX
    for name in ("float8_e4m3fn", "int8"):
        if (multiply := short_product(name)) is not None:
            yield name, multiply, MATRIX


def product(dtype: torch.dtype, size: int) -> Callable[[], object]:
    """A product of two random matrices; zeros would be faster."""
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def short_product(name: str) -> Callable[[], object] | None:
    """The same in 8 bits; None where this torch has none."""
    if name == "int8" and hasattr(torch, "_int_mm"):
        a, b = (torch.randint(-9, 9, (MATRIX, MATRIX), dtype=torch.int8, device="cuda") for _ in range(2))
        return lambda: torch._int_mm(a, b.t())
    if name == "float8_e4m3fn" and hasattr(torch, "_scaled_mm"):
        dtype = torch.float8_e4m3fn
        a, b = (torch.randn(MATRIX, MATRIX, device="cuda").to(dtype) for _ in range(2))
        scale = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
    return None


def milliseconds(call: Callable[[], object]) -> float:
    """The median of a call with a cold L2 cache."""
    flush = Flush()
    for _ in range(WARM_UP):
        call()
    return float(median(cold_milliseconds(repeat(call, REPEATS), REPEATS, flush)))
