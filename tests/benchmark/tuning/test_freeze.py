"""A frozen kernel file computes the same, tunes nothing, and takes the nearest measured configuration."""

import ast
import difflib
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels, freeze
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

ROOT = Path(__file__).parents[3]
WHERE = "NVIDIA H200, Triton 3.6.0, 2026-11-21"

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
CONFIGS = "[triton.Config({'BLOCK': size}) for size in (16, 32)]"
BODY = """
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
TUNED = f"@triton.autotune({CONFIGS}, key=['n'])"
RUN = """

def run(x):
    out, seen = torch.empty_like(x), []
    def grid(meta):
        seen[:] = [meta["BLOCK"]]
        return (triton.cdiv(x.numel(), meta["BLOCK"]),)
    copy_kernel[grid](x, out, x.numel())
    return out, *seen
"""
KERNEL = f"{HEAD}\n{TUNED}{BODY}{RUN}"

COPIES = """
from ..loading.target import load
import torch

def work(report, target, sizes):
    run = load(target, "candidate").call
    found = []
    for size, dtype in sizes:
        x = torch.arange(size).to(getattr(torch, dtype))
        out, *rest = run(x)
        found.append([bool(torch.equal(out, x)), *rest])
    return {"found": found}
"""


def config(n: int, block: int, dtype: str = "float32", **options: Any) -> TunedConfig:
    key = {"n": n, "x_ptr dtype": dtype, "out_ptr dtype": dtype}
    return TunedConfig(kernel="copy_kernel", key=key, config={"BLOCK": block, "num_warps": 4, **options})


MEASURED = [config(100, 16), config(10_000, 64), config(100, 32, "int64")]


def refusal(source: str, configs: list[TunedConfig] | None = None) -> str:
    with pytest.raises(BadInput) as raised:
        freeze(source, configs or MEASURED, WHERE, "k.py")
    return raised.value.message


async def blocks(
    worker: WorkerClient, runtime: Runtime, folder: Path, source: str, sizes: list[tuple[int, str]]
) -> list[list[Any]]:
    """For each size and dtype: whether the copy is one, and what the kernel file chooses for the launch."""
    job, kernel = folder / "copies.py", folder / "k.py"
    job.write_text(COPIES, encoding="utf-8")
    kernel.write_text(source, encoding="utf-8")
    target = Target(path=kernel).model_dump(mode="json")
    arguments = {"target": target, "sizes": [list(size) for size in sizes]}
    outcome = await worker.ask(Job(kind=str(job), arguments=arguments), runtime, seconds=120)
    assert outcome.answer is not None, outcome.failure
    found: list[list[Any]] = outcome.answer["found"]
    return found


@pytest.mark.anyio
async def test_a_launch_takes_its_own_key_or_the_nearest(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    source = freeze(KERNEL, MEASURED, WHERE)
    exact = [(100, "float32"), (10_000, "float32"), (100, "int64")]
    # The middle of 100 and 10,000 by ratio is 1,000; a dtype that was measured counts before any size.
    near = [(1, "float32"), (900, "float32"), (1100, "float32"), (9000, "int64"), (90, "float16")]
    found = await blocks(worker, interpreter, tmp_path, source, [*exact, *near])
    assert [same for same, _ in found] == [True] * 8
    assert [block for _, block in found] == [16, 64, 32, 16, 16, 64, 32, 16]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "decorators",
    [
        "@triton.heuristics({'TWICE': lambda args: 2 * args['n']})\n@AUTOTUNE",
        "@AUTOTUNE\n@triton.heuristics({'TWICE': lambda args: 2 * args['n']})",
    ],
    ids=["heuristics above", "heuristics below"],
)
async def test_other_heuristics_stay_where_they_are(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path, decorators: str
) -> None:
    source = KERNEL.replace(TUNED, decorators.replace("@AUTOTUNE", TUNED))
    source = source.replace("n, BLOCK:", "n, TWICE: tl.constexpr, BLOCK:").replace("i < n", "2 * i < TWICE")
    written = freeze(source, MEASURED, WHERE)
    found = await blocks(worker, interpreter, tmp_path, written, [(100, "float32"), (7000, "float32")])
    assert found == [[True, 16], [True, 64]]


@pytest.mark.anyio
async def test_a_pruning_function_rules_out_what_was_measured_elsewhere(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    pruning = """
def covering(configs, named, **others):
    return [c for c in configs if c.kwargs["BLOCK"] >= named["n"]]

