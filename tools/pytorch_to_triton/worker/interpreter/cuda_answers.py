"""What `torch.cuda`, and the modules about it, answer where a CPU plays one CUDA GPU.

The GPU described is the smallest that Triton's users have: compute capability 8.0, and otherwise that of
`autotuning.InterpreterDriver`. Everything runs in order, at once: streams and events do
nothing, and nothing can be timed.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import InterpreterError

from .autotuning import InterpreterDriver

Replacement = tuple[object, str, Any]
"""The owner of an attribute, its name, and the value that replaces it."""
DEVICE = torch.device("cuda", 0)
CAPABILITY = (8, 0)
LIMITS = InterpreterDriver().get_device_properties(0)


@dataclass(frozen=True)
class DeviceProperties:
    """`torch.cuda.get_device_properties`: memory sizes in bytes."""

    name: str = "Triton interpreter"
    major: int = CAPABILITY[0]
    minor: int = CAPABILITY[1]
    total_memory: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    multi_processor_count: int = LIMITS["multiprocessor_count"]
    warp_size: int = LIMITS["warpSize"]
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = LIMITS["max_num_regs"]
    shared_memory_per_block: int = LIMITS["max_shared_mem"]
    shared_memory_per_block_optin: int = LIMITS["max_shared_mem"]
    shared_memory_per_multiprocessor: int = LIMITS["max_shared_mem"]
    L2_cache_size: int = 4 << 20
    is_integrated: int = 0
    is_multi_gpu_board: int = 0


PROPERTIES = DeviceProperties()


def always(value: Any) -> Callable[..., Any]:
    """A function that returns `value` whatever it is called with."""
    return lambda *args, **kwargs: value


nothing, yes, no, one, zero = map(always, (None, True, False, 1, 0))
"""`nothing` has no effect, where everything happens in order and on one device."""


def refusing(message: str) -> Callable[..., NoReturn]:
    """A function that raises InterpreterError whatever it is called with."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise InterpreterError(message)

    return refuse


no_timing = refusing("the interpreter cannot time a kernel: that needs a GPU")
no_graphs = refusing("the interpreter cannot capture a CUDA graph: it needs a GPU")
no_initialisation = refusing("this call needs a GPU: under the interpreter, tensors lie on the CPU")
"""Whatever would use a real GPU ends there, also where there is one."""


class Stream:
    """`torch.cuda.Stream`: whatever is put on it is done already."""

    cuda_stream = 0
    device = DEVICE
    device_index = 0
    priority = 0
    wait_stream = wait_event = synchronize = nothing
    query = yes

    def __init__(self, device: Any = None, **settings: Any) -> None:
        ordinal(device)

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


class Event:
    """`torch.cuda.Event`: it has happened, but not at any known time."""

    cuda_event = 0
    device = DEVICE
    record = wait = synchronize = nothing
    query = yes
    elapsed_time = no_timing

    __init__ = nothing


class StreamsInUse:
    """Which stream is current: the default one outside every `with torch.cuda.stream(...)`."""

    def __init__(self) -> None:
        self.current = Stream()
        self.default_stream = always(self.current)

    def current_stream(self, device: Any = None) -> Stream:
        return self.current

    def set_stream(self, stream: Stream | None) -> None:
        self.current = stream or self.current

    @contextlib.contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        """Make `stream` current; None leaves the current one."""
        before = self.current
        self.set_stream(stream)
        try:
            yield
        finally:
            self.current = before


def ordinal(device: Any = None) -> int:
    """The index of a device named as torch.cuda's functions take it.

    Raises ValueError for a device other than cuda, RuntimeError for a GPU that one-GPU machines lack.
    """
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        device = device.index
    if device is not None and device > 0:
        raise RuntimeError(f"CUDA error: invalid device ordinal: there is one GPU, not cuda:{device}")
    return 0


def as_device(named: Any) -> torch.device:
    """A device named as torch's functions take it: a number is a GPU's.

    Raises RuntimeError for a GPU that one-GPU machines lack.
    """
    device = torch.device("cuda", named) if isinstance(named, int) else torch.device(named)
    if device.type == "cuda":
        ordinal(device)
    return device


@contextlib.contextmanager
def on_device(device: Any) -> Iterator[None]:
    """`torch.cuda.device` and `torch.cuda.device_of`: the one device is always current."""
    if not isinstance(device, torch.Tensor):
        ordinal(device)
    yield


def device_properties(device: Any = None) -> DeviceProperties:
    ordinal(device)
    return replace(PROPERTIES, multi_processor_count=InterpreterDriver.multiprocessors)


def device_capability(device: Any = None) -> tuple[int, int]:
    ordinal(device)
    return CAPABILITY


