"""Tensors that report the dtypes which a case declares, and hold float64.

Inside `DeclaredDtypes`, a reference finds every dtype as it would be at the case's own: `x.dtype`,
`torch.finfo(x.dtype)`, what promotion gives, the default dtype. So it takes the branches that it takes there,
while everything is computed in float64. Nothing is rounded where a value becomes shorter, except in a cast to
a dtype that none of the call's tensors has: that one is meant.

Autograd sits above: it sees the reported dtypes, and its gradients are computed here too.
"""

import functools
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from ..calls.exchange import CallInputs, map_tensors
from ..dispatch import DispatchMode, without_compiler

KNOWN: dict[Any, tuple[torch.dtype, ...]] = {}
"""By operator and `kind_of` its arguments."""
VALUES = (bool, str, torch.dtype, torch.layout, torch.memory_format, type(None))
WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float8_e4m3fn: torch.float64,
    torch.float8_e4m3fnuz: torch.float64,
    torch.float8_e5m2: torch.float64,
    torch.float8_e5m2fnuz: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
"""The dtype that is held for each dtype that is not held itself."""
SHORT = frozenset(WIDE) - {torch.float32, torch.complex64}
NEGATIONS = {"_conj": torch.ops.aten._conj_physical.default, "_neg_view": torch.ops.aten.neg.default}


def result_dtypes(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int
) -> tuple[torch.dtype, ...]:
    """The dtypes of the `count` tensors that `func` returns, nested ones in order.

    Sizes and numbers do not matter, so meta tensors are enough; where an operator has no meta kernel, it is
    run once on tensors of the dtypes that its arguments report.
    """
    kind = (func, count, torch.get_default_dtype(), kind_of(args), tuple(map(kind_of, kwargs.items())))
    if kind not in KNOWN:
        with _disable_current_modes():
            leaves = pytree.tree_leaves(result_on_meta(func, args, kwargs))
        KNOWN[kind] = tuple(leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor))
    return KNOWN[kind]


