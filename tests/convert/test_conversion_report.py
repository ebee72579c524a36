"""The report says what passed, how fast it is and how that was found out, and claims nothing else."""

from pathlib import Path

from pytorch_to_triton.convert.conversion_report import (
    default_notes,
    limit_notes,
    markdown,
    next_step_of,
    speedup_of,
    summary_of,
    traffic_note,
)
from pytorch_to_triton.schema.conversion import AtSizes, Conversion, Speedup, StageReport
from pytorch_to_triton.schema.timing import TimingTable, Traffic
from pytorch_to_triton.schema.verdict import Mismatch, Skip, Violation

from .stages import stage, table

LARGE = Skip(what="N=1000000", why="too large for this run", declared=True)
RIGHT = [stage(1), stage(2), stage(3)]
STOPPED = [stage(1), stage(2, "failed")]
TIMES = table(
    eager=(3.9, 4.0, 4.1), stage_1=(1.9, 2.0, 2.1), stage_2=(1.4, 1.5, 1.6), stage_3=(0.9, 1.0, 1.1)
)


def at(times: TimingTable | None = None, moved: Traffic | None = None) -> tuple[AtSizes, ...]:
    """What is known of stages that are right at one size."""
    speedup = speedup_of(RIGHT, times)
    return (AtSizes(dims={"M": 4096}, timing=times, speedup=speedup, traffic=moved),)


def conversion(stages: list[StageReport], times: TimingTable | None = None) -> Conversion:
    return Conversion(
        summary=summary_of("f.py:f", stages, at(times)),
        next_step="",
        verdict="converted",
        target="f.py:f",
        kernel=Path("f_triton.py"),
        folder=Path("converted"),
        stages=tuple(stages),
        at=at(times),
        device="CPU; torch 2, Triton 3",
        notes=("The trace holds only where N == 64.",),
        provenance="correctness measured",
        replay="pytorch-to-triton validate f_triton.py --seed 7",
    )


def test_arguments_that_keep_their_defaults_are_one_note() -> None:
    assert default_notes({}) == ()
    assert default_notes({"eps": "1e-05", "lr": "0.1"}) == (
        "eps is 1e-05, lr is 0.1 in the kernel, their defaults: declare them as inputs for other values.",
    )
    assert default_notes({"embedder": "<user.Embedder object at 0x7f>"}) == (
        "embedder is the object that is its default in the kernel.",
    )


def test_the_summary_says_what_passed_and_how_fast_it_is() -> None:
    left_out = [
        each.model_copy(update={"verdict": each.verdict.model_copy(update={"skipped": (LARGE,)})})
        for each in RIGHT
    ]
    for stages, times, text in (
        (RIGHT, None, "f.py:f: all three stages are validated; speed not measured (no GPU)."),
        (RIGHT, TIMES, "4.00 times as fast as eager PyTorch on a GPU at M=4096 (float32, 8 MB moved)"),
        (
            STOPPED,
            None,
            "stage 1 (correct) is the kernel; stage 2 (optimised) is not validated: The tail is wrong;",
        ),
        ([stage(1, "failed")], None, "no stage passed"),
        (left_out, None, "right at the sizes tried, and N=1000000 not tried (too large for this run)"),
    ):
        assert text in summary_of("f.py:f", stages, at(times))
    assert "all three stages are validated" not in summary_of("f.py:f", left_out, at())


def test_a_kernel_that_is_slower_than_pytorch_is_called_so_and_not_recommended() -> None:
    slow = table(
        eager=(0.4, 0.5, 0.6), stage_1=(3.9, 4.0, 4.1), stage_2=(1.4, 1.5, 1.6), stage_3=(0.9, 1.0, 1.1)
    )
    assert "slower than eager PyTorch on a GPU" in summary_of("f.py:f", RIGHT, at(slow))
    assert "it takes 2.00 times as long" in summary_of("f.py:f", RIGHT, at(slow))
    assert next_step_of(RIGHT, Path("f_triton.py"), at(slow)).startswith("Keep the PyTorch function")


COMPILED = table(eager=(3.9, 4.0, 4.1), compiled=(0.5, 0.6, 0.7), stage_3=(1.1, 1.2, 1.3))
MOVED = Traffic(launches=("a", "b", "c"), bytes_moved=310, least_bytes=100)


def test_the_first_figure_is_against_the_faster_of_both_baselines() -> None:
    fast = table(eager=(3.9, 4.0, 4.1), compiled=(1.9, 2.0, 2.1), stage_3=(0.9, 1.0, 1.1))
    assert "; 2.00 times as fast as torch.compile on a GPU" in summary_of("f.py:f", RIGHT, at(fast))
    assert speedup_of(RIGHT, fast) == Speedup(baseline="torch.compile", ratio=2.0, slower=False)
    slow_compile = table(eager=(1.9, 2.0, 2.1), compiled=(3.9, 4.0, 4.1), stage_3=(0.9, 1.0, 1.1))
    assert "; 2.00 times as fast as eager PyTorch on a GPU" in summary_of("f.py:f", RIGHT, at(slow_compile))


def test_a_kernel_that_is_slower_than_torch_compile_is_called_so_with_the_bytes_it_moves() -> None:
    summary = summary_of("f.py:f", RIGHT, at(COMPILED, MOVED))
    assert "slower than torch.compile on a GPU" in summary
    assert (
        "it takes 2.00 times as long and moves 3.10 times the bytes that are needed, in 3 launches;"
        in summary
    )
    assert next_step_of(RIGHT, Path("f_triton.py"), at(COMPILED)).startswith(
        "Keep torch.compile, which is faster"
    )


