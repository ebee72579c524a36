"""Exported programs in core operators, without what torch does anew in each decomposition."""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._export import utils
from torch.export import exported_program

from ..replacement import all_replaced

Table = dict[Any, Callable[..., Any]]
COMPOSITES = "_collect_all_valid_cia_ops"
OVERRIDE = "_override_composite_implicit_decomp"
KEPT = "_special_op_to_preserve_cia"
"""What torch.export has as the decomposition of a composite operator that it is to keep."""
TAKEN_APART = frozenset(
    ("aten._batch_norm_with_update_functional.default", "aten.narrow_copy.default", "aten.unbind_copy.int")
)
"""Operators that torch.export would keep, though torch has a decomposition for each."""


@functools.cache
def known_decompositions() -> Table:
    """How torch takes operators apart; asked for first, torch.export makes all operators of PyTorch."""
    more = {op: taken for op, taken in decomposition_table.items() if str(op) in TAKEN_APART}
    return {**torch.export.default_decompositions(), **more}


@functools.cache
def composites() -> frozenset[Any]:
    """The composite operators that torch.export can keep; one that is registered later is taken apart."""
    return frozenset(getattr(utils, COMPOSITES)())


def decompositions(keep: frozenset[str]) -> Table:
    """The decompositions of all operators but those to keep."""
    return {op: taken for op, taken in known_decompositions().items() if str(op) not in keep}


@contextmanager
def only_kept_overridden() -> Iterator[None]:
    """Inside, torch.export overrides only the composite operators that it is to keep.

    The dispatcher takes the others apart by itself. For each program torch would look for all of them dozens
    of times, and override hundreds: more than a third of the time that a trace takes.
    """
    if not all(hasattr(exported_program, name) for name in (COMPOSITES, OVERRIDE, KEPT)):
        yield
        return
    override, kept = getattr(exported_program, OVERRIDE), getattr(exported_program, KEPT)

    def override_kept(found: Table) -> AbstractContextManager[None]:
        overridden: AbstractContextManager[None] = override({op: kept for op in found if found[op] is kept})
        return overridden

    with all_replaced(
        [(exported_program, COMPOSITES, composites), (exported_program, OVERRIDE, override_kept)]
    ):
        yield