def kind_of(value: Any) -> Any:
    """All that matters of an argument."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim() == 0, value.device.type
    if isinstance(value, list | tuple):
        kinds = tuple(map(kind_of, value))
        return frozenset(kinds) if {*map(type, value)} <= {int, float} else kinds
    return value if isinstance(value, VALUES) else type(value)


def result_on_meta(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    arguments = args, dict(kwargs)
    try:
        # Torch's own operators run no user code.
        with without_compiler() if func.namespace in ("aten", "prims") else nullcontext():
            on_meta, named = pytree.tree_map(without_values, arguments)
            return func(*on_meta, **named)
    except Exception:
        # Copies, as the operator may write to them.
        copies, named = pytree.tree_map_only(
            torch.Tensor, lambda tensor: held(tensor).detach().to(tensor.dtype, copy=True), arguments
        )
        return func(*copies, **named)


def without_values(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class NotFollowed(BaseException):
    """What a reference does with its tensors cannot be done on DeclaredTensors.

    A BaseException, so that no reference catches it and continues in another way.
    """


class DeclaredTensor(torch.Tensor):
    """Reports one dtype and holds another; without memory of its own."""

    held: torch.Tensor

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: torch.Tensor, dtype: torch.dtype) -> "DeclaredTensor":
        if held.layout != torch.strided:
            raise NotFollowed(f"a tensor of layout {held.layout}")
        # Views of ordinary tensors are ordinary ones also in inference mode.
        with torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext():
            tensor: DeclaredTensor = torch.Tensor._make_wrapper_subclass(
                cls,
                held.shape,
                strides=held.stride(),
                storage_offset=int(held.storage_offset()),
                dtype=dtype,
                device=held.device,
            )
        tensor.held = held
        return tensor

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Args = (), kwargs: Any = None
    ) -> Any:
        raise NotFollowed(f"{func} outside of the mode that knows how to compute it")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"DeclaredTensor({self.held!r}, dtype={self.dtype})"

    def tolist(self) -> Any:
        return self.held.tolist()

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        copy: torch.Tensor = memo.setdefault(id(self), self.detach().clone())
        return copy.requires_grad_(self.requires_grad)

    def data_ptr(self) -> int:
        raise NotFollowed("the address of a tensor")

    def numpy(self, *, force: bool = False) -> Any:
        raise NotFollowed("an array of a tensor's memory")

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        raise NotFollowed("a tensor whose data are exchanged")


def with_declared_dtypes(call: CallInputs, wide: CallInputs) -> CallInputs:
    """`wide`, each of its tensors reporting the dtype that it has in `call`."""
    dtypes = {name: tensor.dtype for name, tensor in call.tensors().items()}
    reported = map_tensors(wide, lambda name, tensor: report_dtype(tensor, dtypes[name]))
    cotangents = {
        path: report_dtype(tensor.to(WIDE.get(tensor.dtype, tensor.dtype)), tensor.dtype)
        for path, tensor in call.cotangents.items()
    }
    return CallInputs(reported.arguments, reported.state, cotangents)


def report_dtype(wide: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return DeclaredTensor(wide, dtype) if dtype in WIDE else wide


def held(value: Any) -> Any:
    """What a tensor holds; of anything else, itself."""
    return value.held if isinstance(value, DeclaredTensor) else value


class Underneath:
    """The arguments of one operator as they are held."""

    def __init__(self) -> None:
        self.outer: dict[int, DeclaredTensor] = {}
        """By the id of what it holds."""
        self.floating = False
        """Whether any argument is a floating or complex tensor."""

    def of(self, value: Any) -> Any:
        """The same arguments, or argument, with what each tensor holds."""
        return pytree.tree_map(self._held, value)

    def _held(self, value: Any) -> Any:
        if isinstance(value, DeclaredTensor):
            self.floating = True
            self.outer[id(value.held)] = value
            return value.held
        if not isinstance(value, torch.Tensor):
            return WIDE.get(value, value) if isinstance(value, torch.dtype) else value
        self.floating = self.floating or is_floating(value)
        return value.detach().to(WIDE[value.dtype]) if value.dtype in WIDE else value

    def known(self, result: Any) -> Any:
        """Of an argument that was written to, itself; of any other part of a result, as it is."""
        outer = self.outer.get(id(result), result)
        if isinstance(outer, DeclaredTensor):
            held = outer.held
            if (outer.shape, outer.stride()) != (held.shape, held.stride()):
                raise NotFollowed("a tensor that becomes another shape in place")
        return outer


class DeclaredDtypes(DispatchMode):
    """Inside, operators compute on what tensors hold; results report the dtype that PyTorch gives them."""

    def __init__(self, call: CallInputs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.own = frozenset(tensor.dtype for tensor in call.tensors().values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Args = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if is_composite(func):
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        if func.namespace not in ("aten", "prims"):
            raise NotFollowed(f"{func}, which may read the dtype itself")
        return COMPUTED.get(func.overloadpacket.__name__, compute)(self, func, args, kwargs)

    def wrapped(self, result: Any, under: Underneath, func: Any, args: Args, kwargs: Kwargs) -> Any:
        """The result of `func` as the reference sees it."""
        tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not any(is_floating(tensor) and id(tensor) not in under.outer for tensor in tensors):
            return pytree.tree_map(under.known, result)
        dtypes = iter(result_dtypes(func, args, kwargs, len(tensors)))

        def report(tensor: torch.Tensor) -> Any:
            dtype = next(dtypes)
            argument = under.known(tensor)
            return report_dtype(tensor.to(WIDE.get(dtype, dtype)), dtype) if argument is tensor else argument

        return pytree.tree_map_only(torch.Tensor, report, result)

    def narrowed(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """`values` after a cast to `dtype`, held as before."""
        foreign = dtype in SHORT and dtype not in self.own
        return values.to(dtype).to(WIDE[dtype]) if foreign else values


def compute(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Any operator: on what its arguments hold."""
    if torch.Tag.nondeterministic_seeded in func.tags:
        return random_op(mode, func, args, kwargs)
    under = Underneath()
    wide_args, wide_kwargs = under.of((args, dict(kwargs)))
    if under.floating:
        return mode.wrapped(func(*wide_args, **wide_kwargs), under, func, args, kwargs)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        result = func(*wide_args, **wide_kwargs)
    finally:
        torch.set_default_dtype(default)
    return mode.wrapped(result, under, func, args, kwargs)


