"""Each red flag is raised by what it names and by nothing less, and the summary follows the worst."""

import math
import re
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from pytorch_to_triton.benchmark.flags import (
    add_flags,
    below_half,
    grows_faster,
    noisy,
    of_conditions,
    slower,
)
from pytorch_to_triton.benchmark.verdict import NEXT_STEPS, next_step_of, summary_of, verdict_of
from pytorch_to_triton.schema.benchmark import KERNEL, Conditions
from pytorch_to_triton.schema.timing import FlagKind, RedFlag, TimingTable

from .sweeps import matmul, softmax, softmax_sweep, table, timing

CHEAT = RedFlag(kind="clock_disagrees", label=KERNEL, message="Work runs beside the stream.")


def kinds(tables: list[TimingTable]) -> list[str]:
    return [flag.kind for table in add_flags(tables) for flag in table.flags]


def test_a_fast_kernel_has_no_flags() -> None:
    assert kinds(softmax_sweep()) == []
    assert verdict_of(add_flags(softmax_sweep()), ()) == "faster"


def test_a_slower_kernel_is_flagged_with_the_baseline_and_the_ratio() -> None:
    kinds_by_baseline = {
        "eager": "slower_than_eager",
        "compile": "slower_than_compile",
        "max_autotune": "slower_than_compile",
        "liger": "slower_than_other",
    }
    for baseline, kind in kinds_by_baseline.items():
        (flag,) = slower(softmax(8192, 4096, kernel=0.06, **{baseline: 0.05}))
        assert flag.kind == kind
        assert "0.0600 ms, 1.20 times as long as " in flag.message


def test_a_difference_within_the_intervals_is_not_slower() -> None:
    assert list(slower(softmax(8192, 4096, kernel=0.0505, eager=0.05))) == []


@given(st.floats(0.01, 10.0), st.floats(0.01, 10.0), st.floats(0.0, 0.5))
def test_slower_means_that_the_intervals_are_apart(kernel: float, eager: float, within: float) -> None:
    timings = [timing("kernel", kernel, within=within), timing("eager", eager, within=within)]
    found = list(slower(softmax(64, 64, kernel=1.0).model_copy(update={"timings": tuple(timings)})))
    assert bool(found) == (kernel * (1 - within) > eager * (1 + within))


def test_less_than_half_of_the_limit_is_flagged_with_what_bounds_it_but_for_a_tiny_call() -> None:
    (flag,) = below_half(softmax(8192, 4096, kernel=0.1, eager=0.2))
    assert flag.message == (
        "The kernel reaches 31 % of the limit: it takes 0.1000 ms, and 0.0313 ms is possible (memory-bound)."
    )
    assert list(below_half(softmax(8192, 4096, kernel=0.06, eager=0.2))) == []
    assert list(below_half(softmax(64, 64, kernel=0.004, eager=0.005))) == []


def test_scattered_times_are_flagged_for_any_callable() -> None:
    one = softmax(8192, 4096, kernel=0.04, eager=0.1)
    scattered = one.model_copy(update={"timings": (one.timings[0], timing("eager", 0.1, spread=0.14))})
    (flag,) = noisy(scattered)
    assert (flag.label, flag.kind) == ("eager", "noisy")
    assert "spans 14 % of their median" in flag.message


def test_a_time_that_grows_faster_than_the_work_is_flagged_at_the_larger_size() -> None:
    sizes = [softmax(8192, 32768, kernel=0.3, eager=1.0), softmax(8192, 131072, kernel=1.8, eager=4.0)]
    first, second = add_flags(sizes)
    assert first.flags == ()
    (flag,) = second.flags
    assert flag.kind == "grows_faster_than_work"
    assert flag.message == (
        "From M=8192 N=32768 to this size the kernel's time grows 6.00 times and the limit 4.00 times."
    )


def test_growth_with_the_operations_out_of_a_cache_or_across_dtypes_is_not_flagged() -> None:
    sizes = matmul(4096, 4096, 4096, kernel=0.2, eager=0.3), matmul(8192, 8192, 8192, kernel=1.65, eager=2.0)
    assert list(grows_faster(*sizes)) == []
    large = softmax(8192, 131072, kernel=1.8, eager=4.0)
    launched, cached = softmax(64, 4096, kernel=0.004, eager=1.0), softmax(8192, 7168, kernel=0.06, eager=1.0)
    assert [*grows_faster(launched, large), *grows_faster(cached, large)] == []
    middle = softmax(8192, 32768, kernel=0.1, eager=1.0).model_copy(update={"dtypes": {"x": "float32"}})
    assert list(grows_faster(middle, large)) == []