def generator_class() -> type:
    """`torch.Generator`, which on "cuda" is one on the CPU that claims to be on "cuda"."""
    upstream = torch.Generator

    class Kind(type(upstream)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, upstream)

    class Generator(upstream, metaclass=Kind):  # type: ignore[misc, valid-type]
        def __new__(cls, device: Any = "cpu") -> Any:
            generator = super().__new__(cls, "cpu")
            generator.place = as_device(device)
            return generator

        @property
        def device(self) -> torch.device:
            place: torch.device = self.place
            return DEVICE if place.type == "cuda" else place

    return Generator


def no_kind_means_cuda(device: Any = None) -> Any:
    """`torch.get_device_module`: the GPU's module, where no device is named."""
    kind = torch.device(device or DEVICE).type
    return getattr(torch, kind)


GENERATOR = torch.default_generator
# Functions of their own: torch._dynamo refuses to be imported where two modules have one object.
RANDOM = {
    "manual_seed": lambda seed: GENERATOR.manual_seed(seed),
    "manual_seed_all": lambda seed: GENERATOR.manual_seed(seed),
    "initial_seed": lambda: GENERATOR.initial_seed(),
    "get_rng_state": lambda device=None: GENERATOR.get_state(),
    "get_rng_state_all": lambda: [GENERATOR.get_state()],
    "set_rng_state": lambda new_state, device=None: GENERATOR.set_state(new_state),
    "set_rng_state_all": lambda new_states: GENERATOR.set_state(new_states[0]),
    **dict.fromkeys(("seed", "seed_all"), nothing),
}
MEMORY: dict[str, Any] = {
    "memory_stats": lambda device=None: {},
    "mem_get_info": always((PROPERTIES.total_memory, PROPERTIES.total_memory)),
    **{f"{most}memory_{how}": zero for most in ("", "max_") for how in ("allocated", "reserved")},
    **{f"reset_{what}": nothing for what in ("peak_memory_stats", "accumulated_memory_stats")},
    **dict.fromkeys(("empty_cache", "reset_max_memory_allocated"), nothing),
}
CUDA = {
    **RANDOM,
    **MEMORY,
    "Event": Event,
    "Stream": Stream,
    "_lazy_init": no_initialisation,
    "current_device": zero,
    "device_count": one,
    "get_arch_list": lambda: ["sm_80"],
    "get_device_capability": device_capability,
    "get_device_name": lambda device=None: device_properties(device).name,
    "get_device_properties": device_properties,
    "set_device": ordinal,
    **dict.fromkeys(("CUDAGraph", "graph", "make_graphed_callables"), no_graphs),
    **dict.fromkeys(("_sleep", "init", "ipc_collect", "synchronize"), nothing),
    **dict.fromkeys(("can_device_access_peer", "is_current_stream_capturing"), no),
    **dict.fromkeys(("is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported"), yes),
    **dict.fromkeys(("device", "device_of"), on_device),
}
ACCELERATOR = {
    "current_accelerator": always(torch.device("cuda")),
    "device_count": one,
    "is_available": yes,
    **dict.fromkeys(("current_device_idx", "current_device_index"), zero),
    **dict.fromkeys(("set_device_idx", "set_device_index"), ordinal),
    **dict.fromkeys(("empty_cache", "synchronize"), nothing),
}
DRIVER = {
    "get_active_torch_device": lambda self: DEVICE,
    "get_current_target": lambda self: GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32),
    "get_device_capability": lambda self, *device: CAPABILITY,
    "get_device_interface": lambda self: torch.cuda,
    "get_empty_cache_for_benchmark": no_timing,
}


def replacements() -> Iterator[Replacement]:
    """Everything to be replaced, for one use of the fake GPU."""
    streams = StreamsInUse()
    for name in ("current_stream", "default_stream", "set_stream", "stream"):
        yield torch.cuda, name, getattr(streams, name)
    yield torch.accelerator, "current_stream", streams.current_stream
    yield torch.cuda, "default_generators", (torch.default_generator,)
    tables: tuple[tuple[object, Mapping[str, Any]], ...] = (
        (torch.cuda, CUDA),
        (torch.cuda.random, RANDOM),
        (torch.cuda.memory, MEMORY),
        (torch.accelerator, ACCELERATOR),
        (torch.cuda.nvtx, dict.fromkeys(("range_push", "range_pop", "mark"), nothing)),
        (InterpreterDriver, DRIVER),
    )
    yield from ((owner, name, value) for owner, table in tables for name, value in table.items())
    yield torch.backends.cuda, "is_built", yes
    # torch.nn's recurrent layers would hand their weights, which lie on the CPU, to cuDNN.
    yield torch.backends.cudnn, "is_acceptable", no
    yield torch, "Generator", generator_class()
    yield torch, "get_device_module", no_kind_means_cuda
    # Upstream knows compiled kernels only.
    yield torch.library, "wrap_triton", lambda kernel: kernel
