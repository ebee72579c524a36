"""The functions of `real_functions/`, as models have them: traced, drafted and run beside eager PyTorch."""

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.draft.library import ways_of
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .drafting import STAGES, sourced, written
from .eager_calls import calls, declared, differences, draft_of, outcome_of, sizes

pytestmark = pytest.mark.anyio

FILES = sorted((Path(__file__).parent / "real_functions").glob("*.py"))
FIRST = ("depthwise", "quantise")
DRAFTED = [
    pytest.param(file, (3,), id=file.stem)
    if file.stem in FIRST
    else pytest.param(file, STAGES, id=file.stem, marks=pytest.mark.corpora)
    for file in FILES
]
"""Each is traced in every combination of its dtypes, which takes seconds: two for every change."""
IN_EVERY_WAY = [
    pytest.param(file, id=file.stem, marks=() if file.stem == "causal_attention" else pytest.mark.corpora)
    for file in FILES
    if file.stem in ("causal_attention", "embedding_sum", "masked_pooling", "squeeze_excite")
]
"""One whose products read parts of a projection for every change."""
LARGEST_LOOP = 32768
CALLS_LEFT: Mapping[str, tuple[str, ...]] = {
    "conv_bn_relu": ("aten.convolution.default",),
    "edge_softmax": ("aten.index_put.default", "aten.scatter_add.default", "aten.scatter_reduce.two"),
}
"""The operators that a function's drafts leave to PyTorch, by its file; nothing in those not named."""


def target_in(file: Path) -> Target:
    """The file's last function or class."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return Target(path=file, name=named[-1])


@pytest.mark.corpora
async def test_eager_pytorch_takes_every_declared_dtype(worker: WorkerClient, interpreter: Runtime) -> None:
    drafts = []
    for file in FILES:
        target = target_in(file)
        declaration = await declared(worker, interpreter, target)
        drafts.append(draft_of(file.stem, target, (), calls(declaration, sizes(declaration))))
    found = await differences(worker, interpreter, drafts)
    assert found == {file.stem: [] for file in FILES}


@pytest.mark.parametrize(("file", "stages"), DRAFTED)
async def test_drafts_compute_what_eager_pytorch_does(
    file: Path, stages: Sequence[Stage], worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    targets = {file.stem: target_in(file)}
    differ, left = await outcome_of(worker, interpreter, targets, tmp_path, stages)
    assert differ == {file.stem: []}
    assert left == {file.stem: set(CALLS_LEFT.get(file.stem, ()))}


@pytest.mark.parametrize("file", IN_EVERY_WAY)
async def test_every_way_computes_what_eager_pytorch_does(
    file: Path, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    """Or is refused: on a GPU all of them are drafted and timed."""
    target = target_in(file)
    resolved = await resolve(worker, ConversionRequest(target=target), interpreter)
    origin, declaration = resolved.convertible(), resolved.declaration
    traced, source = origin.traced, origin.source
    files = []
    for number, ways in enumerate(ways_of(traced.graph)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with suppress(NotConvertible):
            files.append(written(draft(traced.graph, source, 2, ways=ways), target, folder, 2))
    given = draft_of(file.stem, target, files, calls(declaration, sizes(declaration)))
    assert await differences(worker, interpreter, [given]) == {file.stem: []}


@pytest.mark.parametrize("name", ["dice_loss", pytest.param("top_k_gates", marks=pytest.mark.corpora)])
async def test_no_program_walks_all_of_a_large_tensor(
    name: str, worker: WorkerClient, interpreter: Runtime
) -> None:
    """At the timed sizes: what is reduced to few numbers is reduced in chunks."""
    (file,) = (f for f in FILES if f.stem == name)
    origin = await sourced(worker, interpreter, target_in(file))
    traced, source = origin.traced, origin.source
    drafted, (timed,) = draft(traced.graph, source, 3), source.timed
    for kernel in drafted.kernels:
        if all(holds(v.condition, timed) for v in kernel.variants):
            for length in re.findall(r"in range\((?:0, )?(\w+)", "\n".join(kernel.lines)):
                text = kernel.printed.size_sources.get(length, length)
                assert holds(f"({text}) <= {LARGEST_LOOP}", timed), f"{kernel.name}: {length}"
