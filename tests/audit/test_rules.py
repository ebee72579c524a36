"""Each rule finds its own BAD sources and is silent on its GOOD ones and on kernels known to be right."""

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.rule import PREAMBLE, Rule
from pytorch_to_triton.audit.source import SourceFile, SourceKernel, parse
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.triton_api.history import history
from pytorch_to_triton.triton_api.surface import installed_version

from ..docs.guide_blocks import blocks_of, source_of

TESTS = Path(__file__).parents[1]
CHECKS = TESTS / "worker" / "interpreter_checks"
BLOCK_POINTERS = history().surface(installed_version()).find("triton.language.make_block_ptr")
# The checks that need block pointers are not right for a Triton that warns of them or refuses them.
UNFIT = [
    file
    for file in CHECKS.glob("*.py")
    if "tl.make_block_ptr" in file.read_text(encoding="utf-8")
    and (BLOCK_POINTERS is None or BLOCK_POINTERS.standing != "current")
]
NO_KERNELS = ("run.py", "cuda_autocast.py", "language.py", "staged_kernels.py")
"""Without kernels, or, language.py, with what only the interpreter or a newer Triton takes."""
RIGHT = [
    *sorted(places.shipped("reference_kernels").glob("*.py")),
    *sorted((TESTS / "convert" / "draft" / "golden").glob("*.py")),
    *sorted({*CHECKS.glob("*.py")} - {CHECKS / name for name in NO_KERNELS} - {*UNFIT}),
]
DRAFTS = sorted((TESTS / "draft" / "golden").glob("*.py"))
RULES = [rule for rule in all_rules() if rule.needs in (SourceKernel, SourceFile)]
"""Those on source; for the others see test_evidence_rules.py."""
RULE = {rule.name: rule for rule in RULES}
GUIDES = sorted(places.shipped("docs_cache/guides").glob("*.md"))
WEIGHTY = ("critical", "high", "medium")


def findings(source: str, *rules: Rule) -> list[Finding]:
    """What the rules, or else all rules, find in a file of this text."""
    file = parse(Path("kernel.py"), source.encode())
    return [finding for rule in rules or RULES for finding in rule.find(file)]


def weighty(source: str) -> list[Finding]:
    """What all rules find of severity medium and above."""
    return [finding for finding in findings(source) if finding.severity in WEIGHTY]


def found_by(source: str) -> Counter[str]:
    """How often each rule finds something weighty in the source below the usual imports."""
    return Counter(finding.rule for finding in weighty(PREAMBLE + source))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_its_bad_sources_and_is_silent_on_its_good_ones(rule: Rule) -> None:
    for check in rule.checks:
        if check.needs in (SourceKernel, SourceFile):
            for source in check.bad:
                assert findings(PREAMBLE + source, rule), source
            for source in check.good:
                assert findings(PREAMBLE + source, rule) == [], source


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_nothing_weighty_is_found_in_a_right_kernel(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert parse(file, text.encode()).kernels
    assert weighty(text) == []


@pytest.mark.parametrize("file", DRAFTS, ids=lambda file: file.stem)
def test_offsets_whose_width_a_launch_chooses_are_not_said_to_be_of_32_bits(file: Path) -> None:
    assert findings(file.read_text(encoding="utf-8"), RULE["offset_may_overflow"]) == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_nothing_weighty_is_found_in_what_a_guide_shows_as_right(guide: Path) -> None:
    blocks = [block for block in blocks_of(guide) if block.kind not in ("shown", "wrong")]
    assert weighty(source_of(blocks)) == []


def test_a_finding_points_at_the_fault_and_says_what_to_write() -> None:
    (finding,) = findings(PREAMBLE + "@triton.jit\ndef kernel(x_ptr):\n    i = tl.arange(0, 100)\n")
    assert (finding.rule, finding.severity, finding.category) == (
        "block_not_power_of_two",
        "critical",
        "correctness",
    )
    assert (finding.line, finding.column, finding.evidence) == (7, 9, "source")
    assert finding.message == "The length of tl.arange must be a power of two; 100 is not."
    assert finding.suggestion == "Use 128 and mask what lies beyond the end."


def with_fix(source: str, finding: Finding) -> Iterator[str]:
    """The source with the fix in place of what begins at the finding, wherever that gives Python."""
    lines = source.splitlines(keepends=True)
    begin = sum(map(len, lines[: finding.line - 1])) + finding.column - 1
    nodes = (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.expr | ast.stmt | ast.keyword))
    for node in nodes:
        if (node.lineno, node.col_offset + 1) == (finding.line, finding.column):
            end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
            text = source[:begin] + finding.fix + source[end:]
            with suppress(SyntaxError):
                ast.parse(text)
                yield text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_fix_in_place_of_the_fault_is_python_in_which_the_fault_is_gone(rule: Rule) -> None:
    for source in (PREAMBLE + bad for check in rule.checks for bad in check.bad):
        found = findings(source, rule)
        for finding in (one for one in found if one.fix):
            left = [len(findings(text, rule)) for text in with_fix(source, finding)]
            assert min(left, default=len(found)) < len(found), (finding.excerpt, finding.fix)


