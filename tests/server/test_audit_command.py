"""What a script and a person get from `audit`: exit status, documents, refusals."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton_server.cli import main

BROKEN = "import triton\n\n@triton.jit\ndef kernel(n):\n    while n:\n        break\n"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    (tmp_path / "kernel.py").write_text(BROKEN, encoding="utf-8")
    return tmp_path


def test_a_folder_with_a_fault_exits_1_and_shows_place_rule_and_severity(
    kernels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(kernels)]) == 1
    printed = capfd.readouterr().out
    assert "unsupported_syntax" in printed
    assert "kernel.py:6" in printed
    assert "critical" in printed


def test_only_what_is_asked_for_counts(kernels: Path) -> None:
    for options, status in (
        ("--focus stability", 0),
        ("--rule deprecated_api", 0),
        ("--rule unsupported_syntax", 1),
    ):
        assert main(["audit", str(kernels), *options.split()]) == status


def test_a_format_without_a_file_prints_the_document_alone(
    kernels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(kernels), "--format", "sarif"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert document["version"] == "2.1.0"
    (result, *_) = document["runs"][0]["results"]
    assert result["ruleId"] == "unsupported_syntax"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 6


def test_a_file_s_ending_sets_the_format_that_is_written(
    kernels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, start in (("a.md", "# "), ("a.html", "<!doctype html>"), ("a.json", "{"), ("a.sarif", "{")):
        document = kernels / "reports" / name
        assert main(["audit", str(kernels), "--into", str(document)]) == 1
        assert str(document) in capfd.readouterr().out
        assert document.read_text(encoding="utf-8").lower().startswith(start)


def test_somebody_else_s_document_is_replaced_only_by_force(
    kernels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine, document = kernels / "mine.md", kernels / "audit.md"
    mine.write_text("mine", encoding="utf-8")
    document.symlink_to(mine)
    assert main(["audit", str(kernels), "--into", str(document)]) == 2
    assert "is a symbolic link to" in capfd.readouterr().err
    for _ in range(2):
        assert main(["audit", str(kernels), "--into", str(document), "--force"]) == 1
    assert main(["audit", str(kernels), "--into", str(document)]) == 1
    assert mine.read_text(encoding="utf-8") == "mine"
    assert "unsupported_syntax" in document.read_text(encoding="utf-8")


def test_a_meaningless_call_exits_2_and_says_how_to_correct_it(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(kernels)
    for arguments, problem in (
        ("absent.py", "absent.py does not exist"),
        (". --rule unsuported_syntax", "Did you mean unsupported_syntax"),
        (". --into report.txt", "does not say which format"),
        (". --update-baseline", "--baseline"),
        (". --baseline absent.json", "--update-baseline"),
    ):
        assert main(["audit", *arguments.split()]) == 2
        printed = capfd.readouterr()
        assert problem in printed.err
        assert "Traceback" not in printed.err


def test_only_the_worst_findings_are_shown_if_there_are_too_many(
    kernels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (kernels / "another.py").write_text(BROKEN, encoding="utf-8")
    assert main(["audit", str(kernels), "--most", "1", "--json"]) == 1
    report = json.loads(capfd.readouterr().out)
    assert [finding["rule"] for finding in report["findings"]] == ["unsupported_syntax"]
    assert sum(sum(one["counts"].values()) for one in report["categories"]) == 2
    assert any("left out" in note for note in report["notes"])
