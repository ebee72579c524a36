"""Prompts: what to do with these tools for a task that a user names."""

from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import Field

_DECLARE = (
    'Where the file has no INPUTS and DIMS, declare the inputs: input ["x=float32[M,N]", "eps=1e-5"], '
    'dim ["M=1,7,256", "N=64,1000"].'
)

Target = Annotated[str, Field(description="path.py:name of a function or nn.Module")]
Kernel = Annotated[str, Field(description="A kernel file path.py, or path.py:name")]


def convert(target: Target = "the function") -> str:
    """Turn a PyTorch function or module into a Triton kernel, stage by stage."""
    return f"""Convert {target} from PyTorch to Triton.

1. `device` shows what kernels run on here.
2. `convert_start` traces it and puts a stage-1 file there, drafted or to be written. {_DECLARE}
3. `convert_submit` runs the gate of the stage. A condition that is not met says what was seen and what \
to try: edit the file that the answer names, and submit it again. Three gates: correct, optimised, \
tuned; a kernel of your own goes through all of them at once with `through` 3.
4. Where nothing could be drafted, write the kernel into that file: the answer names the nearest \
reference kernels and guides (docs_read).
5. `convert_finish` writes the function that takes the place of PyTorch's, with its tests. Make the \
change that its docstring names.
6. Report what was validated, what was not tried (`skipped`, `notes`), what stays in PyTorch, and claim \
no speed that was not measured."""


def audit(
    path: Annotated[str, Field(description="A Python file or a folder")] = "the Triton code",
    focus: Annotated[
        str, Field(description="correctness, performance, memory, stability or practices")
    ] = "everything",
) -> str:
    """Review Triton code, and fix what is found."""
    return f"""Review {path} with `audit` ({focus}).

1. `audit` the file or folder. `docs_read` explains a rule: rules/NAME.
2. Report the worst first, each with its place, its evidence and its consequence. A suspected finding is \
not yet a fault: say so, or have it measured by naming the file with its inputs declared.
3. Fix in the order of `recommendations`; then `audit` the file again and `validate` it before calling \
it fixed.
4. Say what was not measured."""


def tune(
    kernel: Kernel = "the kernel",
    gpu: Annotated[str, Field(description="The GPU that it is for, e.g. H200")] = "the GPU here",
) -> str:
    """Make a right kernel fast, by measurements."""
    return f"""Make {kernel} fast on {gpu}.

1. `validate` it: speed counts only for a kernel that is right.
2. `benchmark` it at the sizes that matter. Its share of the limit says how much there is to gain; a \
void verdict says nothing about speed. Without a GPU, `benchmark` with `estimate` gives the limit, and \
`inspect` what the compiler made of the kernel.
3. `inspect` shows spills, occupancy, the widths of loads and stores, and copies that nothing overlaps. \
Change one thing, `validate`, `benchmark` again.
4. `benchmark` with `tune` searches configurations, with `freeze` writes them into the kernel.
5. Report figures with the GPU and the sizes, and what was tried without success."""


def debug(kernel: Kernel = "the kernel") -> str:
    """Find out why a kernel is wrong."""
    return f"""Find out why {kernel} is wrong, and fix it.

1. `validate` it. {_DECLARE}
2. Violations first: a kernel that stores out of bounds, races, or leaves its work to PyTorch is wrong \
even where its values are right.
3. Then the case that `summary` names: `causes` names the likely mistake, the first one first.
4. Run that case until it passes (the same arguments, `seed`, and `smallest` as `case`), then all cases \
with the same seed, then without one. Only the last verdict counts."""


def add_prompts(server: MCPServer[Any]) -> None:
    """Offer all of them."""
    for name, title, function in (
        ("convert", "Convert PyTorch to Triton", convert),
        ("audit", "Audit Triton code", audit),
        ("tune", "Tune a Triton kernel", tune),
        ("debug", "Debug a Triton kernel", debug),
    ):
        server.prompt(name=name, title=title)(function)
