"""Every file in reference_kernels/ is a kernel file that computes what its reference computes."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.inspect.inspect import InspectionRequest, inspect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.compiled import InspectedKernel
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate
from reference_benchmarks.kernel_index import PAGE, TOPICS, KernelPage, index, kernel_pages

PAGES = kernel_pages()
KERNELS = [page.file for page in PAGES]
DIFFERENTIABLE = [page.file for page in PAGES if page.differentiable]
ALL_KERNELS = bool(os.environ.get("ALL_KERNELS"))
FEW_ELEMENTS = 2**13
MANY_ELEMENTS = 2**18
"""Small enough for the interpreter, large enough for several blocks along every dimension."""
LARGE = KERNELS if ALL_KERNELS else KERNELS[::4]
"""Those that are run on many elements: all of them with ALL_KERNELS=1."""
USUAL = KERNELS[1::20]
"""Those that every change is tried on; the others with the corpora."""
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "gfx942") if ALL_KERNELS else ("sm_90",)


def stem(path: Path) -> str:
    return path.stem


async def verdict_of(
    path: Path, worker: WorkerClient, interpreter: Runtime, limit_elements: int, *, backward: bool
) -> Verdict:
    request = ValidationRequest(
        candidate=Target(path=path),
        seed=7,
        backward=backward,
        limit_elements=limit_elements,
        require_int64_offsets=True,
        require_mixed_dtypes=True,
    )
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.limits == ()
    # PyTorch itself refuses some mixtures of dtypes, and overflows or rounds badly at some special values.
    compared = [case for case in verdict.cases if case.group not in ("mixed", "special", "combined")]
    assert {case.status for case in compared} == {"passed"}
    assert {case.status for case in verdict.cases} <= {"passed", "skipped", "undecided"}
    return verdict


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "limit_elements"),
    [
        *(
            pytest.param(path, FEW_ELEMENTS, marks=() if path in USUAL else pytest.mark.corpora)
            for path in KERNELS
        ),
        *(pytest.param(path, MANY_ELEMENTS, marks=pytest.mark.corpora) for path in LARGE),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
async def test_a_reference_kernel_passes_every_case(
    path: Path, limit_elements: int, worker: WorkerClient, interpreter: Runtime
) -> None:
    verdict = await verdict_of(path, worker, interpreter, limit_elements, backward=False)
    assert unmentioned(dims_of(path), verdict) == []


@pytest.mark.anyio
@pytest.mark.corpora
@pytest.mark.parametrize("path", DIFFERENTIABLE, ids=stem)
async def test_a_reference_kernel_with_a_gradient_has_the_right_one(
    path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    await verdict_of(path, worker, interpreter, FEW_ELEMENTS, backward=True)


FURTHER = (
    ("column_sum", "column_sum_atomic", "reference"),
    ("logsumexp", "run_log_softmax", "reference_log_softmax"),
)
"""Files with a second way, or a second function: its name, and that of its reference."""


@pytest.mark.anyio
@pytest.mark.corpora
@pytest.mark.parametrize(("name", "run", "reference"), FURTHER)
async def test_what_else_a_file_has_is_right_too(
    name: str, run: str, reference: str, worker: WorkerClient, interpreter: Runtime
) -> None:
    file = places.shipped("reference_kernels") / f"{name}.py"
    request = ValidationRequest(
        candidate=Target(path=file, name=run),
        reference=Target(path=file, name=reference),
        seed=7,
        backward=name == "logsumexp",
        limit_elements=FEW_ELEMENTS,
    )
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary


@pytest.mark.anyio
@pytest.mark.corpora
@pytest.mark.parametrize("path", KERNELS, ids=stem)
async def test_a_reference_kernel_compiles_for_every_gpu_without_spills(
    path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    for arch in ARCHITECTURES:
        request = InspectionRequest(candidate=Target(path=path), arch=arch)
        inspection = await inspect(worker, request, interpreter)
        assert inspection.kernels, arch
        # Of an autotuner's configurations, those that spill are not the ones that win.
        clean = {kernel.compiled.name for kernel in inspection.kernels if fits(kernel)}
        assert clean == {kernel.compiled.name for kernel in inspection.kernels}, arch


def fits(kernel: InspectedKernel) -> bool:
    """Whether it compiled, and all that it computes with stays in registers."""
    resources = kernel.compiled.resources
    return resources is not None and resources.spill_store_bytes == 0


@pytest.mark.parametrize(
    "paths",
    [KERNELS[2::9], pytest.param(KERNELS, marks=pytest.mark.corpora)],
    ids=["a few", "all"],
)
def test_the_operators_of_reference_kernels_pass_pytorchs_own_check(paths: Sequence[Path]) -> None:
    """In one process, which imports what compiles them once."""
    check = Path(__file__).with_name("check_operator.py")
    process = subprocess.run(
        [sys.executable, check, *paths],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(places.shipped("references").parent)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize("path", KERNELS, ids=stem)
def test_a_reference_kernel_says_what_it_computes_and_has_every_part(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(tree)
    assert {"reference", "run"} <= functions.keys()
    assert ast.unparse(functions["reference"].args) == ast.unparse(functions["run"].args)
    assert all(ast.get_docstring(function) for function in functions.values())
    assert [name for name, node in functions.items() if node.decorator_list]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reference_kernel_names_its_technique_and_its_topics(page: KernelPage) -> None:
    assert page.technique.endswith(".")
    assert page.topics
    assert set(page.topics) <= set(TOPICS)


def test_each_topic_is_shown_by_a_reference_kernel() -> None:
    assert set(TOPICS) == {topic for page in PAGES for topic in page.topics}


def test_the_index_of_kernels_is_up_to_date() -> None:
    written = (places.shipped("references") / PAGE).read_text(encoding="utf-8")
    assert written == index(PAGES), "python -m reference_benchmarks.kernel_index writes it"


def dims_of(path: Path) -> Mapping[str, Sequence[int]]:
    """The declared sizes, read without importing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DIMS":
            dims: Mapping[str, Sequence[int]] = ast.literal_eval(node.value)
            return dims
    return {}


def unmentioned(dims: Mapping[str, Sequence[int]], verdict: Verdict) -> list[str]:
    """Declared sizes that were neither run nor listed as left out."""
    reported = " ".join(
        [*(case.name for case in verdict.cases), *(skip.what for skip in verdict.skipped)]
    ).split()
    return [
        f"{name}={size}" for name, sizes in dims.items() for size in sizes if f"{name}={size}" not in reported
    ]
