"""What autotuned kernels chose is read from their tuners, and kept by file, GPU, Triton and key."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.benchmark.tuning.tune import keep, kept_configs, place_of
from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.tuning import Origin

H200 = Origin(device="NVIDIA H200", triton="3.6.0", day=date(2026, 11, 21))
L40 = Origin(device="NVIDIA L40", triton="3.6.0", day=date(2026, 11, 21))

JOB = """
import torch

from ..tuning.config_selector import chosen_configs, note_keys
from ..loading.target import load

def work(report, target, sizes):
    note_keys()
    loaded = load(target, "candidate")
    for size in sizes:
        loaded.call(torch.arange(float(size)))
    return {"chosen": chosen_configs([loaded.contents])}
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 16}, num_stages=2), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def run(x):
    out = torch.empty_like(x, dtype=torch.float16)
    copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
"""
KEY_OF_7 = {"n": 7, "x_ptr dtype": "float32", "out_ptr dtype": "float16"}
Chosen = Callable[..., Any]


@pytest.fixture
def chosen(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Chosen:
    """What the kernels of a file chose when its `run` was called at these sizes."""

    async def chosen(source: str, sizes: list[int]) -> list[dict[str, Any]]:
        kernel, job = tmp_path / "kernel.py", tmp_path / "chosen.py"
        kernel.write_text(source, encoding="utf-8")
        job.write_text(JOB, encoding="utf-8")
        target = Target(path=kernel).model_dump(mode="json")
        asked = Job(kind=str(job), arguments={"target": target, "sizes": sizes})
        outcome = await worker.ask(asked, interpreter, seconds=120)
        assert outcome.answer is not None, outcome.failure
        found: list[dict[str, Any]] = outcome.answer["chosen"]
        return found

    return chosen


@pytest.mark.anyio
async def test_each_key_has_its_configuration_by_name_and_what_was_never_launched_none(
    chosen: Chosen, tmp_path: Path
) -> None:
    first, second = await chosen(KERNEL, [7, 40])
    assert first == {
        "kernel": "copy_kernel",
        "file": str(tmp_path / "kernel.py"),
        "line": 7,
        "key": KEY_OF_7,
        "config": {"BLOCK": 16, "num_warps": 4, "num_stages": 2},
        "seconds": None,
    }
    assert second["key"] == {**KEY_OF_7, "n": 40}
    (only,) = await chosen(KERNEL, [7])
    assert only["seconds"] >= 0
    assert await chosen(KERNEL, []) == []


MADE = """

def made(copy_kernel):
    def run(x):
        out = torch.empty_like(x, dtype=torch.float16)
        copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
    return run


run = made(copy_kernel)
del copy_kernel
"""
HELD = """

class Holder:
    kernels = [{"copy": copy_kernel}]


holder = Holder()
del copy_kernel
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    "source",
    [
        KERNEL.replace("@triton.autotune", "@triton.heuristics({})\n@triton.autotune"),
        KERNEL + MADE,
        KERNEL.replace("    copy_kernel[", "    holder.kernels[0]['copy'][") + HELD,
    ],
    ids=["below heuristics", "by a closure", "by an instance"],
)
async def test_a_kernel_is_found_however_the_module_holds_it(chosen: Chosen, source: str) -> None:
    assert [one["key"] for one in await chosen(source, [7])] == [KEY_OF_7]


@pytest.mark.anyio
async def test_a_kernel_with_one_configuration_has_an_empty_key(chosen: Chosen) -> None:
    source = KERNEL.replace(', triton.Config({"BLOCK": 32})', "")
    assert [(one["key"], one["config"]["BLOCK"]) for one in await chosen(source, [7, 40])] == [({}, 16)]


@pytest.mark.anyio
async def test_options_are_shown_where_they_differ_from_tritons_defaults(chosen: Chosen) -> None:
    source = KERNEL.replace("num_stages=2", "num_ctas=2, maxnreg=64, pre_hook=print")
    (only,) = await chosen(source, [7])
    hook = only["config"].pop("pre_hook")
    assert only["config"] == {"BLOCK": 16, "num_warps": 4, "num_stages": 3, "num_ctas": 2, "maxnreg": 64}
    assert hook == {"repr": "print"}


