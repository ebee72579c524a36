"""Whether two configurations of a kernel computed the same: equal but for the order of their roundings."""

from collections.abc import Mapping

import torch

from ..calls.tensors import OutputLeaf

TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 4e-3,
    torch.bfloat16: 3.2e-2,
    torch.float8_e4m3fn: 0.25,
    torch.float8_e5m2: 0.5,
}
"""How far an element may be off, in units of its own size or of the root mean square of all elements."""
STRICTEST = 1e-9
"""Of floating dtypes that have no row above."""


def disagreement(ours: Mapping[str, OutputLeaf], expected: Mapping[str, OutputLeaf]) -> str:
    """What differs first; empty where both agree.

    Integers and bools must be equal, NaN and infinities in the same places.
    """
    if ours.keys() != expected.keys():
        return f"it returns or writes {', '.join(ours) or 'nothing'}, not {', '.join(expected)}"
    for path, output in ours.items():
        theirs = expected[path]
        if output.traits != theirs.traits:
            return f"{path} is {describe_value(output)}, not {describe_value(theirs)}"
        if output.tensor is not None and theirs.tensor is not None:
            count = count_differences(output.tensor, theirs.tensor)
            if count:
                return f"{path} differs from the first configuration's in {count} elements"
    return ""


def describe_value(output: OutputLeaf) -> str:
    """Its type and, of a tensor, dtype and shape."""
    return " ".join(
        str(output.traits[trait]) for trait in ("type", "dtype", "shape") if trait in output.traits
    )


def count_differences(values: torch.Tensor, expected: torch.Tensor) -> int:
    """How many elements are not the expected ones; both of one dtype and shape."""
    if expected.is_complex():
        values, expected = torch.view_as_real(values), torch.view_as_real(expected)
    if not expected.is_floating_point():
        return int((values != expected).sum())
    tolerance = TOLERANCES.get(expected.dtype, STRICTEST)
    wide = torch.float64 if expected.dtype == torch.float64 else torch.float32
    values, expected = values.to(wide), expected.to(wide)
    finite = expected.isfinite()
    typical = torch.where(finite, expected, 0.0).square().mean(dtype=torch.float64).sqrt().to(wide)
    allowed = tolerance * torch.maximum(expected.abs(), typical)
    near = torch.where(finite, (values - expected).abs() <= allowed, values == expected)
    return int((~(near | (values.isnan() & expected.isnan()))).sum())
