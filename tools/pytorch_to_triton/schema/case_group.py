"""Why a validation makes a call."""

from typing import Literal

Group = Literal[
    "declared", "reduced", "odd", "one", "empty", "beyond", "layout", "large_stride", "special", "option",
    "dtype", "value", "mixed", "repeat", "combined",
]  # fmt: skip
"""Why a case is there.

declared: sizes the caller declared. reduced: sizes below those, where the declared ones are over the limit.
odd: sizes among the declared ones that nobody declared. one, empty: one element, and none, along a dimension.
beyond: sizes past the declared ones. layout: memory layouts. large_stride: offsets past 2^31 elements.
special: special values. option: another value of a float constant. dtype: further dtypes that are declared.
value: further values of constants that are declared.
mixed: one tensor in another dtype than those that declare the same dtypes. repeat: a second call at the
addresses of the first, with other values. combined: several of these conditions at once.
"""
DECLARED_GROUPS: tuple[Group, ...] = ("declared", "reduced", "dtype", "value")
"""Groups of cases that the declaration asks for; the others are generated."""
