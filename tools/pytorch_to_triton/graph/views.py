"""How a value is read from another value that lies contiguous in memory: sizes, strides and an offset.

Operators that move no data (transpose, slice, expand, reshape, ...) vanish here: each becomes a View, so
that a kernel reads through it instead of copying.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.symbolic_size import ONE, ZERO, SymbolicSize, contiguous_strides
from pytorch_to_triton.schema.graph import ArgumentList, Literal_, Node, NodeArgument, Shape, SizeRef


@dataclass(frozen=True)
class Dim:
    """One dimension of a view."""

    size: SymbolicSize
    traced: int
    stride: SymbolicSize
    """In elements of the source; 0 where the source is repeated."""
    source_dim: int | None
    """The source's dimension that this one runs over whole and in order; None where it is repeated or cut."""


@dataclass(frozen=True)
class View:
    """A way to read `source`, a buffer or a computed value."""

    source: str
    dims: tuple[Dim, ...]
    offset: tuple[SymbolicSize, ...] = ()
    """Terms of the first element's offset, in elements."""
    aligned: bool = True
    """Each dimension is a whole dimension of the source or a repetition: no slice, no reshape."""
    label: str | None = None
    """The variable that the caller's source gives to this view."""

    def __len__(self) -> int:
        return len(self.dims)


def whole(source: str, shape: Shape) -> View:
    """The source as it is, contiguous."""
    sizes = tuple(SymbolicSize.parse(e) for e in shape.expressions)
    dims = (
        Dim(size, traced, ZERO if traced == 1 else stride, None if traced == 1 else i)
        for i, (size, traced, stride) in enumerate(
            zip(sizes, shape.traced, contiguous_strides(sizes), strict=True)
        )
    )
    return View(source, tuple(dims))


def through(node: Node, view: View) -> View:
    """`view` read through the view operator `node`."""
    return VIEWS[node.op](node, view)


def _axis(node: Node, view: View, position: int, default: int = 0) -> int:
    value = _integer(node.args[position]) if len(node.args) > position else default
    return value % max(len(view), 1)


def _integer(argument: NodeArgument) -> int:
    match argument:
        case Literal_(value=int(value)):
            return value
        case SizeRef(traced=int(traced)):
            return traced
    raise NotConvertible("it takes something that is not an integer", "Write the view with plain sizes.")


def _size(argument: NodeArgument) -> SymbolicSize:
    match argument:
        case SizeRef(expression=expression):
            return SymbolicSize.parse(expression)
    return SymbolicSize(_integer(argument))


def _items(argument: NodeArgument) -> tuple[NodeArgument, ...]:
    return argument.items if isinstance(argument, ArgumentList) else (argument,)


def _same(node: Node, view: View) -> View:
    return view


def _permute(node: Node, view: View) -> View:
    order = [_integer(a) % len(view) for a in _items(node.args[1])]
    return replace(view, dims=tuple(view.dims[i] for i in order))


def _transpose(node: Node, view: View) -> View:
    a, b = (_integer(arg) % len(view) for arg in node.args[1:3])
    dims = list(view.dims)
    dims[a], dims[b] = dims[b], dims[a]
    return replace(view, dims=tuple(dims))


def _t(node: Node, view: View) -> View:
    return replace(view, dims=view.dims[::-1])


def _unsqueeze(node: Node, view: View) -> View:
    at = _integer(node.args[1]) % (len(view) + 1)
    return replace(view, dims=(*view.dims[:at], Dim(ONE, 1, ZERO, None), *view.dims[at:]))


def _squeeze(node: Node, view: View) -> View:
    given = {_integer(a) % len(view) for a in _items(node.args[1])} if len(node.args) > 1 else None
    dims = (d for i, d in enumerate(view.dims) if d.traced != 1 or (given is not None and i not in given))
    return replace(view, dims=tuple(dims))


def _expand(node: Node, view: View) -> View:
    shape = _shape(node)
    extra = len(shape) - len(view)
    sizes = [SymbolicSize.parse(e) for e in shape.expressions]
    dims = [Dim(sizes[i], shape.traced[i], ZERO, None) for i in range(extra)]
    for i, dim in enumerate(view.dims, start=extra):
        stretched = dim.traced == 1 and shape.traced[i] != 1
        dims.append(Dim(sizes[i], shape.traced[i], ZERO, None) if stretched else dim)
    return replace(view, dims=tuple(dims))