def test_where_the_kernel_is_slower_is_said_first_and_kept_out_of_the_advice_for_other_sizes() -> None:
    fast = table(eager=(3.9, 4.0, 4.1), stage_3=(0.9, 1.0, 1.1)).model_copy(update={"dims": {"M": 64}})
    both = (*at(fast), *at(COMPILED))
    summary = summary_of("f.py:f", RIGHT, both)
    assert summary.startswith("f.py:f: slower than torch.compile on a GPU at M=4096")
    assert "; all three stages are validated; 4.00 times as fast as eager PyTorch on a GPU at M=64" in summary
    step = next_step_of(RIGHT, Path("f_triton.py"), both)
    assert step.startswith("Use f_triton.py")
    assert step.endswith("At M=4096 keep torch.compile, which is faster there.")


def test_without_a_baseline_there_is_no_speedup() -> None:
    assert speedup_of(RIGHT, table(stage_3=(1.1, 1.2, 1.3))) is None
    assert speedup_of(RIGHT, None) is None


def stopped_by(next_step: str, **ended: object) -> list[StageReport]:
    """One stage, with a case that ended so."""
    report = stage(1, "failed")
    last = report.verdict.cases[-1].model_copy(update=ended)
    verdict = report.verdict.model_copy(update={"cases": (last,), "next_step": next_step})
    return [report.model_copy(update={"verdict": verdict})]


def test_the_draft_is_called_at_fault_only_where_its_results_show_it() -> None:
    values = Mismatch(output="out", kind="values", where=None, message="", causes=(), first=None)
    race = Violation(kind="race", message="", suggestion="")
    without = Violation(kind="no_triton_kernel", message="", suggestion="")
    for shown in ({"mismatches": (values,)}, {"violations": (race,)}):
        assert next_step_of(stopped_by("", **shown), None, ()).startswith("The draft is at fault, not your")
    others = {
        "Give a call more time": stopped_by("", status="timed_out"),
        "Declare only sizes and values that": stopped_by("", status="raised"),
        "Fix: compute it.": stopped_by("Fix: compute it.", violations=(without,)),
        "Narrow the ranges.": stopped_by("Narrow the ranges.", status="undecided"),
    }
    for start, stages in others.items():
        step = next_step_of(stages, None, ())
        assert step.startswith(start)
        assert "at fault" not in step
        assert "`convert start` opens a session with the same draft" in step


def test_the_next_step_without_a_device_is_to_measure_on_one() -> None:
    assert "on a machine with a GPU" in next_step_of(RIGHT, Path("f_triton.py"), at())


def test_the_next_step_of_a_stopped_conversion_is_to_look_at_the_failing_stage() -> None:
    replay = "pytorch-to-triton validate stage2.py --seed 7 --case N=3"
    right, wrong = STOPPED
    verdict = wrong.verdict.model_copy(update={"replay": replay})
    stages = [right, wrong.model_copy(update={"verdict": verdict})]
    assert "failing stage" in next_step_of(stages, Path("f_triton.py"), at())
    for kernel in (Path("f_triton.py"), None):
        assert next_step_of(stages, kernel, ()).endswith(f"Run its telling case again: {replay}")


def test_the_report_has_a_row_for_each_stage_notes_and_what_was_not_tried() -> None:
    stopped, right = markdown(conversion(STOPPED)), markdown(conversion(RIGHT))
    failed = "| 2 optimised | closed | 2 passed, 1 failed | 1 | 3 | not measured | stage2_optimised.py |"
    assert "| 1 correct | open | 2 passed | 1 | 3 | not measured | stage1_correct.py |" in stopped
    assert failed in stopped
    for text in (
        "- The trace holds only where N == 64.",
        "- N=10000000: over the limit",
        "pytorch-to-triton validate f_triton.py --seed 7",
        "Speed: not measured, no GPU.",
    ):
        assert text in right
    assert "speed-up vs eager" not in right


def test_the_report_of_a_measurement_has_every_timing_with_its_interval() -> None:
    text = markdown(conversion(RIGHT, TIMES))
    assert "| PyTorch eager | 4.0000 | 3.9000 to 4.1000 | not available | 1.00 |" in text
    assert "| stage 3 | 1.0000 | 0.9000 to 1.1000 | not available | 4.00 |" in text


def test_an_estimate_says_the_bytes_the_launches_and_how_far_it_is_from_the_minimum() -> None:
    moved = Traffic(launches=("a", "b", "c"), bytes_moved=786_500_000, least_bytes=786_400_000)
    text = "at N=32768000 memory traffic is 786.5 MB in 3 launches, 1.00 times the minimum."
    assert traffic_note({"N": 32_768_000}, moved, on_gpu=False) == f"Estimate (no GPU): {text}"
    assert traffic_note({"N": 32_768_000}, moved, on_gpu=True) == f"Estimate: {text}"


def test_which_sizes_the_kernels_serve_is_one_line_and_nothing_where_they_serve_all() -> None:
    assert limit_notes([], "go to PyTorch") == ()
    (note,) = limit_notes(["4 * H * W <= 16384"], "are refused")
    assert note.startswith("Kernels serve 4 * H * W <= 16384; larger sizes are refused.")
    assert note.endswith(" Declare a larger H or W to change that.")