def test_a_throttled_and_shared_device_is_flagged_for_the_whole_run() -> None:
    conditions = Conditions(
        driver="1",
        provenance="NVML",
        sm_clock_mhz=(1335, 1980),
        max_sm_clock_mhz=1980,
        throttled_by=("SwPowerCap",),
        other_processes=("process 4711 (512 MiB)",),
    )
    throttled, shared = of_conditions(conditions)
    assert (throttled.kind, throttled.label) == ("throttled", "")
    assert "(SwPowerCap). It ran at 1,335 to 1,980 of at most 1,980 MHz." in throttled.message
    assert "process 4711 (512 MiB)" in shared.message
    assert list(of_conditions(Conditions(driver=None, provenance="not available"))) == []
    hardly = conditions.model_copy(update={"sm_clock_mhz": (1965, 1980), "other_processes": ()})
    assert list(of_conditions(hardly)) == [], "one step of the clock, at the power limit, is no doubt"
    unknown = hardly.model_copy(update={"sm_clock_mhz": None})
    assert [flag.kind for flag in of_conditions(unknown)] == ["throttled"]


def test_figures_of_a_cheating_kernel_are_void_and_its_flag_comes_first() -> None:
    sizes = add_flags([softmax(8192, 4096, kernel=0.1, eager=0.05)])
    sizes = (sizes[0].model_copy(update={"flags": (*sizes[0].flags, CHEAT)}),)
    assert verdict_of(sizes, ()) == "void"
    summary = summary_of("k.py", sizes, ())
    assert summary.startswith("k.py cannot be judged from these figures. 3 red flags, the worst at M=8192")
    assert summary.endswith("Work runs beside the stream.")
    assert "current stream" in next_step_of("k.py", sizes, ())


def test_a_baseline_that_changes_settings_does_not_void_the_kernel() -> None:
    flag = RedFlag(kind="settings_changed", label="eager", message="")
    assert verdict_of(add_flags(softmax_sweep()), (flag,)) == "faster"


def test_one_slower_size_makes_the_kernel_slower() -> None:
    sizes = add_flags([*softmax_sweep(), softmax(8192, 131072, kernel=2.3, eager=2.2)])
    assert verdict_of(sizes, ()) == "slower"
    assert "eager PyTorch is faster" in next_step_of("k.py", sizes, ())


def test_a_kernel_that_fails_at_a_size_or_has_no_baseline_is_not_called_faster() -> None:
    sizes = softmax_sweep()
    alone = (sizes[1].timings[1],)
    broken = sizes[1].model_copy(
        update={"timings": alone, "failed": {KERNEL: "OutOfResources: shared memory"}}
    )
    assert verdict_of([sizes[0], broken], ()) == "void"
    assert "At M=8192 N=4096 it could not be timed: OutOfResources: shared memory." in summary_of(
        "k.py", [sizes[0], broken], ()
    )
    assert "validate k.py" in next_step_of("k.py", [sizes[0], broken], ())
    alone = softmax(8192, 4096, kernel=0.04).model_copy(update={"failed": {"eager": "OutOfMemoryError"}})
    assert verdict_of([alone], ()) == "void"
    assert "no baseline to compare it with: OutOfMemoryError." in summary_of("k.py", [alone], ())


def test_a_sweep_is_summed_up_by_mean_range_and_limit_and_one_size_by_its_figures() -> None:
    sizes = add_flags(softmax_sweep())
    over_eager = math.prod([354 / 223, 1096 / 367, 2447 / 1717, 5614 / 3955]) ** 0.25
    over_best = math.prod([225 / 223, 824 / 367, 2447 / 1717, 5413 / 3955]) ** 0.25
    assert summary_of("softmax.py", sizes, ()) == (
        f"softmax.py on NVIDIA H200: {over_eager:.2f} times as fast as eager PyTorch "
        f"(geometric mean of 4 sizes, 1.42 to 2.99); {over_best:.2f} times as fast as the best baseline "
        "(geometric mean of 4 sizes, 1.01 to 2.25); 63 % to 85 % of the limit (memory-bound)."
    )
    assert next_step_of("k.py", sizes, ()) == "Use `run` of k.py in place of the PyTorch function."
    summary = summary_of("softmax.py", [softmax(8192, 4096, kernel=0.0367, eager=0.1096)], ())
    assert summary == (
        "softmax.py on NVIDIA H200: 2.99 times as fast as eager PyTorch; 85 % of the limit (memory-bound)."
    )


def test_an_unknown_limit_is_not_made_up() -> None:
    bare = table({"M": 1}, softmax(64, 64, kernel=1.0).work, [timing("kernel", 1.0), timing("eager", 2.0)])  # type: ignore[arg-type]
    unlimited = bare.model_copy(update={"limit": None})
    assert "share of the limit unknown" in summary_of("k.py", [unlimited], ())
    assert list(below_half(unlimited)) == []


def test_every_flag_has_a_next_step_and_a_row_in_the_page_on_benchmarking() -> None:
    page = (Path(__file__).parents[2] / "references" / "benchmarking.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", page, re.MULTILINE)
    kinds = set(get_args(FlagKind))
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == kinds
    assert set(NEXT_STEPS) == kinds
