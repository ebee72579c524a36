"""Every file in reference_kernels/ is a kernel file that computes what its reference computes."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

KERNELS = sorted(places.shipped("reference_kernels").glob("*.py"))
FEW_ELEMENTS = 2**13
MANY_ELEMENTS = 2**18
"""Small enough for the interpreter, large enough for several blocks along every dimension."""


@pytest.mark.anyio
@pytest.mark.parametrize(
    "limit_elements", [FEW_ELEMENTS, pytest.param(MANY_ELEMENTS, marks=pytest.mark.corpora)]
)
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
async def test_a_reference_kernel_passes_every_case(
    path: Path, limit_elements: int, worker: WorkerClient, interpreter: Runtime
) -> None:
    request = ValidationRequest(
        candidate=Target(path=path),
        seed=7,
        limit_elements=limit_elements,
        require_int64_offsets=True,
        require_mixed_dtypes=True,
    )
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.limits == ()
    # PyTorch itself refuses some mixtures of dtypes.
    assert {case.status for case in verdict.cases if case.group != "mixed"} == {"passed"}
    assert {case.status for case in verdict.cases} <= {"passed", "skipped"}
    assert unmentioned(dims_of(path), verdict) == []


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_reference_kernel_says_what_it_computes_and_has_every_part(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(tree)
    assert {"reference", "run"} <= functions.keys()
    assert ast.unparse(functions["reference"].args) == ast.unparse(functions["run"].args)
    assert all(ast.get_docstring(function) for function in functions.values())
    assert [name for name, node in functions.items() if node.decorator_list]


def test_there_are_reference_kernels_to_be_found() -> None:
    assert len(KERNELS) >= 8


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
