"""Each pattern drafts its own examples, and a file that is no pattern is refused with what it lacks.

The kernels of all alternatives are kept in golden/: whoever changes a pattern sees what becomes of them.
`REWRITE_GOLDEN=1 pytest tests/draft/test_patterns.py` writes them again; read the diff.
"""

import ast
import os
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pytorch_to_triton.draft.emit.kernel import printed, signature
from pytorch_to_triton.draft.file.part import programmed
from pytorch_to_triton.draft.groups import NEEDED, PATTERNS, Group, MalformedPattern, checked
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.draft.partition.partition import partition
from pytorch_to_triton.draft.program import buffers_of
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..convert.drafting import sourced

GOLDEN = Path(__file__).parent / "golden"
HEAD = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
EXAMPLES = [(p, example) for p in PATTERNS for example in p.EXAMPLES]
NAMES = [f"{p.__name__.rpartition('.')[2]}_{p.EXAMPLES.index(e)}" for p, e in EXAMPLES]


def target_of(example: str) -> tuple[str, str]:
    """The function's name and the source of a file that declares what its annotations say."""
    (function,) = ast.parse(example).body
    assert isinstance(function, ast.FunctionDef)
    inputs = {a.arg: ast.literal_eval(a.annotation) for a in function.args.args if a.annotation}
    dims = sorted(set(re.findall(r"\b[A-Z]\b", " ".join(inputs.values()))))
    sizes = {name: [8 + 3 * i] for i, name in enumerate(dims)}
    return function.name, f"import torch\n\nINPUTS = {inputs!r}\nDIMS = {sizes!r}\n\n\n{example}\n"


@pytest.mark.anyio
@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=NAMES)
async def test_a_pattern_drafts_its_examples_as_it_did(
    number: int, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    pattern, example = EXAMPLES[number]
    path = tmp_path / "example.py"
    name, source = target_of(example)
    path.write_text(source, encoding="utf-8")
    traced = (await sourced(worker, interpreter, Target(path=path, name=name))).traced
    program = programmed(traced.graph, PURE)
    groups = partition(program, [b for r in program.results for b in buffers_of(r.tensor)], plain=False)
    matched = [g for g in groups if isinstance(g, Group) and g.pattern is pattern]
    assert matched
    for group in matched:
        first, *_ = pattern.alternatives(group.cluster)
        assert not first.condition, "the first alternative may always be taken"
    text, golden = kernels_of(matched), GOLDEN / f"{NAMES[number]}.py"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert golden.exists(), f"no {golden.name}: REWRITE_GOLDEN=1 writes it, to be read as code"
    assert text == golden.read_text(encoding="utf-8")


def kernels_of(groups: list[Group]) -> str:
    """A module with the kernels of every alternative, and when each is taken; each text once."""
    found = {"": HEAD}
    for group in groups:
        for alternative in group.pattern.alternatives(group.cluster):
            doc = f"Taken where {alternative.condition}." if alternative.condition else "Taken at any size."
            for number, (cluster, schedule) in enumerate(alternative.kernels):
                name = f"{group.cluster.name}_{alternative.name}_{number}"
                nameless, named = (printed(replace(cluster, name=n), schedule, {}) for n in ("kernel", name))
                lines = [
                    "@triton.jit",
                    *signature(named.name, named.parameters),
                    f'    """{doc}"""',
                    *named.body,
                ]
                found.setdefault("\n".join((*nameless.parameters, *nameless.body)), "\n".join(lines) + "\n")
    return "\n\n".join(found.values())


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
