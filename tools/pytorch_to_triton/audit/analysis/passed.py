"""What a launch passes: sizes and strides of which tensor, along which axis."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.source import LaunchSite


@dataclass(frozen=True)
class Extent:
    """The size or the stride of a tensor along one axis, or its number of elements."""

    tensor: str
    """As the source spells it."""
    axis: int | None
    """From 0, from the end where negative; None: all elements."""


def size_of(value: ast.expr, launch: LaunchSite) -> Extent | None:
    """The size that a value certainly is; names are followed, `rows, cols = x.shape` among them."""
    value = launch.flow.resolved(value)
    match value:
        case ast.Name(id=name) if len(launch.scope.bindings.get(name, ())) == 1:
            return _unpacked_sizes(launch).get(name)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _whole([*_factors(left, launch), *_factors(right, launch)], launch)
    return _spelled_size(value)


def _factors(value: ast.expr, launch: LaunchSite) -> list[Extent | None]:
    value = launch.flow.resolved(value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return [*_factors(value.left, launch), *_factors(value.right, launch)]
    return [size_of(value, launch)]


def _whole(factors: list[Extent | None], launch: LaunchSite) -> Extent | None:
    """All elements, where the factors are the sizes along all axes of a tensor whose shape is unpacked."""
    tensors = {one.tensor if one else None for one in factors}
    axes = sorted(one.axis for one in factors if one and one.axis is not None)
    ranks = {size.axis for size in _unpacked_sizes(launch).values() if {size.tensor} == tensors}
    return Extent(tensors.pop() or "", None) if len(tensors) == 1 and axes and {*axes} == ranks else None


def _spelled_size(value: ast.expr) -> Extent | None:
    match value:
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=index):
            return _extent(owner, index)
        case ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[index], keywords=[]):
            return _extent(owner, index)
        case ast.Call(func=ast.Attribute(value=owner, attr="numel" | "nelement"), args=[]):
            return Extent(ast.unparse(owner), None)
        case ast.Call(func=ast.Name(id="len"), args=[owner]):
            return Extent(ast.unparse(owner), 0)
    return None


def stride_of(value: ast.expr, launch: LaunchSite) -> Extent | None:
    """The stride that a value certainly is; names are followed."""
    value = launch.flow.resolved(value)
    match value:
        case ast.Name(id=name) if len(launch.scope.bindings.get(name, ())) == 1:
            return _unpacked_strides(launch).get(name)
        case ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[index], keywords=[]):
            return _extent(owner, index)
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[]), slice=index
        ):
            return _extent(owner, index)
    return None


def _extent(owner: ast.expr, index: ast.expr) -> Extent | None:
    axis = literal_integer(index)
    return None if axis is None else Extent(ast.unparse(owner), axis)


@lru_cache(maxsize=64)
def _unpacked_sizes(launch: LaunchSite) -> Mapping[str, Extent]:
    """The names that a shape is unpacked into, with the sizes that they are."""
    sizes: dict[str, Extent] = {}
    for node in launch.nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple() as target], value=value):
                for name, size in _pairs(target, value):
                    sizes.setdefault(name, size)
    return sizes


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Extent]]:
    """Each name of a target with the size that it is given."""
    match target, value:
        case ast.Name(id=name), _ if size := _spelled_size(value):
            yield name, size
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, other in zip(targets, values, strict=True):
                yield from _pairs(one, other)
        case _:
            yield from _named_axes(ast.Assign([target], value), "shape")


@lru_cache(maxsize=64)
def _unpacked_strides(launch: LaunchSite) -> Mapping[str, Extent]:
    """The names of `sm, sn = x.stride()`."""
    return {name: stride for node in launch.nodes for name, stride in _named_axes(node, "stride")}


def _named_axes(node: ast.AST, whole: Literal["shape", "stride"]) -> Iterator[tuple[str, Extent]]:
    for owner, targets in unpacked_axes(node, whole):
        if all(isinstance(one, ast.Name) for one in targets):
            yield from ((ast.unparse(one), Extent(owner, axis)) for axis, one in enumerate(targets))


def unpacked_axes(node: ast.AST, whole: Literal["shape", "stride"]) -> Iterator[tuple[str, list[ast.expr]]]:
    """The tensor and the targets of `m, n = x.shape`, of `x.size()` or of `x.stride()`."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=targets)],
            value=ast.Attribute(value=owner, attr="shape" as name)
            | ast.Call(func=ast.Attribute(value=owner, attr="size" | "stride" as name), args=[]),
        ) if (name == "stride") == (whole == "stride"):
            yield ast.unparse(owner), targets