"""
    head = TUNED.replace("key=", "prune_configs_by={'early_config_prune': covering}, key=")
    source = KERNEL.replace(TUNED, pruning + head)
    written = freeze(source, [config(16, 16), config(64, 64), config(1024, 1024)], WHERE)
    assert "pruned_by(covering, COPY_KERNEL_MEASURED)" in written
    found = await blocks(
        worker, interpreter, tmp_path, written, [(16, "float32"), (17, "float32"), (66, "float32")]
    )
    assert found == [[True, 16], [True, 64], [True, 1024]]
    assert freeze(written, [config(16, 16), config(64, 64), config(1024, 1024)], WHERE) == written


@pytest.mark.anyio
async def test_a_frozen_kernel_file_validates(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    source = (ROOT / "tests" / "kernels" / "honest" / "autotuned_swiglu.py").read_text(encoding="utf-8")
    dtypes = {f"{name}_ptr dtype": "float32" for name in ("gate", "up", "out")}
    measured = [
        TunedConfig(
            kernel="swiglu_kernel",
            key={"n_rows": m, "n_cols": 300, **dtypes},
            config={"BLOCK_M": block, "BLOCK_N": 128, "num_warps": 8, "num_stages": 2, "num_ctas": 2},
        )
        for m, block in ((5, 1), (40, 8))
    ]
    kernel = tmp_path / "frozen.py"
    kernel.write_text(freeze(source, measured, WHERE), encoding="utf-8")
    cases = ("M=5 N=64", "M=40 N=300", "M=7 N=65")
    verdict = await validate(
        worker, ValidationRequest(candidate=Target(path=kernel), cases=cases), interpreter
    )
    assert verdict.verdict == "passed", verdict.summary
    assert len(verdict.cases) == 3


def test_only_the_decorator_goes_and_only_the_table_and_its_chooser_come() -> None:
    changes = [*difflib.ndiff(KERNEL.split("\n"), freeze(KERNEL, MEASURED, WHERE).split("\n"))]
    assert [line for line in changes if line.startswith("- ")] == [f"- {TUNED}"]
    come = "\n".join(line[2:] for line in changes if line.startswith("+ "))
    assert [type(node).__name__ for node in ast.parse(f"{come}\ndef f(): ...").body] == [
        "FunctionDef",
        "Assign",
        "FunctionDef",
    ]


def test_the_table_says_where_it_was_measured_and_what_its_keys_are() -> None:
    written = freeze(KERNEL, [config(100, 16, maxnreg=128)], WHERE)
    table = textwrap.dedent(
        """\
        # Measured on NVIDIA H200, Triton 3.6.0, 2026-11-21. A key that is not here takes the
        # nearest one's.
        COPY_KERNEL_MEASURED = {
            # n, dtypes of x_ptr, out_ptr
            (100, torch.float32, torch.float32): {
                "BLOCK": 16,
                "num_warps": 4,
                "num_stages": 3,
                "maxnreg": 128,
            },
        }


        @triton.heuristics(as_measured(COPY_KERNEL_MEASURED, ["n"], ["x_ptr", "out_ptr"]))
        @triton.jit
        """
    )
    assert table in written


def test_freezing_twice_changes_nothing_and_freezing_again_replaces_the_table() -> None:
    once = freeze(KERNEL, MEASURED, WHERE)
    assert freeze(once, MEASURED, WHERE) == once
    again = freeze(freeze(KERNEL, MEASURED, WHERE), [config(7, 128)], "another GPU")
    assert again == freeze(KERNEL, [config(7, 128)], "another GPU")


def test_line_ends_and_a_comment_above_the_kernel_stay() -> None:
    written = freeze(KERNEL.replace("\n", "\r\n"), MEASURED, WHERE)
    assert written == freeze(KERNEL, MEASURED, WHERE).replace("\n", "\r\n")
    written = freeze(KERNEL.replace(TUNED, f"# Copies.\n{TUNED}"), MEASURED, WHERE)
    assert "}\n\n\n# Copies.\n@triton.heuristics(" in written


ALIASES = [
    ("from triton import autotune as tune", "@tune", "@triton.heuristics"),
    ("from triton import autotune, heuristics", "@autotune", "@heuristics"),
    ("import triton as tr", "@tr.autotune", "@tr.heuristics"),
    ("from triton.runtime.autotuner import autotune", "@autotune", "@triton.heuristics"),
]


def test_aliases_are_followed() -> None:
    body = BODY.replace("@triton.jit", "@jit").replace(": tl.constexpr", "")
    for imports, decorator, heuristics in ALIASES:
        head = f"{decorator}([Config({{'BLOCK': 1}})], key=['n'])"
        source = f"from triton import Config, jit\n{imports}\n\n{head}{body}"
        written = freeze(source, MEASURED, WHERE)
        assert autotuned_kernels(source) == ("copy_kernel",)
        assert f"{heuristics}(as_measured(" in written
        assert ("import triton\n" in written) == (heuristics == "@triton.heuristics")
        assert written.startswith("import torch\n")
        assert "autotune(" not in written


def test_however_the_configurations_are_made_or_the_tuner_is_named_the_table_takes_their_place() -> None:
    made = f"CONFIGS = {CONFIGS}\n\ndef make_configs():\n    return CONFIGS\n\n"
    for configs in ("CONFIGS", "make_configs()", "[c for c in CONFIGS if c.num_warps < 8]"):
        source = KERNEL.replace(TUNED, f"{made}@triton.autotune(\n    {configs},\n    key=['n'],\n)")
        assert freeze(source, MEASURED, WHERE).count("@triton.") == 2
    source = KERNEL.replace(TUNED, f"tuned = triton.autotune({CONFIGS}, key=['n'])\n\n@tuned")
    assert "@tuned" not in freeze(source, MEASURED, WHERE)


def test_of_several_kernels_those_without_configurations_stay_autotuned() -> None:
    other = f"\n\n{TUNED}{BODY}".replace("copy_kernel", "other_kernel")
    written = freeze(KERNEL + other, MEASURED, WHERE)
    assert autotuned_kernels(KERNEL + other) == ("copy_kernel", "other_kernel")
    assert autotuned_kernels(written) == ("other_kernel",)
    both = freeze(written, [one.model_copy(update={"kernel": "other_kernel"}) for one in MEASURED], WHERE)
    assert autotuned_kernels(both) == ()
    assert both.count("def as_measured(") == 1


def test_a_kernel_in_a_branch_gets_its_table_there() -> None:
    source = KERNEL.replace(TUNED + BODY, "if True:" + textwrap.indent(f"\n{TUNED}{BODY}", "    "))
    written = freeze(source, MEASURED, WHERE)
    branch = next(node for node in ast.parse(written).body if isinstance(node, ast.If))
    assert [type(node).__name__ for node in branch.body] == ["Assign", "FunctionDef"]
    assert freeze(written, MEASURED, WHERE) == written


def test_a_configuration_without_a_key_holds_for_every_launch_and_none_change_nothing() -> None:
    written = freeze(KERNEL, [TunedConfig(kernel="copy_kernel", key={}, config={"BLOCK": 8})], WHERE)
    assert '    (): {"BLOCK": 8, "num_warps": 4, "num_stages": 3},' in written
    assert freeze(KERNEL, [], WHERE) == KERNEL


def test_kernels_of_other_files_are_left_out() -> None:
    elsewhere = TunedConfig(kernel="imported_kernel", key={"n": 1}, config={"BLOCK": 8})
    assert freeze(KERNEL, [*MEASURED, elsewhere], WHERE) == freeze(KERNEL, MEASURED, WHERE)
    assert "imported_kernel is defined elsewhere" in refusal(KERNEL, [elsewhere])


LINE = KERNEL.split("\n").index(TUNED) + 1


REFUSED = [
    (
        "'BLOCK': size}",
        "'BLOCK': size}, pre_hook=print",
        f"k.py:{LINE}: a configuration of copy_kernel has",
    ),
    (
        TUNED,
        f"C = {CONFIGS} + [triton.Config({{}}, pre_hook=f)]\n@triton.autotune(C, ['n'])",
        "pre_hook",
    ),
    ("return out, *seen", "return copy_kernel.best_config", "copy_kernel.best_config is the tuner's"),
    ("key=['n']", "key=['n'], **options", "whether options gives copy_kernel an early_config_prune"),
    ("key=['n']", "key=['n'], prune_configs_by=make()", "whether make() gives copy_kernel"),
    (TUNED, "@tuned_elsewhere(7)", f"k.py:{LINE + 2}: the decorators of copy_kernel do not show"),
    (TUNED, "COPY_KERNEL_MEASURED = 1\n" + TUNED, "is already defined"),
    (TUNED, "def as_measured():\n    pass\n\n" + TUNED, "as_measured, which chooses"),
    ("out_ptr, n", "out_ptr, m", "has no parameter called n"),
    ("def run(x):", f"{TUNED}{BODY}\ndef run(x):", "autotuned in 2 places"),
    ("def run(x):", "def run(x:", "k.py:13: "),
]


def test_what_cannot_be_frozen_is_refused_with_its_line() -> None:
    for old, new, message in REFUSED:
        assert message in refusal(KERNEL.replace(old, new))


def test_a_kernel_that_is_autotuned_by_a_call_or_made_by_a_function_is_refused() -> None:
    source = KERNEL.replace(TUNED, "").replace(
        "\n\ndef run", f"\ncopy_kernel = triton.autotune({CONFIGS}, ['n'])(copy_kernel)\n\ndef run"
    )
    assert "autotuned by a call, not by a decorator" in refusal(source)
    source = KERNEL.replace(TUNED + BODY, "def make():" + textwrap.indent(f"\n{TUNED}{BODY}", "    "))
    assert "copy_kernel is made again by each call of make" in refusal(source)


def test_configurations_that_a_table_cannot_hold_are_refused() -> None:
    fewer = TunedConfig(kernel="copy_kernel", key={"n": 5}, config={"num_warps": 8})
    assert "do not all give the same meta-parameters" in refusal(KERNEL, [*MEASURED, fewer])
    opaque = config(5, 16).model_copy(update={"config": {"BLOCK": {"repr": "triton.language.float32"}}})
    assert "BLOCK of copy_kernel cannot be written to a table" in refusal(KERNEL, [opaque])


def test_the_chooser_distinguishes_dtypes_flags_and_missing_arguments() -> None:
    written = freeze(KERNEL, MEASURED, WHERE)
    chooser = next(n for n in ast.parse(written).body if getattr(n, "name", "") == "as_measured")
    names: dict[str, Any] = {}
    exec(ast.unparse(chooser), names)
    rows = {
        (8, True, torch.float32): {"BLOCK": 1},
        (8, False, torch.float32): {"BLOCK": 2},
        (8, True, None): {"BLOCK": 3},
    }
    block = names["as_measured"](rows, ["n", "flag"], ["bias_ptr"])["BLOCK"]
    bias = torch.zeros(1)
    assert block({"n": 99, "flag": True, "bias_ptr": bias}) == 1
    assert block({"n": 99, "flag": False, "bias_ptr": bias}) == 2
    assert block({"n": 99, "flag": True, "bias_ptr": None}) == 3
    assert json.dumps([*rows.values()]) == '[{"BLOCK": 1}, {"BLOCK": 2}, {"BLOCK": 3}]'
