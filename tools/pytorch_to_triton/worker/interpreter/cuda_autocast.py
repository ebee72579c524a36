"""`torch.autocast("cuda")` casts what lies on the CPU, where that poses as a GPU.

There it would do nothing, and what a GPU computes in bfloat16 would be taken for float32. torch keeps a list
of operators for each kind of device, and that for CPUs is another: no softmax, no norm and no sum is on it.
So once a region begins, CUDA's lists take the place of the CPU's in this process, for every later region.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.amp.autocast_mode import autocast
from torch.utils import _pytree as pytree

from ..dispatch import arguments_by_name

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]
Choice = Callable[[Any, Args, Kwargs], torch.dtype | None]
"""The dtype in which an operator takes its floating tensors; None: as they are."""

LOWERED = frozenset([
    "_convolution", "convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cudnn_convolution", "cudnn_convolution_transpose",
    "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm",
    "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
    "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_scaled_dot_product_flash_attention",
    "scaled_dot_product_attention",
])  # fmt: skip
"""Operators that take the region's dtype."""
PROMOTED = frozenset([
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
    "tensordot", "scatter_add",
])  # fmt: skip
"""Operators whose operands are to have one dtype. All others of CUDA's lists take float32."""
WHOLE = ("aten::square", "aten::upsample_bilinear2d.vec", "aten::upsample_nearest2d.vec")
"""Operators made of those on the lists, whose parts autocast never sees where a trace keeps them whole."""
KEYS = DispatchKeySet(DispatchKey.AutocastCPU)


def install() -> None:
    """From now on, regions of CUDA's autocast are regions of the CPU's too, with CUDA's lists."""
    if getattr(autocast.__init__, "__module__", None) == __name__:
        return
    upstream, set_enabled = autocast.__init__, torch.set_autocast_enabled
    signature = inspect.signature(upstream)

    def init(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = bound.arguments
        enabled = arguments["enabled"]
        # Where nothing is asked of it, it does not look for a GPU.
        arguments["enabled"] = enabled and arguments["device_type"] != "cuda"
        upstream(*bound.args, **bound.kwargs)
        if arguments["device_type"] == "cuda":
            arguments["self"]._enabled = enabled

    def enable(*arguments: Any) -> None:
        set_enabled(*arguments)
        if arguments[0] == "cuda":
            replace_lists()
            set_enabled("cpu", arguments[1])

    autocast.__init__ = init  # type: ignore[method-assign]
    torch.set_autocast_enabled = enable  # type: ignore[assignment]


@functools.cache
def replace_lists() -> torch.library.Library:
    """CUDA's lists in the place of the CPU's; what is returned keeps them there."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    register: Callable[..., None] = library.impl
    with warnings.catch_warnings():
        # That operators have kernels already.
        warnings.simplefilter("ignore")
        for name in operators_of("AutocastCPU") - operators_of("AutocastCUDA"):
            register(operator(name), torch.library.fallthrough_kernel, "AutocastCPU")
        for name in operators_of("AutocastCUDA").union(WHOLE):
            op = operator(name)
            register(op, cast_operands(op, chosen_for(op.overloadpacket.__name__)), "AutocastCPU")
    return library


def has_begun() -> bool:
    """Whether a region has begun in this process."""
    return replace_lists.cache_info().currsize > 0


def operators_of(key: str) -> set[str]:
    """The operators that autocast changes under this key."""
    names = torch._C._dispatch_get_all_op_names()
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return {name for name in names if name.startswith("aten::") and has_kernel(name, key)}


def operator(full: str) -> Any:
    """The operator of a name such as `aten::softmax.int`."""
    name, _, overload = full.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def chosen_for(name: str) -> Choice:
    if name in LOWERED:
        return lambda op, args, kwargs: torch.get_autocast_dtype("cuda")
    return widest if name in PROMOTED else float32_unless_named


def widest(op: Any, args: Args, kwargs: Kwargs) -> torch.dtype:
    dtypes = {leaf.dtype for leaf in pytree.tree_leaves((args, kwargs)) if is_cast(leaf)}
    return torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cuda")


def float32_unless_named(op: Any, args: Args, kwargs: Kwargs) -> torch.dtype | None:
    """softmax, sums and their like may be asked for a dtype of their own."""
    return None if arguments_by_name(op, args, kwargs).get("dtype") else torch.float32


def cast_operands(op: Any, choice: Choice) -> Callable[..., Any]:
    """The operator on floating tensors in the chosen dtype; whatever it calls itself casts no more."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(KEYS):
            dtype = choice(op, args, kwargs)
            if dtype is not None:
                args, kwargs = pytree.tree_map(lambda x: x.to(dtype) if is_cast(x) else x, (args, kwargs))
            return op(*args, **kwargs)

    return kernel


def is_cast(value: Any) -> bool:
    """Whether autocast may change it: float64 stays."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
