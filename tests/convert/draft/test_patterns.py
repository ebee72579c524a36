"""Every pattern drafts its own examples, and all stages of each are right."""

from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest

from pytorch_to_triton.convert.draft.kernel import RESERVED
from pytorch_to_triton.convert.draft.partition import partition
from pytorch_to_triton.convert.draft.registry import PATTERNS, MalformedPattern, checked
from pytorch_to_triton.graph.program import program
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.target import Target

pytestmark = pytest.mark.anyio

INPUTS = {
    "x": "float32[M, N]",
    "y": "float32[M, N, K]",
    "w": "float32[N]",
    "b": "float32[N]",
    "v": "float32[M]",
}
SIZES = {"M": [3], "N": [37], "K": [5]}
EXAMPLES = [(pattern, text) for pattern in PATTERNS for text in pattern.EXAMPLES]


def name_of(value: object) -> str:
    """A pattern's file, or an example's function."""
    if isinstance(value, ModuleType):
        return value.__name__.rpartition(".")[2]
    return str(value).removeprefix("def ").partition("(")[0]


def declared(example: str) -> str:
    """The example as `f` below the declaration of the arguments that it takes."""
    name, _, rest = example.removeprefix("def ").partition("(")
    names = rest.partition(")")[0].split(", ")
    assert set(names) <= set(INPUTS), f"{name}: an example's parameters are among {', '.join(INPUTS)}"
    inputs = {n: INPUTS[n] for n in names}
    dims = {d: sizes for d, sizes in SIZES.items() if any(d in text for text in inputs.values())}
    return f"INPUTS = {inputs!r}\nDIMS = {dims!r}\n\n\n" + example.replace(f"def {name}(", "def f(")


@pytest.mark.parametrize(("pattern", "example"), EXAMPLES, ids=name_of)
async def test_an_example_is_drafted_by_its_pattern(
    pattern: ModuleType,
    example: str,
    written: Callable[[str], Target],
    traced: Callable[[Target], Awaitable[Traced]],
) -> None:
    steps = program((await traced(written(declared(example)))).graph, RESERVED)
    assert [group.pattern for group in partition(steps, 3)] == [pattern]


# Three validations each: every third one, so that the suite stays quick.
@pytest.mark.parametrize("example", [text for _, text in EXAMPLES][::3], ids=name_of)
async def test_an_example_is_right_in_all_stages(
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
