"""Calls of the target that all find the same inputs, whatever the calls before wrote to them, and whether two
configurations computed the same in them: equal but for the order of their roundings.
"""

from collections.abc import Mapping
from typing import Any

import torch

from ..calls.exchange import CallInputs, map_tensors, outputs_of, written_to
from ..calls.tensors import OutputLeaf, Outputs, leaves
from ..loading.target import Loaded


class FreshCalls:
    """One target with one set of inputs, of which a copy is kept."""

    def __init__(self, loaded: Loaded, call: CallInputs) -> None:
        self._loaded = loaded
        self._original = call
        self._call = map_tensors(call, lambda name, tensor: tensor.clone())
        self._written: set[str] = set()

    def refresh(self) -> None:
        """Give the arguments that a call ever wrote to their values back."""
        originals, ours = self._original.tensors(), self._call.tensors()
        for name in self._written:
            ours[name].copy_(originals[name])

    def __call__(self) -> Any:
        """The call, without gradients, on the inputs as they are."""
        with torch.no_grad():
            return self._loaded(self._call.arguments, self._call.state)

    def outputs(self) -> Outputs:
        """What a call with fresh inputs gives back by path, arguments that it writes to included."""
        self.refresh()
        returned = dict(leaves(self()))
        written = written_to(self._call, self._original)
        self._written.update(written)
        return outputs_of(returned, self._call, written)


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
