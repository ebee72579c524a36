"""What functions of Triton's do to blocks, by their names: the one table that every analysis reads."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FLOATING = _names("exp exp2 log log2 log1p sigmoid tanh sqrt sqrt_rn rsqrt sin cos erf")
"""Element by element, with floats as results."""
ELEMENTWISE = FLOATING | _names("abs ceil floor fma maximum minimum clamp where div_rn fdiv")
KEEPING = _names("reshape view broadcast_to expand_dims cast to")
"""They give the values of their first operand, in another shape or dtype."""
KEEPING_DTYPE = KEEPING | _names("sum max min abs trans zeros_like")
SCALAR = _names("program_id num_programs sum max min argmax argmin xor_sum")
"""Their results are known to a run alone, and may be scalars."""
METHODS = FLOATING | _names("sum max min abs to")
"""They are methods of blocks, too."""
