"""Every drafting pattern drafts its own examples, found by its being there, and drafts them right."""

import ast
from pathlib import Path
from types import ModuleType

import pytest

from pytorch_to_triton.convert.convert import ConversionRequest, convert
from pytorch_to_triton.convert.draft.kernel import RESERVED
from pytorch_to_triton.convert.draft.partition import PATTERNS, partition
from pytorch_to_triton.convert.tracing import trace
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.graph.program import program
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.target import declaration_of, describe

SHAPES = {"x": "M, N", "y": "M, N, K", "v": "M", "w": "N", "b": "N"}
"""What the names of an example's parameters stand for."""
DIMS = {"M": [1, 5], "N": [1, 33], "K": [1, 6]}
EXAMPLES = [(pattern, example) for pattern in PATTERNS for example in pattern.EXAMPLES]


def function_of(example: str) -> ast.FunctionDef:
    (function,) = ast.parse(example).body
    assert isinstance(function, ast.FunctionDef)
    return function


def written(example: str, folder: Path) -> Target:
    """The example in a file that declares its inputs."""
    function = function_of(example)
    inputs = {parameter.arg: f"float32[{SHAPES[parameter.arg]}]" for parameter in function.args.args}
    dims = {name: sizes for name, sizes in DIMS.items() if any(name in shape for shape in inputs.values())}
    path = folder / "example.py"
    path.write_text(f"import torch\n\nINPUTS = {inputs}\nDIMS = {dims}\n\n\n{example}\n", encoding="utf-8")
    return Target(path=path, name=function.name)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "example"), EXAMPLES, ids=[function_of(text).name for _, text in EXAMPLES]
)
async def test_a_pattern_drafts_its_example_right_in_every_stage(
    pattern: ModuleType, example: str, tmp_path: Path, door: Door, interpreter: Mode
) -> None:
    target = written(example, tmp_path)
    description = await describe(door, target, "reference", interpreter)
    traced = await trace(door, target, declaration_of(description, description), interpreter)
    assert pattern in {group.pattern for group in partition(program(traced.graph, RESERVED), 3)}

    conversion = await convert(door, ConversionRequest(target=target, into=tmp_path / "out"), interpreter)
    assert conversion.verdict == "converted", conversion.summary


def test_every_pattern_has_examples() -> None:
    assert {pattern for pattern, _ in EXAMPLES} == set(PATTERNS)
