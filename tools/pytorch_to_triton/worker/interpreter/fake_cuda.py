"""Code written for one CUDA GPU runs on CPU tensors, where the interpreter needs them.

Inside `fake_gpu()`, a TorchFunctionMode sees every call of torch: it turns cuda devices in the arguments
into the CPU, and answers `x.device`, `x.is_cuda` and the like for tensors. Real `torch.device("cuda", 0)`
values are handed out, so they compare and print as on a GPU. `cuda_answers.py` replaces torch.cuda.

A tensor counts as on the GPU unless its storage is marked as the host's: so code that forgets
`device=x.device` is noticed. The mark is an attribute of the storage, which all views share. Tensors made
outside are unmarked, hence on the GPU.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device as default_device

from ..replacement import all_replaced
from . import cuda_answers
from .cuda_answers import DEVICE, Replacement, as_device

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
CPU = torch.device("cpu")
MARK = "_fake_cuda_place"
HOST, PINNED = "host", "pinned"
modes_in_use: Callable[[], list[Any]] = _get_current_function_mode_stack
MOVING = (Tensor.to, Tensor.type_as)
"""Methods whose first argument may be a device's name or number, or a tensor to follow."""
SAME_DEVICE_NAMES = frozenset([
    "add", "sub", "rsub", "mul", "div", "true_divide", "floor_divide", "pow", "remainder",
    "add_", "sub_", "mul_", "div_", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "where",
    "matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "cat", "stack",
])  # fmt: skip
"""Functions that a GPU refuses for operands on different devices, unless those on the host have 0 dims."""


@contextlib.contextmanager
def fake_gpu() -> Iterator[None]:
    """Inside, CPU tensors are taken for a GPU's by everything on this thread; afterwards torch is as before.

    Modules whose code was written for a GPU are to be imported inside too.
    """
    mode = OneGpu()
    default = default_device.CURRENT_DEVICE
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(restore_default_device, default)
        afterwards.enter_context(all_replaced((*cuda_answers.replacements(), *replacements(mode))))
        afterwards.enter_context(mode)
        before, OneGpu.active = OneGpu.active, mode
        try:
            yield
        finally:
            OneGpu.active = before


def device_of(tensor: Tensor) -> torch.device:
    """Where the tensor would be if the GPU were real; known inside and after `fake_gpu()`."""
    if tensor.device.type not in ("cpu", "cuda"):
        return tensor.device
    return DEVICE if place_of(tensor) is None else CPU


def reachable_by_kernels(tensor: Tensor) -> bool:
    """False for host memory that is not pinned: a kernel launched with it on a GPU is refused."""
    return place_of(tensor) != HOST


