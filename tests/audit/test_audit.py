"""Which files are audited, what the report says, and how bad requests are refused."""

from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.errors import BadInput, TargetNotFound
from pytorch_to_triton.schema.finding import AuditReport

from .conftest import Auditing, Steps

pytestmark = pytest.mark.anyio

CLEAN = "import triton\n\n@triton.jit\ndef kernel(x_ptr):\n    pass\n"
BROKEN = "import triton\n\n@triton.jit\ndef kernel(n):\n    while n:\n        break\n"
SLOW = """import torch
import triton

@triton.jit
def kernel(x):
    pass

def run(x):
    kernel[(1,)](x)
    torch.cuda.synchronize()
    return x
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with Triton files, others, and some in folders that are skipped."""
    files = {
        "clean.py": CLEAN,
        "deep/er/broken.py": BROKEN,
        "deep/slow.py": SLOW,
        "plain.py": "def triton(): ...\n",
        "notes.txt": BROKEN,
        ".hidden/broken.py": BROKEN,
        "env/pyvenv.cfg": "",
        "env/lib/broken.py": BROKEN,
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def names(report: AuditReport, folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in report.files]


async def test_a_folder_is_searched_for_files_that_import_triton(read: Auditing, tree: Path) -> None:
    steps = Steps()
    report = await read(tree, listener=steps)
    assert sorted(names(report, tree)) == ["clean.py", "deep/er/broken.py", "deep/slow.py"]
    assert report.kernels == 3
    assert "(1 critical, 1 medium, " in report.summary
    assert " in 3 Triton functions in 3 files." in report.summary
    assert steps.seen == [(done, 4) for done in range(4)]


async def test_findings_come_by_severity_and_the_next_step_is_the_worst(read: Auditing, tree: Path) -> None:
    report = await read(tree)
    assert [finding.severity for finding in report.findings] == ["critical", "medium"]
    worst = report.findings[0]
    assert (worst.file, worst.line, worst.column) == (tree / "deep/er/broken.py", 6, 9)
    assert report.next_step.startswith("Fix ")
    assert "broken.py:6 first: " in report.next_step


async def test_a_named_file_is_audited_even_where_it_has_no_kernels(read: Auditing, tree: Path) -> None:
    report = await read(tree / "plain.py")
    assert (report.verdict, report.kernels) == ("clean", 0)
    assert names(report, tree) == ["plain.py"]
    assert "@triton.jit" in report.next_step


@pytest.mark.parametrize(
    ("fail_on", "verdict"),
    [("info", "faulty"), ("medium", "faulty"), ("high", "not run"), ("critical", "not run")],
)
async def test_findings_below_fail_on_are_listed_and_do_not_make_it_faulty(
    read: Auditing, tree: Path, fail_on: Any, verdict: str
) -> None:
    report = await read(tree / "deep/slow.py", fail_on=fail_on)
    assert [finding.rule for finding in report.findings] == ["host_sync_in_run"]
    assert report.verdict == verdict


async def test_focus_keeps_the_rules_of_one_category(read: Auditing, tree: Path) -> None:
    report = await read(tree, focus="performance")
    assert [finding.category for finding in report.findings] == ["performance"]
    assert (await read(tree, focus="memory access")).findings == ()


async def test_a_named_file_that_does_not_parse_is_refused_with_the_place(
    read: Auditing, tmp_path: Path
) -> None:
    file = tmp_path / "half.py"
    file.write_text("import triton\ndef kernel(:\n", encoding="utf-8")
    with pytest.raises(BadInput) as refusal:
        await read(file)
    assert refusal.value.message.startswith(f"{file}:2:12: ")
    assert "syntax" in refusal.value.hint


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"# coding: nonsense\n", b"x = '\xff'\n"])
async def test_a_named_file_that_is_not_python_text_is_refused(
    read: Auditing, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "kernel.py"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"kernel\.py"):
        await read(file)


async def test_a_file_in_a_folder_that_does_not_parse_is_listed_and_the_rest_is_audited(
    read: Auditing, tree: Path
) -> None:
    (tree / "half.py").write_text("import triton\ndef kernel(:\n", encoding="utf-8")
    report = await read(tree)
    (unread,) = report.unread
    assert unread.file == tree / "half.py"
    assert "half.py:2:12" in unread.why
    assert len(report.findings) == 2
    assert "1 file could not be read." in report.summary


