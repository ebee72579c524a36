"""Tuning keeps to its time, drops what cannot win, and no configuration wins that computes something else."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import triton

from pytorch_to_triton.benchmark.tuning.tune import TuneRequest, tune, tuning_of
from pytorch_to_triton.errors import MissingRequirement, TargetBroken
from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.tuning import Tuning
from pytorch_to_triton.worker.tuning.config_search import ConfigSearch
from pytorch_to_triton.worker.tuning.tuning_config import (
    DeviceLimits,
    KernelResources,
    neighbours,
    over_budget,
    too_large,
)

JOB = '''
"""The job `tune` with a made-up clock and device: one second a round, and each configuration's own time."""

from .tune import ready
from ..tuning.tuning_config import DeviceLimits, KernelResources
from ..tuning.session import tune
from ..wire import TuningDeviceItem


class MadeUp:
    about = TuningDeviceItem(device="made up", triton="3.0")
    limits = DeviceLimits(shared_bytes=100_000)

    def __init__(self, crash_after):
        self.now = 0.0
        self.crash_after = crash_after

    def synchronize(self):
        pass

    def compiled(self, site, configs):
        return {c: KernelResources(shared_bytes=500 * c.kwargs["BLOCK"], spills=0) for c in configs}

    def round(self, configs, ready):
        self.now += 1
        if self.now > self.crash_after:
            raise SystemExit(3)
        for config in configs:
            ready(config)()
        return [abs(c.kwargs["BLOCK"] - 64) + c.num_warps + c.num_stages for c in configs]


def work(report, target, reference, case, seed, seconds, crash_after=1e9):
    timer = MadeUp(crash_after)
    calls = ready(target, reference, {**case, "seed": seed}, "cpu")
    return tune(report, calls, timer, seconds, lambda: timer.now)
