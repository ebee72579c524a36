"""Each pattern drafts its own examples, and a file that is no pattern is refused with what it lacks."""

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from pytorch_to_triton.draft.emit.kernel import printed
from pytorch_to_triton.draft.file.part import programmed
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.draft.partition import Group, partition
from pytorch_to_triton.draft.program import buffers_of
from pytorch_to_triton.draft.registry import NEEDED, PATTERNS, MalformedPattern, checked
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..convert.drafting import sourced

EXAMPLES = [(p, example) for p in PATTERNS for example in p.EXAMPLES]
NAMES = [f"{p.__name__.rpartition('.')[2]} {i}" for i, (p, _) in enumerate(EXAMPLES)]


def target_of(example: str) -> tuple[str, str]:
    """The function's name and the source of a file that declares what its annotations say."""
    (function,) = ast.parse(example).body
    assert isinstance(function, ast.FunctionDef)
    inputs = {a.arg: ast.literal_eval(a.annotation) for a in function.args.args if a.annotation}
    dims = sorted(set(re.findall(r"\b[A-Z]\b", " ".join(inputs.values()))))
    sizes = {name: [8 + 3 * i] for i, name in enumerate(dims)}
    return function.name, f"import torch\n\nINPUTS = {inputs!r}\nDIMS = {sizes!r}\n\n\n{example}\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "example"),
    EXAMPLES,
    ids=NAMES,
)
async def test_a_pattern_drafts_its_examples(
    pattern: ModuleType, example: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "example.py"
    name, source = target_of(example)
    path.write_text(source, encoding="utf-8")
    traced, _ = await sourced(worker, interpreter, Target(path=path, name=name))
    program = programmed(traced.graph, PURE)
    groups = partition(program, [b for r in program.results for b in buffers_of(r.tensor)], plain=False)
    matched = [g for g in groups if isinstance(g, Group) and g.pattern is pattern]
    assert matched
    for group in matched:
        first, *_ = pattern.alternatives(group.cluster)
        assert not first.condition, "the first alternative may always be taken"
        for alternative in pattern.alternatives(group.cluster):
            for cluster, schedule in alternative.kernels:
                ast.parse("\n".join(printed(cluster, schedule, alternative.name).lines))


@pytest.mark.parametrize("lacking", NEEDED)
def test_a_malformed_pattern_is_refused_with_what_it_lacks(lacking: str) -> None:
    pattern = ModuleType("mine")
    for name in NEEDED:
        setattr(pattern, name, None if name == lacking else "something")
    with pytest.raises(MalformedPattern, match="mine is no drafting pattern: it lacks ") as refusal:
        checked(pattern)
    assert str(refusal.value).endswith(f"{NEEDED[lacking]}.")


def test_what_takes_almost_anything_comes_last() -> None:
    names = [p.__name__.rpartition(".")[2] for p in PATTERNS]
    assert names[-3:] == ["rows", "columns", "window"]