class OneGpu(TorchFunctionMode):
    """Sees each call of a torch function on this thread, with itself switched off during it."""

    active: "OneGpu | None" = None
    """The one of the innermost `fake_gpu()` that is entered."""

    def __torch_function__(
        self, func: Any, types: Any, args: Args = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        answer = ANSWERS.get(func, call_on_cpu)
        return answer(func, args, dict(kwargs) if kwargs else {})

    def kept_in(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, under a mode also where torch calls it inside a function of its own.

        It may be this one, or that of a later `fake_gpu()`: what a module registers outlives the import.
        """

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            mode = OneGpu.active
            if mode is None or mode in modes_in_use():
                return function(*args, **kwargs)
            with mode:
                return function(*args, **kwargs)

        return call


def call_on_cpu(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Call `func` on the CPU; its results count as where a GPU's user would find them."""
    if default_device.CURRENT_DEVICE is not None and func in default_device._device_constructors():
        kwargs["device"] = kwargs.get("device") or default_device.CURRENT_DEVICE
    place = PINNED if kwargs.get("pin_memory") else HOST
    if place == PINNED:
        kwargs["pin_memory"] = False
    operands = [*tensors_in(args), *tensors_in(kwargs.values())]
    device = requested_device(func, args, kwargs)
    if device is not None:
        args, kwargs = on_the_cpu(func, args, kwargs)
        return move(func(*args, **kwargs), device, operands, place)
    if len(operands) > 1 and getattr(func, "__name__", "") in SAME_DEVICE_NAMES:
        refuse_mixed(operands)
    result = func(*args, **kwargs)
    return result if any(place_of(tensor) is None for tensor in operands) else mark(result, place)


def requested_device(func: Any, args: Args, kwargs: Kwargs) -> torch.device | None:
    """The device that a call names, by itself or through the tensor that it is to follow."""
    named = kwargs.get("device")
    if named is None and func in MOVING:
        target = args[1] if len(args) > 1 else kwargs.get("other")
        named = target if is_name_of_device(target) or isinstance(target, Tensor) else None
    if named is None:
        named = next((argument for argument in args if isinstance(argument, torch.device)), None)
    if named is None:
        return None
    return device_of(named) if isinstance(named, Tensor) else as_device(named)


def on_the_cpu(func: Any, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with the CPU for every cuda device."""
    cpu_args = tuple(
        real(a) if isinstance(a, torch.device) or (i == 1 and func in MOVING and is_name_of_device(a)) else a
        for i, a in enumerate(args)
    )
    if kwargs.get("device") is None:
        return cpu_args, kwargs
    return cpu_args, {**kwargs, "device": real(kwargs["device"])}


def is_name_of_device(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def real(named: Any) -> torch.device:
    device = as_device(named)
    return CPU if device.type == "cuda" else device


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among the values, and in those of them that are lists or tuples."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, Tensor))


def place_of(tensor: Tensor) -> str | None:
    """The mark on the tensor's storage; None on a GPU."""
    try:
        return getattr(tensor.untyped_storage(), MARK, None)
    except (NotImplementedError, RuntimeError):  # sparse tensors, and those of functional transforms
        return None


def mark(result: Any, place: str) -> Any:
    """The result of a call, the memory of its tensors marked as the host's."""
    for tensor in tensors_in((result,)):
        if device_of(tensor).type == "cuda":
            with contextlib.suppress(NotImplementedError, RuntimeError):
                setattr(tensor.untyped_storage(), MARK, place)
    return result


def move(result: Any, device: torch.device, operands: Sequence[Tensor], place: str) -> Any:
    """What was asked for on a device, in memory of its own where a GPU's user would get a copy."""
    if not isinstance(result, Tensor) or result.device.type != "cpu":
        return result
    if device.type == "cuda":
        return result if place_of(result) is None else result.clone()
    if place_of(result) is not None:
        return result
    shared = any(tensor.untyped_storage()._cdata == result.untyped_storage()._cdata for tensor in operands)
    return mark(result.clone() if shared else result, place)


def refuse_mixed(operands: Sequence[Tensor]) -> None:
    """Raises RuntimeError, as a GPU's user would see it, where an operand was left on the host."""
    on_host = [place_of(tensor) is not None for tensor in operands]
    if not all(on_host) and any(host and tensor.ndim for host, tensor in zip(on_host, operands, strict=True)):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        )


def to_gpu(func: Any, args: Args, kwargs: Kwargs) -> Tensor:
    """`x.cuda(device, non_blocking, memory_format)`."""
    device = kwargs.pop("device", args[1] if len(args) > 1 else None)
    return call_on_cpu(Tensor.to, (args[0], as_device("cuda" if device is None else device)), kwargs)  # type: ignore[no-any-return]


def pin(func: Any, args: Args, kwargs: Kwargs) -> Tensor:
    """`x.pin_memory()`: a copy that kernels can reach."""
    tensor: Tensor = args[0]
    return tensor if place_of(tensor) == PINNED else mark(tensor.clone(), PINNED)


def as_array(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`x.numpy()` and what numpy itself calls. Raises TypeError for a tensor on the GPU."""
    if place_of(args[0]) is not None:
        return func(*args, **kwargs)
    if kwargs.get("force"):
        return func(args[0].clone(), **kwargs)
    raise TypeError(
        "can't convert cuda:0 device type tensor to numpy. "
        "Use Tensor.cpu() to copy the tensor to host memory first."
    )


def type_name(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`x.type()`: the name of its old tensor type, or a conversion."""
    result = call_on_cpu(func, args, kwargs)
    if isinstance(result, str) and place_of(args[0]) is None:
        return result.replace("torch.", "torch.cuda.", 1)
    return result


def device_itself(func: Any, args: Args, kwargs: Kwargs) -> torch.device:
    """`torch.device(...)`, where a number alone means a GPU."""
    if len(args) == 1 and isinstance(args[0], int) and not kwargs:
        return torch.device("cuda", args[0])
    return torch.device(*args, **kwargs)


def getter(name: str) -> Any:
    """What torch hands to a mode in place of reading an attribute of a tensor."""
    return vars(torch._C.TensorBase)[name].__get__


ANSWERS: Mapping[Any, Callable[[Any, Args, Kwargs], Any]] = {
    getter("device"): lambda func, args, kwargs: device_of(args[0]),
    getter("is_cuda"): lambda func, args, kwargs: device_of(args[0]).type == "cuda",
    getter("is_cpu"): lambda func, args, kwargs: device_of(args[0]).type == "cpu",
    Tensor.get_device: lambda func, args, kwargs: 0 if device_of(args[0]).type == "cuda" else -1,
    Tensor.cuda: to_gpu,
    Tensor.cpu: lambda func, args, kwargs: call_on_cpu(Tensor.to, (args[0], CPU), kwargs),
    Tensor.pin_memory: pin,
    Tensor.is_pinned: lambda func, args, kwargs: place_of(args[0]) == PINNED,
    Tensor.numpy: as_array,
    Tensor.__array__: as_array,
    Tensor.type: type_name,
    torch.device: device_itself,
    torch._C._nn._parse_to: lambda func, args, kwargs: func(*args, **kwargs),
}


def replacements(mode: OneGpu) -> Iterator[Replacement]:
    """What a mode cannot see: constructors, and code that torch calls back."""
    yield Tensor, "record_stream", cuda_answers.nothing
    for name in ("from_numpy", "frombuffer"):
        yield torch, name, on_host(getattr(torch, name))
    for name in ("apply", "apply_boxed", "apply_jvp"):
        if name in vars(BackwardCFunction):
            yield BackwardCFunction, name, mode.kept_in(vars(BackwardCFunction)[name])
    yield CustomOpDef, "register_kernel", register_for_cpu(mode)
    yield torch.library.Library, "impl", implement_for_cpu(mode)
    yield default_device.DeviceContext, "__torch_function__", without_gpu(mode)


def on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return mark(function(*args, **kwargs), HOST)

    return call


def register_for_cpu(mode: OneGpu) -> Callable[..., Any]:
    """`register_kernel` of custom operators: a GPU's kernel runs on CPU tensors, a CPU's never."""
    upstream = CustomOpDef.register_kernel

    def register(self: CustomOpDef, device_types: Any, function: Any = None, /) -> Any:
        named = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        kinds = ["cpu" if kind == "cuda" else kind for kind in named if kind != "cpu"]

        def take(function: Any) -> Any:
            for kind in kinds:
                upstream(self, kind, mode.kept_in(function))
            return function

        return take if function is None else take(function)

    return register


def implement_for_cpu(mode: OneGpu) -> Callable[..., None]:
    """`torch.library.Library.impl`, for libraries that are not torch's own."""
    upstream: Callable[..., None] = torch.library.Library.impl

    def impl(self: Any, name: Any, function: Any, dispatch_key: str = "", **settings: Any) -> None:
        if (getattr(function, "__module__", None) or "torch").partition(".")[0] == "torch":
            return upstream(self, name, function, dispatch_key, **settings)
        key = dispatch_key or self.dispatch_key
        if key == "CPU":
            return None
        return upstream(self, name, mode.kept_in(function), key.replace("CUDA", "CPU"), **settings)

    return impl


def without_gpu(mode: OneGpu) -> Callable[..., Any]:
    """A default device of "cuda" is the CPU wherever this mode is not on."""
    upstream: Callable[..., Any] = default_device.DeviceContext.__torch_function__

    def call(self: Any, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        named = dict(kwargs or {})
        hidden = mode not in modes_in_use()
        if hidden and self.device.type == "cuda" and func in default_device._device_constructors():
            named["device"] = named.get("device") or CPU
        return upstream(self, func, types, args, named)

    return call


def restore_default_device(device: torch.device | None) -> None:
    if device != default_device.CURRENT_DEVICE:
        torch.set_default_device(device)
