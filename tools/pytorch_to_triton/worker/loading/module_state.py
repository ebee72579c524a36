"""The tensors of a module that its calls are given, by the names of arguments."""

import re
from collections.abc import Collection
from keyword import iskeyword
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from .written_out import is_in_even_steps

GIVEN: WeakKeyDictionary[nn.Module, frozenset[str]] = WeakKeyDictionary()
"""Buffers that no state_dict has, but for positions; asked once, before a trace puts fake tensors there."""
OF_A_FILE = frozenset({"torch", "triton", "tl", "math", "libdevice"})
"""What a kernel file imports."""


def state_arguments(module: nn.Module, parameters: Collection[str]) -> dict[str, str]:
    """Names for arguments beside forward's `parameters`, each with its key of the state_dict."""
    taken = {*parameters, *OF_A_FILE}
    keys: dict[str, str] = {}
    for key in dict.fromkeys(first_keys(module).values()):
        name = re.sub(r"\W", "_", key)
        # A Sequential's `0.weight` is `module_0_weight`.
        while not name.isidentifier() or iskeyword(name) or name in taken | keys.keys():
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


def unsaved_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that its state_dict leaves out."""
    saved = module.state_dict(keep_vars=True)
    return {name: buffer for name, buffer in module.named_buffers() if name not in saved}


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
