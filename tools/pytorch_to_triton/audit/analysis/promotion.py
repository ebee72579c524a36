"""The dtypes of values, as Triton promotes them."""

LOW_PRECISION = ("float16", "bfloat16")
FLOATS = (*LOW_PRECISION, "float32", "float64", "float")
"""`float` is one of unknown width."""
LITERAL = "literal"
"""The dtype of a number that takes on that of the block it meets."""
OPEN = "open"
"""Of a value that is made from itself, while its dtype is sought."""
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int1")


def agree(dtypes: list[str | None]) -> str | None:
    """The one dtype of values that are all held by one name."""
    known = {dtype for dtype in dtypes if dtype != OPEN}
    return known.pop() if len(known) == 1 else None if known else OPEN


def promote(one: str | None, other: str | None) -> str | None:
    """The dtype of a sum; None where it depends on which of the two is a scalar."""
    if one == other or other in (LITERAL, OPEN):
        return one
    if one in (LITERAL, OPEN):
        return other
    if one in FLOATS or other in FLOATS:
        return "float"
    return "int64" if "int64" in (one, other) and {one, other} <= {*INTEGERS} else None


def quotient_dtype(dtype: str | None) -> str | None:
    """The dtype of a quotient of this one: float16 and integers become float32."""
    if dtype == OPEN:
        return OPEN
    return "float32" if dtype in LOW_PRECISION or dtype in INTEGERS else dtype or "float"