def cast(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`_to_copy(x, dtype=...)`."""
    result = compute(mode, func, args, kwargs)
    if isinstance(result, DeclaredTensor) and result.dtype != args[0].dtype:
        return DeclaredTensor(mode.narrowed(result.held, result.dtype), result.dtype)
    return result


def copy_into(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`copy_(to, from)`: a cast as well."""
    to, source = args[0], args[1]
    if isinstance(to, DeclaredTensor) and to.dtype != source.dtype:
        source = mode.narrowed(Underneath().of(source).to(to.held.dtype), to.dtype)
    return compute(mode, func, (to, source, *args[2:]), kwargs)


def random_op(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Random numbers, generated at the reported dtypes: in float64, torch's generator gives others."""
    under = Underneath()
    outer: dict[int, DeclaredTensor] = {}

    def narrow(tensor: DeclaredTensor) -> torch.Tensor:
        copy = tensor.held.to(tensor.dtype)
        outer[id(copy)] = tensor
        return copy

    def widen(result: torch.Tensor) -> torch.Tensor:
        if id(result) in outer:
            outer[id(result)].held.copy_(result)
            return outer[id(result)]
        return report_dtype(under.of(result), result.dtype)

    positional, named = pytree.tree_map_only(DeclaredTensor, narrow, (args, dict(kwargs)))
    return pytree.tree_map_only(torch.Tensor, widen, func(*positional, **named))


def drop_out(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`native_dropout(x, p, train)`: the mask is random, its product is not rounded."""
    x, p, train = args
    result, mask = random_op(mode, func, args, kwargs)
    if not isinstance(result, DeclaredTensor) or not train:
        return result, mask
    kept = held(x) * mask * (0.0 if p == 1 else 1 / (1 - p))
    return DeclaredTensor(kept, result.dtype), mask


def softmax(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`_softmax(x, dim, half_to_float)`: what is held is as wide as it gets."""
    under = Underneath()
    x, dim, _ = under.of(args)
    return mode.wrapped(func(x, dim, False), under, func, args, kwargs)


def negate(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """`_conj(x)`, `_neg_view(x)`: computed at once, since a view that is marked as one is not heeded here."""
    return compute(mode, NEGATIONS[func.overloadpacket.__name__], args, kwargs)


def refuse(mode: DeclaredDtypes, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """What exchanges a tensor's memory, and kernels for short dtypes alone, some of which are random."""
    raise NotFollowed(str(func))


COMPUTED: Mapping[str, Callable[[DeclaredDtypes, Any, Args, Kwargs], Any]] = {
    "_to_copy": cast,
    "copy_": copy_into,
    "_conj": negate,
    "_neg_view": negate,
    "_softmax": softmax,
    "_log_softmax": softmax,
    "native_dropout": drop_out,
    "nextafter": random_op,
    "nextafter_": random_op,
    "set_": refuse,
    "_scaled_dot_product_flash_attention": refuse,
    "_scaled_dot_product_flash_attention_for_cpu": refuse,
    "_scaled_dot_product_efficient_attention": refuse,
    "_scaled_dot_product_cudnn_attention": refuse,
}
"""Operators computed in their own way; `random_op` also suits those that depend on the spacing of numbers."""


def is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


@functools.cache
def is_composite(func: Any) -> bool:
    """Whether the operator is made of others: under torch.inference_mode it arrives whole."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))
