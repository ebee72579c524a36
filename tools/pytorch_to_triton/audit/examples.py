"""Writes the examples of rules: files of one kernel that differ in a few lines."""

import json

LANES = "i = tl.program_id(0) * B + tl.arange(0, B)"
ROW = "i = tl.arange(0, B)"


def jit(*steps: str, takes: str = "x_ptr, out_ptr, n, B: tl.constexpr") -> str:
    """A kernel of these lines, as they stand in its body."""
    return f"\n@triton.jit\ndef kernel({takes}):\n{_body(steps)}"


def run(*steps: str, takes: str = "x, out") -> str:
    """The function that launches it."""
    return f"\ndef run({takes}):\n{_body(steps)}"


def declared(kernel: str, *launch: str, out: str = "torch.empty_like(x)", **given: str | int) -> str:
    """A kernel file: the kernel, its inputs, the sizes of their dims, and a `run` that returns `out`."""
    inputs = {name: spec for name, spec in given.items() if isinstance(spec, str)}
    dims = {name: [size] for name, size in given.items() if isinstance(size, int)}
    head = f"\nINPUTS = {json.dumps(inputs)}\nDIMS = {json.dumps(dims)}\n"
    return head + kernel + run(f"out = {out}", *launch, "return out", takes=", ".join(inputs))


def _body(steps: tuple[str, ...]) -> str:
    return "".join(f"    {line}\n" for step in steps for line in step.splitlines())
