"""The text of a draft is kept: whoever changes the drafter sees what becomes of whole files.

`REWRITE_GOLDEN=1 pytest tests/convert/draft/test_golden.py` writes the files in golden/ again; read the diff.
"""

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from pytorch_to_triton.audit.read_source import read
from pytorch_to_triton.convert.resolve import DraftOrigin
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..drafting import sourced

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parent / "golden"
CHECKOUT = Path(__file__).parents[3]
EXAMPLES = CHECKOUT / "examples"
STAGES: tuple[Stage, ...] = (1, 2, 3)
KEPT = ("rms_norm_residual",)
OTHERS = ("softmax", "channel_logsumexp", "layer_norm", "swiglu", "gelu_bias")

Drafting = Callable[[str, Sequence[Stage]], Awaitable[list[str]]]


@pytest.fixture(scope="module")
def drafted(worker: WorkerClient, interpreter: Runtime) -> Drafting:
    """Drafts stages of an example, by the example's name; traced once, as that takes seconds."""
    origins: dict[str, DraftOrigin] = {}

    async def drafted(name: str, stages: Sequence[Stage]) -> list[str]:
        if name not in origins:
            target = Target(path=EXAMPLES / f"{name}.py", name=name)
            origins[name] = await sourced(worker, interpreter, target)
        source = dataclasses.replace(origins[name].source, target=f"examples/{name}.py:{name}")
        return [draft(origins[name].traced.graph, source, stage).text for stage in stages]

    return drafted


@pytest.mark.parametrize("name", KEPT)
async def test_the_last_stage_is_drafted_as_it_was(name: str, drafted: Drafting) -> None:
    (text,), golden = await drafted(name, [3]), GOLDEN / f"{name}.py"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["rms_norm_residual", *(pytest.param(name, marks=pytest.mark.corpora) for name in OTHERS)]
)
async def test_drafted_files_pass_the_projects_linter_and_its_own_audit(
    name: str, drafted: Drafting, tmp_path: Path
) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    command = str(ruff) if ruff.exists() else shutil.which("ruff")
    assert command, "ruff is a development dependency"
    for stage, text in enumerate(await drafted(name, STAGES), start=1):
        file = tmp_path / f"stage{stage}.py"
        file.write_text(text, encoding="utf-8")
        assert [f for f in read(file).findings if f.severity in ("critical", "high", "medium")] == []
    # A kernel's parameters are as many as it takes, as in reference_kernels/.
    options = ["--config", str(CHECKOUT / "pyproject.toml"), "--ignore", "PLR0913", "--no-cache"]
    checked = subprocess.run(
        [command, "check", *options, tmp_path], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
