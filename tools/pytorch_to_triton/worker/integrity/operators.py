"""Which torch operators the author's code runs, what it reads, and which tensors a Triton kernel made."""

import functools
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from ..dispatch import DispatchMode
from ..replacement import replaced
from .frames import TORCH, author_of, below, callers, owner_of_frame
from .kernel_source import uses_atomics
from .uncompilable import python_in

OWN_TO_TRITON = frozenset(
    f"aten.{name}"
    for name in (
        "empty", "empty_strided", "new_empty", "zeros", "zero_", "fill_", "clone", "copy_", "set_",
        "_to_copy", "detach", "alias", "view", "as_strided", "lift_fresh", "_local_scalar_dense",
    )
)  # fmt: skip
"""What Triton runs on its own account: buffers to time with, arguments saved and restored. Anything else that
Triton's frames lead to was handed to Triton by the author, say as a hook made with functools.partial."""

COPIES = frozenset(
    f"aten.{name}"
    for name in (
        "clone", "copy_", "_to_copy", "view", "reshape", "_reshape_alias", "_unsafe_view", "as_strided",
        "expand", "permute", "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "split", "unbind",
        "detach", "alias", "numpy_T", "mT", "swapaxes",
    )
)  # fmt: skip
"""Operators whose result holds the same values."""
SUMS_OF_GRADIENTS = frozenset({"aten.add", "aten.add_"})
"""What autograd runs on its own account, where a tensor went into several results."""
OVERWRITING = frozenset({"aten.copy_", "aten.fill_", "aten.zero_"})
TORCHS_OPERATORS = frozenset(torch._C._dispatch_get_all_op_names())
"""All that there are before the author's code runs: what comes later, it defines itself (torch.library)."""
NO_STORAGE = 0
ITEM = "aten._local_scalar_dense"
"""Gives Python the value of an element."""
READINGS = ("numpy", "__array__", "__dlpack__", "tolist")
"""Methods of a tensor by which its elements leave torch, to be computed with by something else."""
KERNEL, INPUT = "kernel", "input"
"""Origins of what a storage holds, beside the operators of PyTorch that made it."""


