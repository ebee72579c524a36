"""Kernels that are known to be compiled wrongly, by Triton's version, ptxas and GPU.

Each was confirmed by those who maintain the compiler, or by a kernel of this project's on a GPU; `sources`
says by whom. An entry says that such a kernel may be wrong, not that it is.
"""

import re
from typing import Literal

from pytorch_to_triton.hardware.versions import Versions
from pytorch_to_triton.schema.value import Value

Pattern = Literal["register_operand", "remainder_of_index", "two_dots_into_one", "two_reductions_of_a_loop"]
"""What a kernel's source shows of it; validate/at_fault.py finds it."""
Release = tuple[int, ...]
HOPPER = ((9, 0),)
BLACKWELL = ((10, 0), (10, 3))
ANY: tuple[Release, Release] = ((0,), (999,))
_ISSUES = "github.com/triton-lang/triton/issues"


class Miscompilation(Value):
    """A mistake of a compiler."""

    name: str
    """What comes out wrong, as part of a sentence."""
    pattern: Pattern
    capabilities: tuple[tuple[int, int], ...]
    """Compute capabilities of the GPUs that it was seen on."""
    triton: tuple[Release, Release] = ANY
    """From the first release on, before the second."""
    ptxas: tuple[Release, Release] = ANY
    """Likewise, of the CUDA toolkit."""
    avoid: str
    """How to do without, in a sentence."""
    sources: tuple[str, ...]

    def is_of(self, triton: str) -> bool:
        """Whether this Triton has it."""
        return self.triton[0] <= release(triton) < self.triton[1]

    def concerns(self, versions: Versions) -> bool:
        """Whether it was seen with this Triton, the ptxas that it takes, and a GPU like the first one."""
        if not versions.devices or not versions.assemblers:
            return False
        return (
            versions.devices[0].capability in self.capabilities
            and self.is_of(versions.triton)
            and self.ptxas[0] <= release(versions.assemblers[0].version) < self.ptxas[1]
        )


MISCOMPILATIONS: tuple[Miscompilation, ...] = (
    Miscompilation(
        name="a tl.dot whose first operand stays in registers, while ptxas gives these to another value",
        pattern="register_operand",
        capabilities=HOPPER,
        ptxas=((12, 8), (13, 3)),
        avoid="Use ptxas 13.3 or newer, num_stages=1, or another tile size.",
        # Confirmed, with its fix, by NVIDIA. Seen here in flash_attention with ptxas 12.8, 12.9 and 13.0.
        sources=(f"{_ISSUES}/9433", "github.com/triton-lang/triton/pull/11781"),
    ),
    Miscompilation(
        name="a 16-bit sum with a remainder or quotient of a tile's indices, without its constant",
        pattern="remainder_of_index",
        capabilities=(*HOPPER, *BLACKWELL, (12, 0)),
        ptxas=((12, 8), (13, 3)),
        avoid="Use ptxas 13.3 or newer, or write the index without remainders and quotients.",
        # Seen here on an H200 with 12.8: 512 of 7,840 columns were left unwritten. The disassembly shows it
        # with 12.8, 13.0 and 13.1: VIADD.16x2 adds 0. Without optimisation it adds the constant.
        sources=(f"{_ISSUES}/11581",),
    ),
    Miscompilation(
        name="two tl.dot that add to one accumulator in a loop, which is pipelined",
        pattern="two_dots_into_one",
        capabilities=BLACKWELL,
        triton=((3, 6), (3, 8)),
        avoid="Add to two accumulators, and add these after the loop.",
        sources=(f"{_ISSUES}/10821", "github.com/triton-lang/triton/pull/10858"),
    ),
    Miscompilation(
        name="a loop that adds up maxima of loaded tiles, or the like, as if both were one reduction",
        pattern="two_reductions_of_a_loop",
        capabilities=((8, 0), (8, 6), (8, 9), *HOPPER, *BLACKWELL, (12, 0)),
        triton=((3, 0), (3, 10)),
        avoid="Reduce `tile + 0.0`, or tl.where(mask, tile, ...), in place of the tile as it was loaded.",
        # Seen here on an H100 with 3.6.0: all sums were -inf. Compiled for sm_90, 3.6.0, 3.7.1 and 3.9.0
        # move the reduction behind the loop alike.
        sources=("github.com/triton-lang/triton/pull/11305", "github.com/triton-lang/triton/pull/11370"),
    ),
)


def release(version: str) -> Release:
    """(3, 6, 0) of `3.6.0+git1234`."""
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def of_triton(triton: str) -> tuple[Miscompilation, ...]:
    """The entries of this Triton, whatever its ptxas: they show on a GPU alone, and are known without one."""
    return tuple(entry for entry in MISCOMPILATIONS if entry.ptxas == ANY and entry.is_of(triton))


def concerning(versions: Versions) -> tuple[Miscompilation, ...]:
    """The entries that were seen with this Triton and ptxas on the first device."""
    return tuple(entry for entry in MISCOMPILATIONS if entry.concerns(versions))
