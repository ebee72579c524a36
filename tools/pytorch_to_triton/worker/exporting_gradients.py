"""What torch imports at its first trace with gradients beside that: Inductor, for a pass of a partitioner."""

from contextlib import suppress
from importlib import import_module

from .runtime import interpreting

if interpreting():
    with suppress(ImportError):
        import_module("torch._inductor.pattern_matcher")
