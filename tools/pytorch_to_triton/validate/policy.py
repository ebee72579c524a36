"""Which operators of PyTorch a candidate may call beside those that allocate, view and copy."""

from collections.abc import Collection
from dataclasses import dataclass

ANY = "any"
"""The policy that leaves PyTorch's operators, and whether a kernel was launched, out of the verdict."""
ALLOWED = frozenset(
    {
        # allocation and fill
        "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "zeros",
        "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
        "fill_", "fill", "zero_", "zero", "scalar_tensor", "lift_fresh", "lift_fresh_copy", "lift",
        "arange", "resize_", "set_",
        # views
        "view", "view_as", "reshape", "_reshape_alias", "_unsafe_view", "as_strided", "expand", "permute",
        "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "split", "split_with_sizes", "chunk",
        "unbind", "narrow", "diagonal", "alias", "detach", "detach_", "unfold", "view_as_real",
        "view_as_complex", "real", "imag", "movedim", "flatten", "squeeze_", "unsqueeze_", "t_",
        "transpose_", "as_strided_", "numpy_T", "matrix_H", "mT", "mH", "swapaxes", "swapdims", "moveaxis",
        # cast, copy, clone
        "_to_copy", "to", "clone", "copy_", "copy", "contiguous", "_local_scalar_dense", "item",
        "_pin_memory", "is_pinned", "record_stream", "set_data",
        "promote_types", "result_type", "can_cast",
        # questions about a tensor that read no element
        "size", "stride", "dim", "numel", "storage_offset", "is_contiguous", "sym_size", "sym_stride",
        "sym_numel", "sym_storage_offset", "_version", "is_same_size", "_has_compatible_shallow_copy_type",
    }
)  # fmt: skip
"""What a wrapper does around its kernels: `aten` operators that allocate, fill, view, cast and copy."""
COPY_OF_INPUT = ("input",)
"""The origins of a result that PyTorch's copies and views alone make of the inputs."""


@dataclass(frozen=True)
class Policy:
    """Which operators of PyTorch a candidate may call beside ALLOWED, by name: `mm` or `aten.mm`; or ANY."""

    allow_torch: frozenset[str] = frozenset()

    @property
    def allows_any(self) -> bool:
        return ANY in self.allow_torch

    def names(self, operator: str) -> bool:
        """Whether it allows an operator by name."""
        return public(operator) in map(public, self.allow_torch)

    def refused(self, operators: Collection[str]) -> list[str]:
        """Those of the given operators that this policy does not allow, in their order."""
        allowed = {*map(public, self.allow_torch), *map(public, ALLOWED)}
        return [] if self.allows_any else [name for name in operators if public(name) not in allowed]

    def is_left_to_pytorch(self, origins: Collection[str]) -> bool:
        """Whether a result with these origins may be PyTorch's: a copy, or of an operator allowed by name."""
        allowed = set(map(public, self.allow_torch))
        return tuple(origins) == COPY_OF_INPUT or not allowed.isdisjoint(map(public, origins))


def packet(operator: str) -> str:
    """`aten.mm.default`, `aten.mm` and `mm` are one operator to a policy; others keep their namespace."""
    if operator.startswith("aten."):
        return operator.removeprefix("aten.").partition(".")[0]
    return operator


def public(operator: str) -> str:
    """The name by which a policy knows it: softmax calls `_softmax`, layer_norm `native_layer_norm`."""
    return packet(operator).removeprefix("_").removeprefix("native_")