@pytest.mark.parametrize(("word", "sign"), [("and", "&"), ("or", "|")])
def test_the_fix_of_a_condition_on_blocks_means_what_the_condition_meant(word: str, sign: str) -> None:
    body = f"    i = tl.arange(0, 128)\n    tl.store(x_ptr + i, 0.0, mask=i > 0 {word} i < n)\n"
    (finding,) = findings(
        PREAMBLE + "@triton.jit\ndef kernel(x_ptr, n):\n" + body, RULE["and_between_blocks"]
    )
    assert finding.fix == f"(i > 0) {sign} (i < n)"


def test_every_fault_of_one_kernel_is_found_once() -> None:
    source = """
SCALE = 0.5

@triton.jit
def kernel(x_ptr, n, BLOCK):
    i = tl.arange(0, BLOCK)
    for j in range(n):
        if j > 3:
            break
    tl.store(x_ptr + i, tl.relu(tl.load(x_ptr + i, padding=0.0)) * SCALE)

def run(x):
    kernel[(1,)](x, x.numel())
    torch.cuda.synchronize()
    return x
"""
    assert found_by(source) == dict.fromkeys(
        (
            "block_size_not_constexpr",
            "unsupported_syntax",
            "nonexistent_api",
            "unknown_keyword",
            "global_not_constexpr",
            "parameter_mismatch",
            "host_sync_in_run",
        ),
        1,
    )


HARMLESS = {
    "a spin lock that waits in a while loop": """
@triton.jit
def kernel(x_ptr, lock_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(x_ptr, tl.load(x_ptr) + 1)
    tl.atomic_xchg(lock_ptr, 0)
""",
    "a launch with arguments that only Python knows": """
@triton.jit
def kernel(x_ptr, y_ptr, n, x_stride, y_stride, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK) * x_stride, tl.load(y_ptr + y_stride), mask=n > 0)

def run(x, y, **options):
    launch = kernel[(1,)]
    launch(x)
    kernel[(1,)](x, y, *x.shape, *x.stride(), BLOCK=16)
    kernel[(1,)](x, y, **options)
""",
    "a constant of an enclosing function": """
def make(BLOCK):
    width = tl.constexpr(BLOCK)

    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr + tl.arange(0, width), 0.0)

    return kernel
""",
    "a table of addresses": """
@triton.jit
def kernel(addresses_ptr, n):
    x_ptr = tl.load(addresses_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(x_ptr, n)

def run(xs):
    addresses = torch.tensor([x.data_ptr() for x in xs], device="cuda")
    kernel[(len(xs),)](addresses, 0)
    return xs
""",
    "an autotuned kernel that writes elsewhere than it reads": """
@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"])
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + n + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
""",
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_nothing_is_found_in(source: str) -> None:
    assert found_by(source) == {}


def test_one_finding_names_everything_that_is_missing_beside_a_kernel() -> None:
    name = "_".join(("copy", "nobody", "knows"))  # not to be found in this test
    source = f"@triton.jit\ndef kernel(x_ptr): ...\n\ndef {name}(x):\n    kernel[(1,)](x)\n"
    (finding,) = (f for f in findings(PREAMBLE + source) if f.rule == "incomplete_kernel_file")
    assert (finding.line, finding.severity) == (8, "info")
    assert finding.message == (
        "kernel.py has no reference, no test in it or near it, no benchmark in it or near it, "
        f"no docstring for {name}."
    )


def test_a_loop_over_a_tuple_and_its_break_are_two_faults() -> None:
    source = "@triton.jit\ndef kernel(x_ptr):\n    for i in (1, 2):\n        break\n"
    assert found_by(source) == {"unsupported_syntax": 2}


def test_what_is_named_in_restore_value_is_not_reported_and_the_rest_is() -> None:
    source = """
@triton.autotune(
    [triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"], restore_value=["x_ptr"]
)
@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)
    tl.store(y_ptr + i, tl.load(y_ptr + i) + 1)
"""
    (finding,) = weighty(PREAMBLE + source)
    assert 'restore_value=["y_ptr"]' in finding.suggestion


def test_names_are_not_checked_in_a_file_for_another_maker_s_triton() -> None:
    source = f"{PREAMBLE}import torch_npu\nfrom triton.language.math import tanh\n"
    assert findings(source) == []
    at_home = parse(Path("backends/_ascend/ops.py"), f"{PREAMBLE}tl.relu\n".encode())
    assert [finding for rule in RULES for finding in rule.find(at_home)] == []
    assert findings(f"{PREAMBLE}tl.relu\n")


SHORTENED = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [4], "N": [2048]}


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def run(x):
    x = KEPT
    out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    row_sum_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=1024)
    return out
"""


@pytest.mark.parametrize(
    ("kept", "severity"), [("x[:, :512].contiguous()", "medium"), ("x.contiguous()", "critical")]
)
def test_what_inputs_says_holds_for_a_tensor_as_long_as_it_is_not_cut(kept: str, severity: str) -> None:
    source = PREAMBLE + SHORTENED.replace("KEPT", kept)
    (finding,) = findings(source, RULE["block_shorter_than_row"])
    assert finding.severity == severity
