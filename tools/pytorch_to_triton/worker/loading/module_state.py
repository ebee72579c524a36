"""The tensors of a module that its calls are given, by the names of arguments."""

import re
from collections.abc import Collection
from keyword import iskeyword
from numbers import Number
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from .written_out import is_in_even_steps

GIVEN: WeakKeyDictionary[nn.Module, frozenset[str]] = WeakKeyDictionary()
"""Buffers that no state_dict has, but for positions; asked once, before a trace puts fake tensors there."""
ATTRIBUTES: WeakKeyDictionary[nn.Module, tuple[str, ...]] = WeakKeyDictionary()
"""Buffers that were plain attributes of a module as its class left it."""
OF_A_FILE = frozenset({"torch", "triton", "tl", "math", "libdevice"})
"""What a kernel file imports."""


def state_arguments(module: nn.Module, parameters: Collection[str]) -> dict[str, str]:
    """Names for arguments beside forward's `parameters`, each with its key of the state_dict."""
    taken = {*parameters, *OF_A_FILE}
    keys: dict[str, str] = {}
    for key in dict.fromkeys(first_keys(module).values()):
        name = re.sub(r"\W", "_", key)
        # A Sequential's `0.weight` is `module_0_weight`.
        while not name.isidentifier() or iskeyword(name) or name in taken or name in keys:
            name = f"module_{name}"
        keys[name] = key
    return keys


def first_keys(module: nn.Module) -> dict[str, str]:
    """The keys of what it is given, each with the first key of the same tensor: tied weights have several."""
    first: dict[int, str] = {}
    return {key: first.setdefault(id(value), key) for key, value in held(module).items()}


def held(module: nn.Module) -> dict[str, torch.Tensor]:
    """What a module is given: its state_dict, and other buffers but for positions."""
    buffers = unsaved_buffers(module)
    if module not in GIVEN:
        GIVEN[module] = frozenset(name for name, buffer in buffers.items() if not is_in_even_steps(buffer))
    return {**module.state_dict(keep_vars=True), **{n: b for n, b in buffers.items() if n in GIVEN[module]}}


def register_attributes(module: nn.Module) -> None:
    """Let tensors that are plain attributes be buffers that no state_dict has: a call can be given those."""
    attributes = []
    for path, part in module.named_modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and not hasattr(type(part), name):
                part.register_buffer(name, part.__dict__.pop(name), persistent=False)
                attributes.append(f"{path}.{name}".removeprefix("."))
    ATTRIBUTES[module] = tuple(attributes)


def unsaved_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that its state_dict leaves out."""
    saved = module.state_dict(keep_vars=True)
    return {name: buffer for name, buffer in module.named_buffers() if name not in saved}


def numbers_read(module: nn.Module) -> dict[str, Number]:
    """Numbers among the attributes of a module's parts that a method looks at once it is constructed."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__} - {nn.Module, object}
    methods = [method for kind in kinds for name, method in vars(kind).items() if name != "__init__"]
    read = {name for method in methods for name in getattr(getattr(method, "__code__", None), "co_names", ())}
    return {
        f"{path}.{name}".removeprefix("."): value
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if name in read and isinstance(value, Number) and not isinstance(value, bool)
    }


def holds_others(module: nn.Module) -> bool:
    """Whether it holds tensors that its calls are not given: positions, or what nobody registered."""
    known = {id(tensor) for tensor in held(module).values()}
    attributes = [
        value
        for part in module.modules()
        for name, value in [*vars(part).items(), *part.named_buffers(recurse=False)]
        if name not in ("_parameters", "_buffers", "_modules")
    ]
    tensors = [leaf for leaf in tree_leaves(attributes) if isinstance(leaf, torch.Tensor)]
    return any(id(tensor) not in known for tensor in tensors)
