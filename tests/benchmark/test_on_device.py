"""On a GPU: cheats against the clock are flagged, and honest kernels are not."""

from pathlib import Path

import pytest

from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import EAGER, KERNEL, Benchmark
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

pytestmark = [pytest.mark.anyio, pytest.mark.gpu]

KERNELS = Path(__file__).parent / "kernels"
UNTRUSTED = {"wrong_outputs", "clock_disagrees", "settings_changed"}


async def timed(worker: WorkerClient, device: Runtime, folder: Path, name: str) -> Benchmark:
    """A kernel at a size where it takes tens of microseconds, beside eager PyTorch."""
    request = BenchmarkRequest(
        candidate=Target(path=KERNELS / f"{name}.py"),
        options=parse_options([], ["M=4096", "N=4096"] if name != "copy" else ["N=16777216"]),
        baselines=("eager",),
        into=folder,
        seed=7,
    )
    return await benchmark(worker, request, device)


def untrusted(found: Benchmark) -> set[str]:
    """Why the kernel's own figures are not believed."""
    return {flag.kind for table in found.tables for flag in table.flags if flag.label == KERNEL} & UNTRUSTED


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("side_stream", "clock_disagrees"),
        ("remembers_addresses", "wrong_outputs"),
        ("changes_precision", "settings_changed"),
    ],
)
async def test_a_cheat_against_the_clock_is_flagged(
    worker: WorkerClient, device: Runtime, tmp_path: Path, name: str, flag: str
) -> None:
    found = await timed(worker, device, tmp_path, name)
    assert flag in untrusted(found)
    assert found.verdict == "void"


@pytest.mark.parametrize(
    "name", ["honest_softmax", "autotuned_softmax", "synchronising", "many_small_operations", "copy"]
)
async def test_an_honest_kernel_is_believed(
    worker: WorkerClient, device: Runtime, tmp_path: Path, name: str
) -> None:
    found = await timed(worker, device, tmp_path, name)
    assert untrusted(found) == set()
    assert all(table.of(KERNEL) for table in found.tables)


async def test_an_autotuned_kernel_reports_what_it_chose(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    found = await timed(worker, device, tmp_path, "autotuned_softmax")
    assert [config.kernel for config in found.tuned] == ["softmax_kernel"]
    assert "num_warps" in found.tuned[0].config


async def test_what_pytorch_computes_is_told_from_what_the_kernels_do(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    for name in ("many_small_operations", "honest_softmax"):
        found = await timed(worker, device, tmp_path / name, name)
        kernel, eager = (found.tables[0].of(label) for label in (KERNEL, EAGER))
        assert kernel is not None
        assert eager is not None
        assert eager.library_ms == eager.busy_ms
        assert kernel.library_ms is not None
        assert (kernel.library_ms > 0) == (name == "many_small_operations")
