"""Names and arguments that Triton lacks, or warns about: one row a kind of misuse."""

from collections.abc import Callable, Iterator

from pytorch_to_triton.audit.examples import jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Rule, RuleCheck, about
from pytorch_to_triton.audit.source import SourceFile


def _misuses(*faults: str) -> Callable[[SourceFile], Iterator[Fault]]:
    """Reports what the installed Triton says of a file's names and arguments."""

    def check(file: SourceFile) -> Iterator[Fault]:
        for misuse in file.misuses:
            if misuse.fault in faults:
                yield Fault(misuse.at, misuse.message, misuse.suggestion)

    return check


_NAME_BAD = (
    jit("tl.store(x_ptr, tl.math.tanh(tl.load(x_ptr)))"),
    "from triton.ops import matmul\n",
)
_NAME_GOOD = ("tanh = tl.tanh if hasattr(tl, 'tanh') else None\n",)
_KEYWORD_BAD = (
    jit("m = tl.max(tl.load(x_ptr + tl.arange(0, B)), dim=0)"),
    jit("tl.store(x_ptr, tl.program_id(0, 1))"),
    "@triton.autotune([triton.Config({}, BLOCK=128)], key=['n'])\n@triton.jit\ndef kernel(n): ...\n",
)
_KEYWORD_GOOD = ("def run(x):\n    return x.sum(dim=0, keepdim=True)\n",)
RULES = (
    Rule(
        "nonexistent_api",
        about(
            "A file uses a name that Triton does not have.",
            "Such names come from PyTorch, CUDA or other releases of Triton; import or compiler fails.",
            "Use the name that each finding gives. Functions of one number that tl lacks are mostly in "
            "libdevice: `from triton.language.extra import libdevice`.",
        ),
        "critical",
        "correctness",
        (RuleCheck(SourceFile, _misuses("unknown", "removed"), _NAME_BAD, _NAME_GOOD),),
    ),
    Rule(
        "unknown_keyword",
        about(
            "A call of Triton's has a keyword that the function does not take, or too many arguments.",
            "The names are PyTorch's, NumPy's or those of other releases. The call is refused; where it was "
            "meant to mask, nothing else does it.",
            "Use Triton's own: axis, keep_dims, other.",
        ),
        "critical",
        "correctness",
        (RuleCheck(SourceFile, _misuses("keyword", "positional"), _KEYWORD_BAD, _KEYWORD_GOOD),),
    ),
    Rule(
        "deprecated_api",
        about(
            "A file uses a name of Triton's that every call warns about.",
            "The next release may lack it, and the kernel will not compile there.",
            "Use what took its place: tl.make_tensor_descriptor for block pointers, tl.reshape for tl.view.",
        ),
        "low",
        "best practices",
        (
            RuleCheck(
                SourceFile,
                _misuses("deprecated"),
                (jit("x = tl.view(tl.arange(0, 16), (4, 4))"),),
                (jit("x = tl.reshape(tl.arange(0, 16), (4, 4))"),),
            ),
        ),
    ),
)
