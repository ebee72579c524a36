"""torch.export looks for composite operators dozens of times in each export: a fifth of its time."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._export import utils

from ..replacement import replaced

KEY = "CompositeImplicitAutograd"
LOOK = "_materialize_cpp_cia_ops"


@contextmanager
def looked_up_once() -> Iterator[None]:
    """Inside, they are made again only once another one is registered, as a file does that is traced."""
    if not hasattr(utils, LOOK):
        yield
        return
    upstream, made = getattr(utils, LOOK), list[str]()

    def look() -> None:
        registered = torch._C._dispatch_get_registrations_for_dispatch_key(KEY)
        if registered != made:
            upstream()
            made[:] = registered

    with replaced(utils, LOOK, look):
        yield
