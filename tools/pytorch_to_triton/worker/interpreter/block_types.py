"""What follows from the shape of a block, made once, and handles made in one step: upstream makes dozens of
objects for each operation, in which an interpreted kernel spends a third of its time."""

import functools
from dataclasses import dataclass
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as upstream

Lengths = tuple[int, ...]

make_type_upstream = tl.block_type.__init__
make_tensor_upstream = tl.tensor.__init__


@dataclass(frozen=True)
class ShapeParts:
    """What all block types and tensors of one shape share."""

    of_types: dict[str, Any]
    of_tensors: dict[str, Any]
    """Empty until there is a tensor."""
    name: str
    """The start of the types' names."""


BY_LENGTHS: dict[Lengths, ShapeParts] = {}
PARTS = "parts"
"""The attribute of a type's `shape` that has them; to ask for an `id` would raise an audit event."""
SCALAR = ShapeParts({}, {}, "")


class Semantic(TritonSemantic):  # type: ignore[misc]
    """Triton's operations on tensors."""

    def broadcast_impl_value(self, lhs: Any, rhs: Any) -> Any:
        left, right = lhs.type.is_block(), rhs.type.is_block()
        if left != right:
            return (lhs, self.spread(rhs, lhs.type)) if left else (self.spread(lhs, rhs.type), rhs)
        if left:
            if lhs.type.shape is rhs.type.shape:
                return lhs, rhs
            common = common_lengths(tuple(lhs.type.shape), tuple(rhs.type.shape))
            if common is not None:
                return self.stretched(lhs, common), self.stretched(rhs, common)
        return super().broadcast_impl_value(lhs, rhs)

    def cast(self, value: Any, dtype: Any, *rounding: Any, **named: Any) -> Any:
        if value.type.scalar is dtype.scalar:
            return value
        return super().cast(value, dtype, *rounding, **named)

    def spread(self, scalar: Any, like: Any) -> Any:
        wide = tl.block_type(scalar.type.scalar, like.shape)
        return self.tensor(self.builder.create_splat(wide, scalar.handle), wide)

    def stretched(self, block: Any, lengths: Lengths) -> Any:
        if tuple(block.type.shape) == lengths:
            return block
        wide = tl.block_type(block.type.scalar, [*lengths])
        return self.tensor(self.builder.create_broadcast(block.handle, wide.shape), wide)


@functools.cache
def common_lengths(left: Lengths, right: Lengths) -> Lengths | None:
    """What blocks of one rank are broadcast to; None where upstream adds axes, or refuses them."""
    if len(left) != len(right) or any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
        return None
    return tuple(map(max, left, right))


def parts_of(shape: Any) -> ShapeParts | None:
    return vars(shape).get(PARTS) if type(shape) is tl.tuple else None


def make_type(self: Any, element_ty: Any, shape: Any) -> None:
    """`tl.block_type(element_ty, shape)`."""
    known = parts_of(shape)
    if known is None:
        # Anything but integers is for upstream to convert or to refuse.
        lengths = tuple(shape) if all(type(length) is int for length in shape) else None
        known = BY_LENGTHS.get(lengths) if lengths is not None else None
        if known is None:
            make_type_upstream(self, element_ty, shape)
            if lengths is not None:
                remember(lengths, self)
            return
    vars(self).update(known.of_types)
    self.element_ty = element_ty
    self.name = f"{known.name}{element_ty}>"


def remember(lengths: Lengths, block_type: Any) -> None:
    of_types = {n: value for n, value in vars(block_type).items() if n not in ("element_ty", "name")}
    shape = ShapeParts(of_types, {}, block_type.name.removesuffix(f"{block_type.element_ty}>"))
    BY_LENGTHS[lengths] = shape
    if type(block_type.shape) is tl.tuple:
        vars(block_type.shape)[PARTS] = shape


def make_tensor(self: Any, handle: Any, type: Any) -> None:
    """`tl.tensor(handle, type)`."""
    known = parts_of(type.shape) if type.is_block() else SCALAR
    if known is not None and known.of_tensors:
        vars(self).update(known.of_tensors)
        self.handle, self.type, self.dtype = handle, type, type.scalar
        return
    make_tensor_upstream(self, handle, type)
    if known is not None:
        of_tensors = {n: value for n, value in vars(self).items() if n not in ("handle", "type", "dtype")}
        known.of_tensors.update(of_tensors)


def make_handle(self: Any, data: Any, dtype: Any, attr: dict[str, Any] | None = None) -> None:
    """`TensorHandle(data, dtype, attr)`."""
    self.data, self.dtype, self.attr = data, dtype, {} if attr is None else attr
    if type(dtype) is not tl.dtype or data.itemsize > max(1, dtype.primitive_bitwidth // 8):
        self.__post_init__()


def install() -> None:
    tl.block_type.__init__ = make_type
    tl.tensor.__init__ = make_tensor
    upstream.TensorHandle.__init__ = make_handle
