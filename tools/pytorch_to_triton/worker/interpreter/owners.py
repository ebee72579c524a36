"""An owner is an int64 that encodes who did something, when and where; 0 is nobody.

It holds the program's rank in the order in which programs run, from 1 on; the phase that it was in, which a
barrier or an atomic operation of its own ends; and the number of the source line.
"""

from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]

SITE_BITS = 16
SITES = (1 << SITE_BITS) - 1
PHASE_BITS = 16
PHASES = (1 << PHASE_BITS) - 1


def owner_of(rank: int, phase: int, site: int) -> int:
    """Phases and lines beyond the last number that fits share it."""
    return (rank << PHASE_BITS | min(phase, PHASES)) << SITE_BITS | min(site, SITES)


Owners = TypeVar("Owners", int, Array)
"""One, or an array of them, element by element."""


def rank_of(owner: Owners) -> Owners:
    return owner >> (SITE_BITS + PHASE_BITS)


def phase_of(owner: Owners) -> Owners:
    return owner >> SITE_BITS & PHASES


def phases_of(owner: Owners) -> Owners:
    """The program and its phase in one number."""
    return owner >> SITE_BITS


def site_of(owner: Owners) -> Owners:
    return owner & SITES