@pytest.mark.anyio
async def test_a_tuner_that_keeps_its_choices_in_a_way_of_its_own_is_passed_over(chosen: Chosen) -> None:
    shelf = """
class Shelf:
    def __init__(self):
        self.kept = []

    def __contains__(self, key):
        return any(known == key for known, _ in self.kept)

    def __getitem__(self, key):
        return next(config for known, config in self.kept if known == key)

    def __setitem__(self, key, config):
        self.kept.append((key, config))


copy_kernel.cache = Shelf()
"""
    assert await chosen(KERNEL + shelf, [7, 40]) == []


@pytest.mark.anyio
async def test_a_key_has_the_names_of_its_arguments_and_not_those_left_to_their_defaults(
    chosen: Chosen,
) -> None:
    source = KERNEL.replace("x_ptr", "source").replace("out_ptr", "copy")
    source = source.replace("n, BLOCK: tl.constexpr", "n, flag=1, BLOCK: tl.constexpr = 16")
    (only,) = await chosen(source.replace('key=["n"]', 'key=["flag", "n"]'), [7])
    assert only["key"] == {"n": 7, "source dtype": "float32", "copy dtype": "float16"}


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel file of this test's own."""
    path = tmp_path / "kernel.py"
    path.write_text(f"# {tmp_path}\n{KERNEL}", encoding="utf-8")
    return path


def config(n: int, block: int) -> TunedConfig:
    return TunedConfig(kernel="copy_kernel", key={"n": n}, config={"BLOCK": block})


def test_what_is_kept_comes_back_with_its_origin(kernel: Path) -> None:
    assert keep(kernel, [config(7, 16)], H200).parent == places.tuned()
    (only,) = kept_configs(kernel)
    assert (only.origin, only.chosen) == (H200, config(7, 16))
    assert str(only.origin) == "NVIDIA H200, Triton 3.6.0, 2026-11-21"


def test_the_newest_of_a_gpu_triton_kernel_and_key_is_kept(kernel: Path) -> None:
    keep(kernel, [config(7, 16), config(40, 16)], H200)
    keep(kernel, [config(7, 32)], L40)
    keep(kernel, [config(7, 64)], H200.model_copy(update={"day": date(2026, 11, 22)}))
    assert [one.chosen for one in kept_configs(kernel, device="NVIDIA H200")] == [
        config(7, 64),
        config(40, 16),
    ]
    assert [one.chosen for one in kept_configs(kernel, device="NVIDIA L40", triton="3.6.0")] == [
        config(7, 32)
    ]
    assert kept_configs(kernel, triton="3.9.0") == ()


def test_a_changed_kernel_file_is_another_one(kernel: Path) -> None:
    keep(kernel, [config(7, 16)], H200)
    kernel.write_text(kernel.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert kept_configs(kernel) == ()


def test_a_moved_kernel_file_is_the_same(kernel: Path, tmp_path: Path) -> None:
    keep(kernel, [config(7, 16)], H200)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert [one.chosen for one in kept_configs(kernel.rename(folder / kernel.name))] == [config(7, 16)]


def test_a_damaged_file_holds_nothing_and_heals(kernel: Path) -> None:
    place = keep(kernel, [config(7, 16)], H200)
    for damage in (b"", b'{"file": "k', b'{"configs": 7}', b"\xff\xfe"):
        place.write_bytes(damage)
        assert kept_configs(kernel) == ()
        keep(kernel, [config(40, 16)], H200)
        assert [one.chosen for one in kept_configs(kernel)] == [config(40, 16)]


def test_many_that_keep_at_once_lose_nothing(kernel: Path) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        [*pool.map(lambda n: keep(kernel, [config(n, 16)], H200), range(24))]
    assert sorted(one.chosen.key["n"] for one in kept_configs(kernel)) == [*range(24)]
    assert {path.suffix for path in places.tuned().glob(f"{place_of(kernel).stem}*")} == {".json", ".lock"}


def test_a_kernel_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetNotFound, match="cannot be read: No such file"):
        kept_configs(tmp_path / "absent.py")