async def test_a_path_that_does_not_exist_is_refused(read: Auditing, tmp_path: Path) -> None:
    with pytest.raises(TargetNotFound, match=r"nowhere\.py does not exist") as refusal:
        await read(tmp_path / "nowhere.py")
    assert "folders" in refusal.value.hint


async def test_invalid_escapes_in_the_audited_code_raise_no_warning(read: Auditing, tmp_path: Path) -> None:
    file = tmp_path / "escapes.py"
    file.write_text(CLEAN + "pattern = '\\d'\n", encoding="utf-8")
    assert (await read(file)).verdict == "not run"


async def test_what_was_only_read_is_not_called_clean_and_the_next_step_is_to_run_it(
    read: Auditing, tree: Path
) -> None:
    report = await read(tree / "clean.py")
    assert (report.verdict, report.not_run) == ("not run", (tree / "clean.py",))
    assert "Nothing was compiled or run: the code may still be wrong." in report.summary
    assert report.next_step.startswith("Run it: ")
    beside = ":FUNCTION --reference FILE.py:FUNCTION"
    assert report.next_step.endswith(f"pytorch-to-triton validate {tree / 'clean.py'}{beside}")
    kernel_file = tree / "clean.py"
    both = "\ndef reference(x):\n    return x\n\ndef run(x):\n    kernel[(1,)](x)\n    return x\n"
    kernel_file.write_text(CLEAN + both, encoding="utf-8")
    assert (await read(kernel_file)).next_step.endswith(f"pytorch-to-triton validate {kernel_file}")
    assert "clean" not in {category.status for category in report.categories}


@pytest.mark.parametrize("form", ["markdown", "html"])
async def test_the_head_of_a_page_says_what_was_not_run(read: Auditing, tree: Path, form: Any) -> None:
    report = await read(tree / "clean.py", format=form)
    head = report.document.partition("Summary")[0]
    assert "Nothing was compiled or run: the code may still be wrong." in head
    assert "validate" in head
    assert "no findings of severity medium or worse; 1 file not run" in head


async def test_findings_left_out_of_the_result_still_count(read: Auditing, tree: Path) -> None:
    report = await read(tree / "deep/slow.py", severity="critical")
    assert (report.findings, report.verdict) == ((), "faulty")


async def test_disabled_rules_and_suppressed_findings_are_not_listed(read: Auditing, tree: Path) -> None:
    settings = '[tool.pytorch-to-triton.audit]\ndisable = ["unsupported_syntax"]\n'
    (tree / "pyproject.toml").write_text(settings, encoding="utf-8")
    slow = tree / "deep/slow.py"
    slow.write_text(
        SLOW.replace("synchronize()", "synchronize()  # audit: ignore[host_sync_in_run] a test"), "utf-8"
    )
    report = await read(tree)
    assert report.findings == ()
    assert [(one.finding.rule, one.reason) for one in report.suppressed] == [("host_sync_in_run", "a test")]


async def test_a_file_that_is_named_twice_or_by_two_ways_is_audited_once(read: Auditing, tree: Path) -> None:
    report = await read(tree / "deep/slow.py", tree / "deep", tree)
    assert (len(report.files), len(report.findings)) == (3, 2)
    (tree / "link.py").symlink_to(tree / "deep/slow.py")
    report = await read(tree / "link.py", tree / "deep" / ".." / "deep" / "slow.py")
    assert names(report, tree) == ["deep/slow.py"]


async def test_the_report_names_what_was_requested_and_cannot_be_run(read: Auditing, tree: Path) -> None:
    report = await read(tree / "clean.py", evidence="measured")
    (examination,) = report.examined
    assert examination.summary.startswith("Not run: it declares no INPUTS")


@pytest.mark.parametrize(
    ("request_fields", "message"),
    [
        ({"archs": ("sm_12345",)}, "sm_12345"),
        (
            {"focus": "numerical stability", "rules": ("magic_block_size",)},
            "No enabled rule is about numerical stability",
        ),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    read: Auditing, tree: Path, request_fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        await read(tree, **request_fields)


async def test_a_folder_without_triton_code_is_refused(read: Auditing, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(BadInput, match="imports triton"):
        await read(tmp_path)
