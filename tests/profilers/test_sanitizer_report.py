"""Reports of compute-sanitizer are understood in the formats of all its versions, and nothing else is."""

from pathlib import Path

import pytest

from pytorch_to_triton.profilers.sanitizer import (
    HAZARDS,
    Hazard,
    complaint,
    counted_errors,
    parse_report,
)

REPORTS = Path(__file__).parent / "sanitizer_reports"
"""As the tool writes them with `--racecheck-report analysis`; without a year, in 2025."""
OVERRUN = (REPORTS / "overrun.txt").read_text()
OLD = (REPORTS / "overrun_2022.txt").read_text()
MISALIGNED = (REPORTS / "misaligned.txt").read_text()
SHARED = (REPORTS / "shared.txt").read_text()
RACES = (REPORTS / "races.txt").read_text()


def test_repeats_are_one_hazard_in_the_words_of_the_nearest_access() -> None:
    read, write = parse_report(OVERRUN)
    assert read == Hazard(
        kind="read",
        space="global",
        kernel="scale_rows",
        file="scale.py",
        line=14,
        size_bytes=16,
        outside_bytes=1,
        detail="Access is out of bounds and is 1 bytes after the nearest allocation of size 4,000 bytes",
        count=2,
    )
    assert (write.kind, write.line, write.size_bytes, write.outside_bytes) == ("write", 15, 4, 9)


def test_the_older_format_gives_the_same_with_full_paths() -> None:
    write, atomic = parse_report(OLD)
    assert (write.kind, write.kernel, write.line) == ("write", "scale_rows", 15)
    assert write.file == "/home/someone/my kernels/scale.py"
    assert (write.size_bytes, write.outside_bytes, write.misaligned) == (2, 13_106_296, False)
    assert (atomic.kind, atomic.kernel, atomic.file, atomic.line) == ("atomic", "scale_rows", None, None)


def test_a_misaligned_access_inside_a_tensor_is_reported_as_such() -> None:
    (hazard,) = parse_report(MISALIGNED)
    assert hazard.misaligned
    assert hazard.outside_bytes is None
    assert hazard.detail == "Access is misaligned and is inside the nearest allocation of size 1,024 bytes"


def test_a_function_that_was_called_keeps_its_line_and_names_the_kernel() -> None:
    called, unknown = parse_report(SHARED)
    assert (called.space, called.kernel, called.file, called.line) == ("shared", "matmul", "tiles.py", 7)
    assert (unknown.kind, unknown.kernel, unknown.line) == ("access", "outer", 223)


def test_races_distinguish_reads_from_writes_and_errors_from_warnings() -> None:
    race, writes, possible = parse_report(RACES)
    assert (race.kind, race.count, race.line, race.space) == ("race", 1040, 27, "shared")
    assert race.kernel == "stage(float *, int)"
    assert race.detail == "write at stage.py:27 and read at stage.py:30 and read at stage.py:31"
    assert (writes.kind, writes.kernel, writes.count) == ("write race", "total", 6136)
    assert (possible.kind, possible.kernel, possible.file) == ("possible race", "stage", "/tmp/stage.py")


def test_a_place_is_read_in_each_form() -> None:
    for place, kernel, file, line in [
        ("k+0xb0 in san.py:4", "k", "san.py", 4),
        ("k+0xb0", "k", None, None),
        ("k():0x160 in san.py:4", "k()", "san.py", 4),
        ("k in san.py:4", "k", "san.py", 4),
        ("0x68 in k", "k", None, None),
        ("ns::f<(int)4>(T1 *)+0x7 in a b/f.cuh:12", "ns::f<(int)4>(T1 *)", "a b/f.cuh", 12),
        ("0x7 in /a/f.cuh:12:void ns::f<(int)4>::g(T1 *)", "void ns::f<(int)4>::g(T1 *)", "/a/f.cuh", 12),
    ]:
        (hazard,) = parse_report(
            f"========= Invalid __global__ read of size 4 bytes\n=========     at {place}\n"
        )
        assert (hazard.kernel, hazard.file, hazard.line) == (kernel, file, line)


@pytest.mark.parametrize("distance", ["1,536", "1.536", "1536"])
def test_numbers_are_read_in_the_groups_of_any_locale(distance: str) -> None:
    (hazard,) = parse_report(
        "========= Invalid __global__ read of size 4 bytes\n"
        f"=========     and is {distance} bytes before the nearest allocation at 0x10 of size 4 bytes\n"
    )
    assert hazard.outside_bytes == 1536


def test_what_a_later_version_may_report_is_kept_in_its_words() -> None:
    (hazard,) = parse_report(
        "========= COMPUTE-SANITIZER\n"
        "========= Tensor Memory column 32 being accessed is not allocated.\n"
        "=========     at matmul+0x1250 in matmul.py:99\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    assert hazard.kind == "Tensor Memory column 32 being accessed is not allocated."
    assert (hazard.kernel, hazard.line) == ("matmul", 99)


def test_what_is_no_hazard_gives_none() -> None:
    for text in [
        "",
        "Invalid __global__ read of size 4 bytes\n    at k+0xb0 in san.py:4\n",
        "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
        "=========\n========= \n=========     at k+0xb0 in san.py:4\n",
        "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
        "\x00\ufffd===== = =========x\n========= Invalid __global__\n",
    ]:
        assert parse_report(text) == ()


def test_a_report_that_breaks_off_keeps_what_it_reported() -> None:
    whole = [parse_report(OVERRUN[:length]) for length in range(len(OVERRUN))]
    counts = [sum(hazard.count for hazard in hazards) for hazards in whole]
    assert counts == sorted(counts)
    assert counts[-1] == 3


def test_only_so_many_hazards_are_reported() -> None:
    record = (
        "========= Invalid __global__ read of size 4 bytes\n=========     at k+0xb0 in san.py:{}\n=========\n"
    )
    hazards = parse_report("".join(record.format(line) for line in range(5 * HAZARDS)))
    assert [hazard.line for hazard in hazards] == list(range(HAZARDS))


def test_the_summary_counts_errors() -> None:
    for text, errors in [
        (OVERRUN, 3),
        (RACES, 2),
        ("========= ERROR SUMMARY: 0 errors\n", 0),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0),
        (
            "========= ERROR SUMMARY: 2752 errors\n"
            "========= ERROR SUMMARY: 1752 errors were not printed. Use --print-limit option to adjust the "
            "number of printed errors\n",
            2752,
        ),
        ("========= COMPUTE-SANITIZER\n", None),
        ("ERROR SUMMARY: 0 errors\n", None),
    ]:
        assert counted_errors(text) == errors


COMPLAINTS = (
    "Error: Target application terminated before first instrumented API call",
    "Error: No attachable process found. compute-sanitizer timed-out.",
    "Unable to find injection library libsanitizer-collection.so",
    "Internal Sanitizer Error: The Sanitizer encountered an error while launching k and didn't track the "
    "launch. Errors might go undetected. (Unable to allocate enough memory)",
    'Error: Device not supported. Please refer to the "Supported Devices" section.',
    "Device not supported.",
)


def test_a_tool_that_could_not_watch_says_so_and_a_job_that_failed_is_none() -> None:
    for words in COMPLAINTS:
        assert (
            complaint(f"========= COMPUTE-SANITIZER\n========= {words}\n========= ERROR SUMMARY: 0 errors\n")
            == words
        )
    assert complaint("========= Error: process didn't terminate successfully\n") == ""
