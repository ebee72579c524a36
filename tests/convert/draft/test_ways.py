"""Convolutions and products by kernels, by the library, and by the library in channels-last order.

Every way is run beside eager PyTorch; nothing of validate takes part.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.draft.library import PURE, Ways, ways_of
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from ..drafting import sourced

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "jobs" / "beside_eager.py"
CHANNELS_LAST = Ways(convolutions="library, channels last")
LIBRARY = Ways(convolutions="library")
IMAGE = {"x": ["N", 3, "H", "H"], "w": [5, 3, 3, 3], "b": [5]}
BODIES: dict[str, tuple[str, dict[str, list[object]]]] = {
    "a tail": ("return torch.relu(F.conv2d(x, w, b, padding=1)) * 2.0", IMAGE),
    "nothing else": ("return F.conv2d(x, w, stride=2)", {k: IMAGE[k] for k in ("x", "w")}),
    "a pool": ("return F.max_pool2d(F.conv2d(x, w, b).tanh(), 2)", IMAGE),
    "a view of its result": ("return F.conv2d(x, w, b).flatten(1).t()", IMAGE),
    "another convolution": ("return F.conv2d(F.conv2d(x, w, b).relu(), v)", {**IMAGE, "v": [4, 5, 1, 1]}),
    "a volume, transposed": (
        "return F.conv_transpose3d(x, w, b, stride=2).sigmoid()",
        {"x": ["N", 3, "H", 4, 5], "w": [3, 4, 2, 2, 2], "b": [4]},
    ),
    "a view of one of several results": (
        "y = F.batch_norm(x, None, None, training=True).mT\n    return F.conv2d(y, w).relu()",
        {k: IMAGE[k] for k in ("x", "w")},
    ),
    "a line": ("return F.conv1d(x, w, b).exp()", {"x": ["N", 3, "H"], "w": [5, 3, 3], "b": [5]}),
}

EVERY_CHANGE = ("nothing else", "another convolution")

Drafted = Callable[[str], Awaitable[dict[Ways, str]]]


def file_of(name: str) -> str:
    body, tensors = BODIES[name]
    inputs = {n: f"float32[{', '.join(map(str, dims))}]" for n, dims in tensors.items()}
    return (
        "import torch\nimport torch.nn.functional as F\n\n"
        f"INPUTS = {inputs!r}\nDIMS = {{'N': [2], 'H': [7]}}\n\n\ndef f({', '.join(tensors)}):\n    {body}\n"
    )


@pytest.fixture
def drafted(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Drafted:
    """Drafts the last stage of a file in every way that leaves a kernel to be drafted."""

    async def drafted(name: str) -> dict[Ways, str]:
        path = tmp_path / "source.py"
        path.write_text(file_of(name), encoding="utf-8")
        origin = await sourced(worker, interpreter, Target(path=path, name="f"))
        traced, source = origin.traced, origin.source
        found = {}
        for ways in ways_of(traced.graph):
            try:
                found[ways] = draft(traced.graph, source, 3, ways=ways).text
            except NotConvertible:
                continue
        return found

    return drafted


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in EVERY_CHANGE else pytest.mark.corpora) for n in BODIES]
)
async def test_every_way_computes_what_eager_does(
    name: str, drafted: Drafted, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    drafts: list[JsonValue] = []
    for number, text in enumerate((await drafted(name)).values()):
        path = tmp_path / f"way_{number}.py"
        path.write_text(text, encoding="utf-8")
        drafts.append(str(path))
    given: dict[str, JsonValue] = {
        "name": name,
        "source": str(tmp_path / "source.py"),
        "drafts": drafts,
        "dims": {"N": [2], "H": [7]},
        "inputs": {n: list(dims) for n, dims in BODIES[name][1].items()},  # type: ignore[arg-type]
        "tolerance": 1e-4,
    }
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": [given]})
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer == {name: ""}


async def test_the_library_convolves_without_its_bias_which_the_tail_adds(drafted: Drafted) -> None:
    found = await drafted("a tail")
    assert "torch.nn.functional.conv2d(x, w, padding=1)" in found[LIBRARY]
    for ways in (LIBRARY, CHANNELS_LAST):
        assert "tl.load(b_ptr" in found[ways]
    assert "torch.nn.functional" not in found[PURE].split("def run(")[1]


async def test_channels_come_last_around_the_library_s_call(drafted: Drafted) -> None:
    run = (await drafted("a tail"))[CHANNELS_LAST].split("def run(")[1]
    assert "x_nhwc = torch.empty((N, H, H, 3)" in run
    assert "x_nhwc.permute(0, 3, 1, 2)" in run
    assert ".permute(0, 2, 3, 1).contiguous()" in run


async def test_between_two_convolutions_no_tensor_is_in_another_order(drafted: Drafted) -> None:
    run = (await drafted("another convolution"))[CHANNELS_LAST].split("def run(")[1]
    assert len(re.findall(r"= torch\.empty\(", run)) == 3, run
    assert run.count("conv2d(") == 2


async def test_where_the_library_leaves_nothing_it_is_no_way(drafted: Drafted) -> None:
    assert set(await drafted("nothing else")) == {CHANNELS_LAST, PURE}
    assert set(await drafted("a line")) == {LIBRARY, PURE}


def test_a_way_says_what_stays_the_library_s() -> None:
    assert str(PURE) == "own kernels"
    assert str(Ways("library, channels last", "library")) == (
        "convolutions by library, channels last; products by library"
    )