'''
KERNEL = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [100]}


def reference(x):
    x += 1
    return x.sum()


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + STEP, mask=i < n)


def run(x):
    increment_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())
    return x.sum()
"""
CASE = Case(
    name="N=100",
    group="declared",
    dims={"N": 100},
    arguments=(TensorArgument(name="x", dtype="float32", shape=(100,)),),
)
Tuned = Callable[..., Any]


def requested(kernel: Path, seconds: float = 1000.0) -> TuneRequest:
    target = Target(path=kernel)
    return TuneRequest(target=target, reference=target, case=CASE, seed=1, seconds=seconds)


@pytest.fixture
def made_up(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Callable[..., Any]:
    """Tunes the kernel with the given configurations under the interpreter, by made-up times."""

    async def made_up(
        configs: Sequence[str], source: str = KERNEL, seconds: float = 1000.0, **arguments: Any
    ) -> tuple[Tuning, Outcome]:
        kernel, job = tmp_path / "kernel.py", tmp_path / "made_up.py"
        kernel.write_text(source.replace("CONFIGS", f"[{', '.join(configs)}]"), encoding="utf-8")
        job.write_text(JOB, encoding="utf-8")
        request = requested(kernel, seconds)
        asked = Job(kind=str(job), arguments={**request.model_dump(mode="json"), **arguments})
        outcome = await worker.ask(asked, interpreter, seconds=120)
        return tuning_of(request, outcome), outcome

    return made_up


def config(block: int, step: int = 1, options: str = "num_warps=4") -> str:
    return f"triton.Config({{'BLOCK': {block}, 'STEP': {step}}}, {options})"


def dropped(tuning: Tuning) -> Mapping[tuple[Any, ...], str]:
    found = (one for one in tuning.tried if one.dropped)
    return {(one.config["BLOCK"], one.config["STEP"], one.config["num_warps"]): one.dropped for one in found}


@pytest.mark.anyio
async def test_the_fastest_that_computes_the_same_wins_and_its_neighbours_are_tried(made_up: Tuned) -> None:
    # STEP=2 would be the fastest of all, and computes something else; the kernel works in place.
    tuning, _ = await made_up([config(16), config(32), config(64, step=2)])
    assert tuning.verdict == "tuned"
    (best,) = tuning.tuned
    assert best.kernel == "increment_kernel"
    assert best.key == {"n": 100, "x_ptr dtype": "float32"}
    # From 32 the search goes on to 64, to fewer warps and to fewer stages, step by step.
    assert best.config == {"BLOCK": 64, "STEP": 1, "num_warps": 1, "num_stages": 1}
    assert dropped(tuning)[64, 2, 4].startswith("out differs from the first configuration's")
    assert "2 ms per call" in tuning.summary
    assert (tuning.device, tuning.triton, tuning.dims) == ("made up", "3.0", {"N": 100})


@pytest.mark.anyio
async def test_each_dropped_configuration_says_why(made_up: Tuned) -> None:
    tuning, _ = await made_up([config(32), config(256), config(1024), config(24)])
    why = dropped(tuning)
    assert why[1024, 1, 4] == "BLOCK=1024 is more than twice what n=100 fills"
    assert why[256, 1, 4] == "it needs 128000 bytes of shared memory, and a block gets 100000"
    assert why[24, 1, 4].startswith("it cannot be run: InterpreterError: ")
    assert [one.config["BLOCK"] for one in tuning.tried if one.median_ms is not None].count(32) > 1


@pytest.mark.anyio
async def test_each_kernel_is_tuned_at_each_key_it_is_launched_with(made_up: Tuned) -> None:
    source = KERNEL + "\n\n_run = run\n\n\ndef run(x):\n    _run(x[:20])\n    return _run(x)\n"
    tuning, _ = await made_up([config(16), config(32)], source)
    assert [one.key["n"] for one in tuning.tuned] == [20, 100]
    # A block of 128 and more is much too large for 20 elements.
    assert [one.config["BLOCK"] for one in tuning.tuned] == [64, 64]
    assert all(one.seconds for one in tuning.tuned)


@pytest.mark.anyio
async def test_the_search_ends_when_its_time_is_up(made_up: Tuned) -> None:
    tuning, outcome = await made_up([config(16), config(32)], seconds=3.0)
    assert tuning.verdict == "tuned"
    assert {one.calls for one in tuning.tried} == {3}
    assert [one.config["BLOCK"] for one in tuning.tuned] == [32]
    assert outcome.answer == {"sites": 1}


@pytest.mark.anyio
async def test_a_crash_keeps_what_was_found_before_and_without_any_is_refused(made_up: Tuned) -> None:
    tuning, outcome = await made_up([config(16), config(32)], crash_after=17)
    assert outcome.status == "raised"
    assert tuning.verdict == "stopped"
    assert [one.config["BLOCK"] for one in tuning.tuned] == [32]
    assert tuning.summary.startswith("Tuning ended early during timing increment_kernel")
    with pytest.raises(TargetBroken, match=r"Tuning .* raised during timing increment_kernel"):
        await made_up([config(16)], crash_after=0)


@pytest.mark.anyio
async def test_the_authors_pruning_holds_for_neighbours_too(made_up: Tuned) -> None:
    prune = (
        "\ndef small(configs, named, **_):\n    return [c for c in configs if c.kwargs['BLOCK'] <= 32]\n\n"
    )
    source = KERNEL.replace("@triton.autotune", f"{prune}\n@triton.autotune").replace(
        'key=["n"]', 'key=["n"], prune_configs_by={"early_config_prune": small}'
    )
    tuning, _ = await made_up([config(16), config(64)], source)
    assert [one.config["BLOCK"] for one in tuning.tuned] == [32]
    assert dropped(tuning)[64, 1, 4] == "the kernel's own early_config_prune leaves it out"


@pytest.mark.anyio
async def test_a_pre_hook_runs_at_every_launch(made_up: Tuned) -> None:
    hook = "\ndef double(named):\n    named['x_ptr'].mul_(2)\n\n"
    source = KERNEL.replace("@triton.autotune", f"{hook}\n@triton.autotune")
    tuning, _ = await made_up([config(32, options="pre_hook=double"), config(64)], source)
    assert dropped(tuning)[64, 1, 4].startswith("out differs from the first")
    assert all(isinstance(one.config["pre_hook"], dict) for one in tuning.tuned)


@pytest.mark.anyio
async def test_a_call_without_autotuned_kernels_has_nothing_to_tune(made_up: Tuned) -> None:
    source = KERNEL.replace('@triton.autotune(CONFIGS, key=["n"])\n', "").replace(
        "(x, x.numel())", "(x, x.numel(), BLOCK=16, STEP=1)"
    )
    tuning, _ = await made_up([], source)
    assert (tuning.verdict, tuning.tuned, tuning.tried) == ("nothing_to_tune", (), ())


@pytest.mark.anyio
async def test_the_interpreter_tunes_nothing(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    with pytest.raises(MissingRequirement, match="needs a GPU"):
        await tune(worker, requested(tmp_path / "kernel.py"), interpreter)


def tuning_config(block: int = 64, num_warps: int = 4, num_stages: int = 3) -> triton.Config:
    return triton.Config({"BLOCK_M": block, "GROUP": 8}, num_warps, num_stages)


def test_neighbours_are_one_step_away_where_a_launch_is_possible() -> None:
    found = [(c.kwargs["BLOCK_M"], c.num_warps, c.num_stages) for c in neighbours(tuning_config())]
    assert found == [(64, 2, 3), (64, 8, 3), (64, 4, 2), (64, 4, 4), (32, 4, 3), (128, 4, 3)]
    assert all(c.kwargs["GROUP"] == 8 for c in neighbours(tuning_config()))
    found = [(c.kwargs["BLOCK_M"], c.num_warps, c.num_stages) for c in neighbours(tuning_config(1, 1, 1))]
    assert found == [(1, 2, 1), (1, 1, 2), (2, 1, 1)]
    assert max(c.num_warps for c in neighbours(tuning_config(1, 32, 8))) == 32


def test_a_block_is_held_against_its_own_size_and_what_products_need_stays() -> None:
    large = tuning_config(256)
    assert too_large([large, tuning_config()], {"M": 40, "N": 9000}, ["N"]) == {
        large: "BLOCK_M=256 is more than twice what M=40 fills"
    }
    assert too_large([large, tuning_config()], {"n_rows": 40, "n_cols": 9000}, ["n_rows", "n_cols"]) == {}
    assert too_large([large, tuning_config()], {"n_rows": 40}, []) == {}
    assert too_large([tuning_config(32), tuning_config(16)], {"M": 1}, []) == {}
    assert [*too_large([tuning_config(256), tuning_config(128)], {"M": 3}, [])] == [tuning_config(256)]


def test_what_does_not_fit_or_spills_where_others_do_not_is_left_out_and_what_is_unknown_stays() -> None:
    fits, shared, registers = tuning_config(), tuning_config(128), tuning_config(256)
    found = {
        fits: KernelResources(100, 64, 0, 1024),
        shared: KernelResources(101, 64, 0, 1024),
        registers: KernelResources(100, 65, 0, 1024),
    }
    why = over_budget(found, DeviceLimits(shared_bytes=100, registers=65536))
    assert [*why] == [shared, registers]
    assert why[registers] == "it needs 66560 registers, and a block gets 65536"
    spilling, sound, too_much = tuning_config(128), tuning_config(), tuning_config(256)
    limits = DeviceLimits(shared_bytes=100)
    found = {spilling: KernelResources(100, 255, 12, 128), too_much: KernelResources(200, 90, 0, 128)}
    assert [*over_budget(found, limits)] == [too_much]
    found[sound] = KernelResources(100, 90, 0, 128)
    assert over_budget(found, limits)[spilling] == "it spills 12 registers, and others spill none"
    assert over_budget({tuning_config(): KernelResources()}, DeviceLimits(shared_bytes=1, registers=1)) == {}


class Track(ConfigSearch):
    """A search in which each configuration takes a fixed time, with what it reports."""

    limits = DeviceLimits()

    def __init__(
        self,
        times: Mapping[triton.Config, Sequence[float]],
        wrong: Sequence[triton.Config] = (),
        most_rounds: int = 1000,
    ) -> None:
        super().__init__()
        self.times = times
        self.wrong = wrong
        self.calls: dict[triton.Config, int] = {}
        self.rounds, self.most_rounds = 0, most_rounds
        self.bests: list[triton.Config] = []
        self.out: dict[triton.Config, str] = {}

    def compiled(self, configs: Sequence[triton.Config]) -> dict[triton.Config, KernelResources | str]:
        known: dict[triton.Config, KernelResources | str] = {
            c: KernelResources() for c in configs if c in self.times
        }
        return {**dict.fromkeys(configs, "unknown"), **known}

    def disagreement(self, config: triton.Config) -> str:
        return "other values" if config in self.wrong else ""

    def round(self, configs: Sequence[triton.Config]) -> list[float]:
        self.rounds += 1
        for one in configs:
            self.calls[one] = self.calls.get(one, 0) + 1
        return [self.times[c][self.rounds % len(self.times[c])] for c in configs]

    def dropped(self, config: triton.Config, why: str) -> None:
        self.out[config] = why

    def timed(self, config: triton.Config, median_ms: float, calls: int) -> None:
        assert calls == self.calls[config]

    def best(self, config: triton.Config, median_ms: float) -> None:
        self.bests.append(config)

    def late(self) -> bool:
        return self.rounds >= self.most_rounds

    def unsuited(self, configs: Sequence[triton.Config]) -> dict[triton.Config, str]:
        return {}


def test_the_slower_half_is_left_behind_and_the_rest_called_twice_as_often() -> None:
    blocks = [16, 256, 1024, 4096]
    track = Track({tuning_config(block): [float(block)] for block in blocks})
    assert track.fastest([tuning_config(block) for block in blocks]) == tuning_config(16)
    assert [track.calls[tuning_config(block)] for block in blocks] == [35, 15, 5, 5]


def test_a_single_slow_call_decides_nothing() -> None:
    steady, shaken = tuning_config(16), tuning_config(256)
    track = Track({steady: [2.0], shaken: [1.0, 1.0, 1.0, 1.0, 50.0]})
    assert track.fastest([steady, shaken]) == shaken


def test_a_wrong_configuration_never_runs_against_the_clock() -> None:
    right, wrong = tuning_config(16), tuning_config(256)
    track = Track({right: [2.0], wrong: [1.0]}, wrong=[wrong])
    assert track.fastest([right, wrong]) == right
    assert wrong not in track.calls
    assert track.out[wrong] == "other values"


def test_a_neighbour_that_is_hardly_faster_does_not_win() -> None:
    best = tuning_config(64)
    hardly, clearly = tuning_config(128), tuning_config(32)
    assert Track({best: [1.0], hardly: [0.995]}).fastest([best]) == best
    assert Track({best: [1.0], clearly: [0.9]}).fastest([best]) == clearly


def test_nothing_is_tried_twice() -> None:
    first, second = tuning_config(64), tuning_config(32)
    track = Track({first: [1.0], second: [0.5]})
    assert track.fastest([first, first]) == second
    assert track.bests == [first, second]
    assert [*track.out.values()].count("unknown") == len(track.out)


def test_late_searches_give_every_configuration_one_call() -> None:
    blocks = [16, 64, 256]
    track = Track({tuning_config(block): [float(block)] for block in blocks}, most_rounds=0)
    assert track.fastest([tuning_config(block) for block in blocks]) == tuning_config(16)
    assert [*track.calls.values()] == [1, 1, 1]


def test_configurations_that_there_is_no_time_to_compile_are_dropped() -> None:
    many = [tuning_config(2**n) for n in range(20)]
    track = Track({one: [1.0] for one in many}, most_rounds=0)
    track.fastest(many)
    assert len(track.calls) == 16
    assert {track.out[one] for one in many[16:]} == {"time ran out before it was compiled"}


def test_without_a_configuration_that_works_there_is_no_winner() -> None:
    assert Track({}).fastest([tuning_config()]) is None
