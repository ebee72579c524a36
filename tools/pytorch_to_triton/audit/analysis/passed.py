"""What a launch passes: sizes and strides of which tensor, along which axis."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pytorch_to_triton.api.scope import own_nodes
from pytorch_to_triton.audit.analysis.arguments import whole_number
from pytorch_to_triton.audit.source import Launch


@dataclass(frozen=True)
class Extent:
    """The size or the stride of a tensor along one axis, or its number of elements."""

    tensor: str
    """As the source spells it."""
    axis: int | None
    """From 0, from the end where negative; None: all elements."""


def size_of(value: ast.expr, launch: Launch) -> Extent | None:
    """The size that a value certainly is; names are followed, `rows, cols = x.shape` among them."""
    value = launch.flow.resolved(value)
    match value:
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=index):
            return _extent(owner, index)
        case ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[index], keywords=[]):
            return _extent(owner, index)
        case ast.Call(func=ast.Attribute(value=owner, attr="numel" | "nelement"), args=[]):
            return Extent(ast.unparse(owner), None)
        case ast.Name(id=name) if len(launch.scope.bindings.get(name, ())) == 1:
            return _unpacked(launch).get(name)
    return None


def stride_of(value: ast.expr, launch: Launch) -> Extent | None:
    """The stride that a value certainly is; names are followed."""
    match launch.flow.resolved(value):
        case ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[index], keywords=[]):
            return _extent(owner, index)
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[]), slice=index
        ):
            return _extent(owner, index)
    return None


def _extent(owner: ast.expr, index: ast.expr) -> Extent | None:
    axis = whole_number(index)
    return None if axis is None else Extent(ast.unparse(owner), axis)


@lru_cache(maxsize=64)
def _unpacked(launch: Launch) -> Mapping[str, Extent]:
    """The names that a shape is unpacked into, with the sizes that they are."""
    found: dict[str, Extent] = {}
    for node in own_nodes(launch.function.body if launch.function else []):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)],
                value=ast.Attribute(value=owner, attr="shape")
                | ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[]),
            ) if all(isinstance(target, ast.Name) for target in targets):
                for axis, target in enumerate(targets):
                    found.setdefault(ast.unparse(target), Extent(ast.unparse(owner), axis))
    return found
