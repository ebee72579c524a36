"""Triton's compiler refuses a kernel."""

from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.rule import evidence_rule

_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    %s
    tl.store(out_ptr + i, x)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=64)
    return out
"""
BAD = (
    _FILE % "x = x + tl.arange(0, 2 * BLOCK)",
    _FILE % "x = tl.relu(x)",
)
GOOD = (_FILE % "x = tl.maximum(x, 0.0)",)
_SKIPPED = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError")
"""The autotuner skips a configuration that fails so."""


@evidence_rule(CompiledCode, "critical", "correctness", BAD, GOOD)
def compiler_refuses(code: CompiledCode) -> Iterator[Fault]:
    """Triton's compiler refuses a kernel.

    No launch of it runs: the first one raises the compiler's error.

    Fix: change the line that the compiler names; its message says what is wrong there.
    """
    failure = code.compiled.failure
    if failure is None or (code.is_trial and failure.type in _SKIPPED):
        return
    file = Path(failure.file) if failure.file else None
    text = " ".join(failure.message.split())
    yield Fault(
        SourceLine(failure.line or code.compiled.line, file),
        f"{code.compiled.name} does not compile, so none of its launches run: {text}",
        "Change this line: the compiler cannot compile what it uses.",
        proof=f"Compiled for {code.where}: {failure.type}: {text}",
    )