class Operators:
    """Counts what runs while it is entered, here and in Python threads started while it is."""

    def __init__(
        self, tensors: Iterable[torch.Tensor] = (), wrote: Callable[[torch.Tensor], bool] | None = None
    ) -> None:
        """`tensors` are the call's inputs: a kernel that reads one has made nothing of it yet. `wrote` says
        whether kernels have written to an argument of a launch; without it, each counts as written to.
        """
        self._wrote = wrote
        self.pointers_given = False
        """Whether kernels may have found tensors through addresses in another, which a device hides."""
        self.reads_kernels = False
        """Whether the author's Python was given the value of an element that a kernel made."""
        self._given = set(map(key_of, tensors)) - {NO_STORAGE}
        self.counts: Counter[str] = Counter()
        """Calls by operator without its overload: {"aten.mm": 2}."""
        self._origins = dict.fromkeys(self._given, frozenset({INPUT}))
        self._known: dict[int, StorageWeakRef] = {}
        """By the same keys: a weak reference keeps the address from being given out again."""
        self._idle: dict[int, set[str]] = {}
        """By the same keys: names of kernels that were given a storage and wrote nothing to it."""
        self._lost: set[int] = set()
        """Storages that PyTorch has wholly overwritten with what no kernel made."""
        self._thread = threading.get_ident()
        self._counting = ExitStack()

    def made_by_triton(self, tensor: torch.Tensor) -> bool:
        """Whether a launched kernel had its storage, or a tensor it was computed from, as an argument."""
        return KERNEL in self.origins(tensor)

    def origins(self, tensor: torch.Tensor) -> frozenset[str]:
        """What made the values in its storage, copies and views left out: operators, INPUT and KERNEL."""
        return self._origins.get(key_of(tensor), frozenset())

    def touched(self, tensor: torch.Tensor, kernel: str) -> None:
        """A launched kernel had this tensor as an argument."""
        self.pointers_given |= tensor.dtype in (torch.int64, torch.uint64) and self._wrote is None
        if self._wrote is None or self._wrote(tensor):
            self._add(tensor, frozenset({KERNEL}))
        else:
            self._add(tensor, frozenset())
            self._idle.setdefault(key_of(tensor), set()).add(kernel)

    def idle_kernels(self, tensor: torch.Tensor) -> tuple[str, ...]:
        """Names of the kernels that were given its storage and wrote nothing to it, where that is known."""
        return tuple(sorted(self._idle.get(key_of(tensor), ())))

    def is_overwritten(self, tensor: torch.Tensor) -> bool:
        """Whether all of it was copied over or filled since a kernel last wrote to it."""
        return key_of(tensor) in self._lost

    def _forget(self, tensor: torch.Tensor) -> None:
        self._origins.pop(key_of(tensor), None)
        self._lost.add(key_of(tensor))

    def _add(self, tensor: torch.Tensor, origins: frozenset[str]) -> None:
        """Note what a storage's values come from; of an input's, no more than that kernels wrote to it."""
        storage, key = storage_of(tensor), key_of(tensor)
        if storage is None:
            return
        if KERNEL in origins:
            self._lost.discard(key)
        self._origins[key] = self.origins(tensor) | (origins & {KERNEL} if key in self._given else origins)
        if key not in self._known:
            self._known[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]

    def __enter__(self) -> "Operators":
        self._thread = threading.get_ident()
        following = self._following(vars(threading.Thread)["_bootstrap_inner"])
        self._counting.enter_context(replaced(threading.Thread, "_bootstrap_inner", following))
        self._counting.enter_context(Counting(self))
        return self

    def __exit__(self, *error: object) -> None:
        self._counting.close()

    def dispatch(self, func: Any, args: Any, kwargs: Any, frame: FrameType | None) -> Any:
        """Run the operator, count it, and follow what it does to tensors that a kernel made."""
        name = str(func.overloadpacket)
        counted = self._counts(name, frame)
        if counted and func.name() not in TORCHS_OPERATORS:
            return self._inside(func, args, kwargs)
        if counted:
            self.counts[name] += 1
            self.reads_kernels |= name == ITEM and self.made_by_triton(args[0])
        for tensor in tensors_in((args, kwargs)):
            if is_foreign(type(tensor)):
                # What it computes inside, it computes unseen by this mode.
                self.counts[f"{type(tensor).__name__}.__torch_dispatch__"] += 1
        origins = frozenset({name} if counted and name not in COPIES else ())
        origins = origins.union(*(self._handed_on(t, name) for t in tensors_in((args, kwargs))))
        result = func(*args, **kwargs)
        if KERNEL not in origins and name in OVERWRITING and fills_its_storage(args[0]):
            self._forget(args[0])
        for tensor in tensors_in((result, written_arguments(func, args, kwargs))):
            self._add(tensor, origins)
        return result

    def _inside(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator that the author defines (torch.library), and count what its code runs."""
        on_gpu = any(tensor.is_cuda for tensor in tensors_in((args, kwargs)))
        key = torch._C.DispatchKey.CUDA if on_gpu else torch._C.DispatchKey.CPU
        with Counting(self):
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)

    def _handed_on(self, tensor: torch.Tensor, name: str) -> frozenset[str]:
        """What the operator's result has of this tensor's origins: by a copy all of them.

        Whatever is computed from a kernel's work is its work too; an input that a kernel has read is not.
        """
        if name in COPIES:
            return self.origins(tensor)
        return frozenset() if key_of(tensor) in self._given else self.origins(tensor) & {KERNEL}

    def _counts(self, name: str, frame: FrameType | None) -> bool:
        if name in SUMS_OF_GRADIENTS and is_engines(frame):
            return False
        requester = author_of(frame)
        if requester == "triton":
            return name not in OWN_TO_TRITON
        return requester == "author" or threading.get_ident() != self._thread or is_backward(frame)

    def _following(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A mode is entered in one thread only: a thread of the author's would go unseen."""

        def follow(*args: Any, **kwargs: Any) -> Any:
            with Counting(self):
                return original(*args, **kwargs)

        return follow


class Counting(DispatchMode):  # type: ignore[no-untyped-call]
    """Hands on what runs in this thread, or inside of an operator."""

    def __init__(self, operators: Operators) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._operators = operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._operators.dispatch(func, args, kwargs or {}, sys._getframe().f_back)


class Readings(TorchFunctionMode):
    """Counts, as `Tensor.numpy` and the like, what the author's code hands to numpy, DLPack and lists."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts
        self._methods = {getattr(torch.Tensor, name): name for name in READINGS}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = self._methods.get(func)
        if name is not None and author_of(sys._getframe(1)) == "author":
            self._counts[f"Tensor.{name}"] += 1
        return func(*args, **(kwargs or {}))


def fills_its_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor's elements are all that its storage holds."""
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()


def is_foreign(kind: type[torch.Tensor]) -> bool:
    """A subclass that runs operators itself, and is none of torch's own."""
    return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ and not kind.__module__.startswith(
        "torch."
    )


def is_backward(frame: FrameType | None) -> bool:
    """Whether autograd runs the operator for a graph: no author's frame is there, yet the graph is theirs."""
    return any(below(each.f_code.co_filename, f"{TORCH}/autograd") for each in callers(frame))


def is_engines(frame: FrameType | None) -> bool:
    """Whether autograd's engine itself asks, not a function that it calls."""
    asking = next((each for each in callers(frame) if owner_of_frame(each) != "worker"), None)
    return asking is not None and below(asking.f_code.co_filename, f"{TORCH}/autograd")


def written_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the operator writes to."""
    if not func._schema.is_mutable:
        return []
    written = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.append(args[place] if place < len(args) else kwargs.get(argument.name))
    return written


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples, lists and dictionaries, and behind tensor descriptors."""
    for leaf in pytree.tree_leaves(value):
        tensor = leaf if isinstance(leaf, torch.Tensor) else getattr(leaf, "base", None)
        if isinstance(tensor, torch.Tensor):
            yield tensor


def key_of(tensor: torch.Tensor) -> int:
    """Of its storage; NO_STORAGE where it has none."""
    storage = storage_of(tensor)
    return NO_STORAGE if storage is None else int(storage._cdata)


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """None for a tensor without one storage, such as a sparse one."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


class Launches:
    """A context in which every launch is recorded and its tensors made known to `operators`.

    A warm-up, a grid without programs and a launch that raised are no launches.
    """

    def __init__(
        self, operators: Operators, announce: Callable[[Callable[..., Any] | None], None] | None = None
    ) -> None:
        """`announce` is called with a kernel before it runs, and with None after it."""
        self._operators = operators
        self._announce = announce or (lambda kernel: None)
        self._counts: Counter[Callable[..., Any]] = Counter()
        self._python: dict[Callable[..., Any], set[str]] = {}
        self._recording = ExitStack()

    @property
    def launched(self) -> list[dict[str, Any]]:
        """`{"kernel": name, "file": path, "line": of its first decorator, "count": n, "atomics": bool,
        "python": sorted names of what Triton's compiler would refuse and the interpreter runs}`."""
        return [
            {
                "kernel": function.__name__,
                "file": function.__code__.co_filename,
                "line": function.__code__.co_firstlineno,
                "count": count,
                "atomics": uses_atomics(function),
                "python": sorted(self._python[function]),
            }
            for function, count in self._counts.items()
        ]

    def __enter__(self) -> "Launches":
        for kind in (JITFunction, InterpretedFunction):
            self._recording.enter_context(replaced(kind, "run", self._recorded(kind.run)))
        return self

    def __exit__(self, *error: object) -> None:
        self._recording.close()

    def _recorded(self, original: Any) -> Any:
        """A `run` that notes what a kernel's source uses before each launch, and the launch after it."""

        @functools.wraps(original)
        def run(kernel: Any, /, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            extents: Any = ()

            def bound_grid(bound: Any) -> Any:
                nonlocal extents
                extents = grid(bound) if callable(grid) else grid
                # Before the kernel runs, which may put other things behind the names that it uses.
                names = self._python.setdefault(kernel.fn, set())
                if isinstance(kernel, InterpretedFunction):
                    names |= python_in(kernel.fn, dict(zip(kernel.arg_names, args, strict=False)) | kwargs)
                return extents

            self._announce(kernel.fn)
            try:
                result = original(kernel, *args, grid=bound_grid, warmup=warmup, **kwargs)
            finally:
                self._announce(None)
            if not warmup and extents and math.prod(map(int, extents)) > 0:
                self._counts[kernel.fn] += 1
                for tensor in tensors_in((args, kwargs)):
                    self._operators.touched(tensor, kernel.fn.__name__)
            return result

        return run
