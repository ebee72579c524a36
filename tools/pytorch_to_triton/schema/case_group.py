"""Why a validation makes a call."""

from typing import Literal

Group = Literal[
    "declared", "reduced", "odd", "power_of_two", "one", "empty", "batch", "beyond", "random_sizes", "layout",
    "large_stride", "special", "option", "dtype", "mixed", "repeat", "requested",
]  # fmt: skip
"""Why a case is there.

declared: sizes the caller declared. reduced: sizes below those, where the declared ones are over the limit.
odd: odd and prime sizes, or where none is allowed an uneven one; one dimension at a time, all at once, and
all alike. power_of_two: a power of two, one below and one above. one, empty: one element, and none, along a
dimension. batch: a first dimension longer than the declared ones. beyond: past twice the power of two that
holds the largest declared size, and past sizes at which the candidate's own code takes another way.
random_sizes: generated at random from the seed. layout: memory layouts, of one tensor or of all.
large_stride: offsets past 2^31 elements. special: special values. option: a float constant times ten.
dtype: further dtypes that are declared. mixed: one tensor in another dtype than those that declare the same
dtypes. repeat: a second call at the addresses of the first, with other values. requested: sizes that the
caller named and no plan holds.
"""
DECLARED_GROUPS: tuple[Group, ...] = ("declared", "reduced", "dtype")
"""Groups of cases that the declaration asks for; the others are generated."""
