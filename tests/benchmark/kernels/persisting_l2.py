"""Cheats: what it read stays in the L2 cache, marked as persisting, so that other writes do not evict it."""

import ctypes
import functools

import torch
from honest_softmax import DIMS, INPUTS, launch, reference

__all__ = ["DIMS", "INPUTS", "reference", "run"]


class Window(ctypes.Structure):
    """cudaAccessPolicyWindow, in the union of stream attributes."""

    _fields_ = (
        ("base_ptr", ctypes.c_void_p),
        ("num_bytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit_property", ctypes.c_int),
        ("miss_property", ctypes.c_int),
        ("rest", ctypes.c_byte * 32),
    )


PERSISTING, STREAMING = 2, 1
ACCESS_POLICY_WINDOW = 1
LIMIT_PERSISTING_L2 = 6
RESERVED_BYTES = 32 * 2**20


@functools.cache
def runtime() -> ctypes.CDLL:
    """CUDA's runtime, once part of the cache is set aside."""
    library = ctypes.CDLL(f"libcudart.so.{(torch.version.cuda or '13').partition('.')[0]}")
    library.cudaDeviceSetLimit(LIMIT_PERSISTING_L2, ctypes.c_size_t(RESERVED_BYTES))
    return library


def persist(x: torch.Tensor) -> None:
    """Have what the current stream reads of x stay in the cache."""
    size = min(x.numel() * x.element_size(), RESERVED_BYTES)
    window = Window(x.data_ptr(), size, 1.0, PERSISTING, STREAMING)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert runtime().cudaStreamSetAttribute(stream, ACCESS_POLICY_WINDOW, ctypes.byref(window)) == 0


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N]."""
    persist(x)
    return launch(x)
