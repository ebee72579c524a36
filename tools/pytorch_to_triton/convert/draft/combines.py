"""Combine functions of `tl.reduce`, by name: the source that a drafted file holds of each that it uses."""

COMBINES = {
    "nan_max": (
        "@triton.jit\ndef nan_max(a, b):\n"
        '    """The larger value; NaN if either is, as torch has it."""\n'
        "    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "nan_min": (
        "@triton.jit\ndef nan_min(a, b):\n"
        '    """The smaller value; NaN if either is, as torch has it."""\n'
        "    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "multiply": '@triton.jit\ndef multiply(a, b):\n    """The product."""\n    return a * b',
}
