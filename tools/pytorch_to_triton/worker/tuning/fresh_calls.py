"""Calls of the target that all find the same inputs, whatever the calls before wrote to them."""

from typing import Any

import torch

from ..calls.exchange import CallInputs, map_tensors, outputs_of, written_to
from ..calls.tensors import Outputs, leaves
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