def _cut(view: View, at: int, start: SymbolicSize, size: SymbolicSize, traced: int, step: int = 1) -> View:
    dim = view.dims[at]
    cut = Dim(size, traced, dim.stride * SymbolicSize(step), None)
    dims = (*view.dims[:at], cut, *view.dims[at + 1 :])
    offset = start * dim.stride
    terms = view.offset if offset.is_zero else (*view.offset, offset)
    return replace(view, dims=dims, offset=terms, aligned=False)


def _slice(node: Node, view: View) -> View:
    at = _axis(node, view, 1)
    shape = _shape(node)
    size, traced = SymbolicSize.parse(shape.expressions[at]), shape.traced[at]
    step = _integer(node.args[4]) if len(node.args) > 4 else 1
    if traced == view.dims[at].traced and step == 1:
        return view
    start = node.args[2] if len(node.args) > 2 else Literal_(value=0)
    return _cut(view, at, _from_the_start(start, view.dims[at]), size, traced, step)


def _from_the_start(argument: NodeArgument, dim: Dim) -> SymbolicSize:
    """A position that may count from the end, or be None, as an offset from the start."""
    if isinstance(argument, Literal_) and argument.value is None:
        return ZERO
    size = _size(argument)
    if isinstance(argument, Literal_) and size.coefficient < 0:
        return SymbolicSize.parse(f"({dim.size}) - {-size.coefficient}")
    return size


def _select(node: Node, view: View) -> View:
    at = _axis(node, view, 1)
    cut = _cut(view, at, _from_the_start(node.args[2], view.dims[at]), ONE, 1)
    return replace(cut, dims=(*cut.dims[:at], *cut.dims[at + 1 :]))


def _reshape(node: Node, view: View) -> View:
    shape = _shape(node)
    kept = [d for d in view.dims if d.traced != 1]
    if [d.traced for d in kept] == [n for n in shape.traced if n != 1]:
        pairs = iter(kept)
        dims = tuple(next(pairs) if n != 1 else Dim(ONE, 1, ZERO, None) for n in shape.traced)
        return replace(view, dims=dims)
    if view.offset or not _contiguous(view):
        raise NotConvertible(
            "a reshape of a transposed or cut tensor has to copy it",
            "Reshape before the transpose or slice, or make the copy in the caller.",
        )
    return replace(whole(view.source, shape), aligned=False)


def _contiguous(view: View) -> bool:
    strides = contiguous_strides(tuple(d.size for d in view.dims))
    return all(d.traced == 1 or d.stride == s for d, s in zip(view.dims, strides, strict=True))


def _shape(node: Node) -> Shape:
    assert node.shape is not None, f"{node.op} has no shape of its own"
    return node.shape


VIEWS: Mapping[str, Callable[[Node, View], View]] = {
    "aten.alias.default": _same,
    "aten.clone.default": _same,
    "aten.contiguous.default": _same,
    "aten.detach.default": _same,
    "aten.lift_fresh_copy.default": _same,
    "aten.permute.default": _permute,
    "aten.transpose.int": _transpose,
    "aten.t.default": _t,
    "aten.unsqueeze.default": _unsqueeze,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.expand.default": _expand,
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.view.default": _reshape,
    "aten._unsafe_view.default": _reshape,
    "aten.reshape.default": _reshape,
}

SPLIT = frozenset({"aten.split_with_sizes.default"})
"""Operators whose value is several views."""


def split_parts(node: Node, view: View) -> tuple[View, ...]:
    """The parts of a `split_with_sizes`, each a slice of `view`."""
    at = _axis(node, view, 2)
    sizes = [(_size(a), _integer(a)) for a in _items(node.args[1])]
    parts: list[View] = []
    before: list[str] = []
    for size, traced in sizes:
        start = SymbolicSize.parse(" + ".join(before)) if before else ZERO
        parts.append(_cut(view, at, start, size, traced))
        before.append(str(size))
    return tuple(parts)


def size_names(view: View) -> frozenset[str]:
    """The dims that the view's sizes, strides and offset mention."""
    sizes = [s for d in view.dims for s in (d.size, d.stride)] + list(view.offset)
    trees = (ast.parse(str(size), mode="eval") for size in sizes)
    return frozenset(n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name))
