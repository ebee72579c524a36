"""The same launches compiled with other options: `--what-if num_warps=8,num_stages=2`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inspect.compiling import Compiling, compile_kernels
from pytorch_to_triton.schema.compiled import CompiledKernel
from pytorch_to_triton.worker import wire


def alternatives(texts: Sequence[str]) -> tuple[dict[str, int], ...]:
    """Each text as values by name. Raises BadInput for what is no `NAME=INTEGER`."""
    return tuple(alternative(text) for text in texts)


def alternative(text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\d{1,9})\s*", part)
        if match is None or match[1] in values:
            raise BadInput(
                f"{part.strip()!r} in {text!r} is no option with a value of its own.",
                "Write --what-if num_warps=8, or several at once: num_warps=8,num_stages=2.",
            )
        values[match[1]] = int(match[2])
    return values


async def compiled_otherwise(
    compiling: Compiling, kernels: Sequence[CompiledKernel], what_ifs: Sequence[Mapping[str, int]]
) -> list[tuple[CompiledKernel, ...]]:
    """The call's kernels with each of these. Raises BadInput for a name that no launch takes."""
    constexprs = (a.name for kernel in kernels for a in kernel.arguments if a.type == "constexpr")
    taken = {*wire.LAUNCH_OPTIONS, *constexprs}
    for name in (name for what_if in what_ifs for name in what_if):
        if name not in taken:
            raise BadInput(f"No kernel of this call takes {name}.", f"It takes {', '.join(sorted(taken))}.")
    return [(await compile_kernels(replace(compiling, what_if=what_if))).kernels for what_if in what_ifs]
