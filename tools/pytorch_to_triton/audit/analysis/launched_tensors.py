"""The tensors that a launching function hands to its kernel: where they come from, what it asks of them."""

import ast
from collections.abc import Mapping
from functools import lru_cache

from pytorch_to_triton.audit.analysis.passed import Extent
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes, parameters_of


def rank_of(tensor: str, launch: LaunchSite) -> int | None:
    """How many axes a tensor has, where its shape is unpacked into names."""
    ranks = {axes for owner, axes in _unpacked(launch) if owner == tensor}
    return ranks.pop() if len(ranks) == 1 else None


def text_of(size: Extent) -> str:
    """`x.shape[0]`"""
    return f"{size.tensor}.numel()" if size.axis is None else f"{size.tensor}.shape[{size.axis}]"


def callers_parameters(launch: LaunchSite) -> frozenset[str]:
    """The parameters of the launching function."""
    return frozenset(p.arg for p in parameters_of(launch.function)) if launch.function else frozenset()


def tensors_of(launch: LaunchSite, kernel: SourceKernel) -> Mapping[str, str]:
    """The names that are passed for the kernel's pointers, by parameter."""
    pointers = {access.pointer for access in kernel.accesses}
    return {
        parameter: value.id
        for parameter, value in launch.given(kernel).items()
        if parameter in pointers and isinstance(value, ast.Name)
    }


def allocation(name: str, launch: LaunchSite) -> tuple[str, ast.Call] | None:
    """The call that makes a tensor in the launching function, with its path or its method's name.

    None where the name is assigned anywhere else, too.
    """
    bindings = launch.scope.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0].value, ast.Call):
        return None
    call = bindings[0].value
    path = launch.scope.path(call.func)
    if path is None and isinstance(call.func, ast.Attribute):
        path = call.func.attr
    return (path, call) if path else None


def asked_of(name: str, launch: LaunchSite) -> frozenset[str]:
    """The attributes and methods of a name that the launching function uses."""
    return frozenset(attribute for owner, attribute in _attributes(launch) if owner == name)


def made_like(call: ast.Call) -> str | None:
    """The name that `torch.empty_like(name)` and its kind copy the layout of."""
    first = argument(call, 0, "input")
    return first.id if isinstance(first, ast.Name) else None


@lru_cache(maxsize=64)
def _unpacked(launch: LaunchSite) -> frozenset[tuple[str, int]]:
    """Each tensor whose shape is unpacked, with the number of its axes."""
    found: set[tuple[str, int]] = set()
    for node in own_nodes(launch.function.body if launch.function else []):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)],
                value=ast.Attribute(value=owner, attr="shape")
                | ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[]),
            ) if not any(isinstance(target, ast.Starred) for target in targets):
                found.add((ast.unparse(owner), len(targets)))
    return frozenset(found)


@lru_cache(maxsize=64)
def _attributes(launch: LaunchSite) -> frozenset[tuple[str, str]]:
    """Each `name.attribute` in the launching function."""
    return frozenset(
        (node.value.id, node.attr)
        for node in own_nodes(launch.function.body if launch.function else [])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
