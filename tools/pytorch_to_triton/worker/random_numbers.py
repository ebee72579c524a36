"""Seeding the random numbers that torch draws where no generator is named."""

import torch

from .runtime import interpreting


def seed_random_numbers(seed: int) -> None:
    """As `torch.manual_seed`; under the interpreter, where every tensor lies on the CPU, only there.

    For each kind of device that does not run yet, torch keeps the seed together with a stack trace, which
    takes longer than most calls.
    """
    if interpreting():
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
