"""Every pattern drafts its own examples, and all stages of each are right."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

import pytest

from pytorch_to_triton.convert.draft.kernel import RESERVED
from pytorch_to_triton.convert.draft.module import Source
from pytorch_to_triton.convert.draft.partition import partition
from pytorch_to_triton.convert.draft.registry import PATTERNS, MalformedPattern, checked
from pytorch_to_triton.graph.program import program
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from ...conftest import HEAD
from ..drafting import sourced, written_drafts

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "jobs" / "beside_eager.py"
INPUTS = {
    "x": "float32[M, N]",
    "y": "float32[M, N, K]",
    "w": "float32[N]",
    "b": "float32[N]",
    "v": "float32[M]",
}
SIZES = {"M": [3], "N": [37], "K": [5]}
TRIED = {"M": [3], "N": [1, 37], "K": [5]}
EXAMPLES = [(pattern, text) for pattern in PATTERNS for text in pattern.EXAMPLES]


def name_of(value: object) -> str:
    """A pattern's file, or an example's function."""
    if isinstance(value, ModuleType):
        return value.__name__.rpartition(".")[2]
    return str(value).removeprefix("def ").partition("(")[0]


def parameters(example: str) -> list[str]:
    return example.partition("(")[2].partition(")")[0].split(", ")


def declared(example: str) -> str:
    """The example as `f` below the declaration of the arguments that it takes."""
    name, names = name_of(example), parameters(example)
    assert set(names) <= set(INPUTS), f"{name}: an example's parameters are among {', '.join(INPUTS)}"
    inputs = {n: INPUTS[n] for n in names}
    dims = {d: sizes for d, sizes in SIZES.items() if any(d in text for text in inputs.values())}
    return f"INPUTS = {inputs!r}\nDIMS = {dims!r}\n\n\n" + example.replace(f"def {name}(", "def f(")


@pytest.fixture(scope="module")
async def origins(
    worker: WorkerClient, interpreter: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Target, tuple[Traced, Source]]]:
    """Each example as a target, traced once."""
    folder = tmp_path_factory.mktemp("examples")
    origins = []
    for number, (_, example) in enumerate(EXAMPLES):
        target = Target(path=folder / f"example_{number}.py", name="f")
        target.path.write_text(HEAD + declared(example), encoding="utf-8")
        origins.append((target, await sourced(worker, interpreter, target)))
    return origins


async def test_every_example_is_drafted_by_its_pattern(
    origins: list[tuple[Target, tuple[Traced, Source]]],
) -> None:
    for (pattern, example), (_, (traced, _)) in zip(EXAMPLES, origins, strict=True):
        steps = program(traced.graph, RESERVED)
        assert [group.pattern for group in partition(steps, 3)] == [pattern], example


async def test_all_stages_of_every_example_equal_eager_pytorch(
    worker: WorkerClient,
    interpreter: Runtime,
    origins: list[tuple[Target, tuple[Traced, Source]]],
    tmp_path: Path,
) -> None:
    functions = []
    for (_, example), (target, origin) in zip(EXAMPLES, origins, strict=True):
        inputs = {name: INPUTS[name] for name in parameters(example)}
        functions.append(
            {
                "name": example,
                "source": str(target.path),
                "drafts": written_drafts(origin, target, tmp_path),
                "dims": {dim: sizes for dim, sizes in TRIED.items() if dim in str(inputs)},
                "inputs": {name: text[8:-1].split(", ") for name, text in inputs.items()},
                "tolerance": 1e-5,
            }
        )
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": functions})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer is not None, outcome.detail
    assert {name: why for name, why in outcome.answer.items() if why} == {}


@pytest.mark.corpora
@pytest.mark.parametrize("example", [text for _, text in EXAMPLES], ids=name_of)
async def test_an_example_is_validated_in_all_stages(
    example: str,
    written: Callable[[str], Target],
    converted: Callable[[Target], Awaitable[Conversion]],
) -> None:
    conversion = await converted(written(declared(example)))
    assert [stage.verdict.verdict for stage in conversion.stages] == ["passed"] * 3, conversion.summary


@pytest.mark.parametrize("pattern", PATTERNS, ids=name_of)
def test_a_pattern_says_what_it_is_and_has_examples(pattern: ModuleType) -> None:
    assert pattern.__doc__
    assert pattern.EXAMPLES


def test_a_file_that_is_no_pattern_is_refused_with_all_that_it_lacks() -> None:
    half = ModuleType("half")
    half.match = lambda nest: None  # type: ignore[attr-defined]
    with pytest.raises(MalformedPattern, match=r"docstring.*write\(plan, stage\).*EXAMPLES"):
        checked(half)
