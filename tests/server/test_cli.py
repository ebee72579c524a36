"""What a script and a person get from the commands: exit status, stdout, stderr."""

import json
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from pytorch_to_triton_server import commands
from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.tool import Tool, ToolCall

pytestmark = pytest.mark.usefixtures("kept_open")
KERNEL_FILE = "double.py"
"""What fixture `right_kernel` writes."""
SCAN = 'INPUTS = {"x": "float32[N]"}\nDIMS = {"N": [4]}\n\n\ndef f(x):\n    return x.sort().values\n'


class Mistake(NamedTuple):
    """A command, and how it is refused."""

    arguments: tuple[str, ...]
    status: int
    kind: str
    problem: str
    fix: str


INTERPRETED = ("--device", "interpreter")
MISTAKES = (
    Mistake(("validate", "absent.py"), 2, "target_not_found", "absent.py does not exist.", "Check the path."),
    Mistake(
        ("validate", "syntax.py", *INTERPRETED), 2, "target_broken", "syntax.py, line 1", "Correct the file"
    ),
    Mistake(("validate", KERNEL_FILE, "--input", "x=float31[N]"), 2, "bad_declaration", "float31", "float32"),
    Mistake(
        ("validate", KERNEL_FILE, "--timeout", "0"), 2, "bad_input", "timeout: it should", "validate takes"
    ),
    Mistake(("validate", f"{KERNEL_FILE}:1x"), 2, "bad_input", "'1x'", "path.py:name"),
    Mistake(("convert", KERNEL_FILE, "--into", KERNEL_FILE), 2, "bad_input", "is a file", "Name a folder"),
    Mistake(
        ("validate", KERNEL_FILE, "--python", "/no/python"),
        3,
        "missing_requirement",
        "/no/python cannot be started",
        "Name a Python that has torch and triton.",
    ),
    Mistake(("convert", "scan.py:f", *INTERPRETED), 4, "not_convertible", "sort", ""),
    Mistake(("validate", KERNEL_FILE, "--dims", "N=1"), 2, "usage", "--dims", "--help"),
    Mistake(("validat",), 2, "usage", "validat", "--help"),
    Mistake(("validate",), 2, "usage", "kernel", "--help"),
    Mistake(("convert", "strat", "scan.py:f"), 2, "usage", "Did you mean 'start'", "--help"),
    Mistake(
        ("validate", "scan.py:f", *INTERPRETED),
        2,
        "target_not_found",
        "`reference`",
        "--reference path.py:name",
    ),
)


def error_in(out: str) -> dict[str, str]:
    """The error that `--json` prints in place of a result."""
    printed = json.loads(out)
    assert list(printed) == ["error"]
    assert list(printed["error"]) == ["kind", "message", "hint"]
    error: dict[str, str] = printed["error"]
    return error


def test_a_refused_call_exits_with_its_status_one_message_and_a_hint(
    right_kernel: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(right_kernel.parent)
    Path("syntax.py").write_text("def run(x:\n")
    Path("scan.py").write_text(SCAN)
    for mistake in MISTAKES:
        assert main([*mistake.arguments, "--json"]) == mistake.status, mistake
        printed = capfd.readouterr()
        error = error_in(printed.out)
        assert error["kind"] == mistake.kind, mistake
        assert mistake.problem in error["message"], mistake
        assert mistake.fix in error["hint"], mistake
        assert error["hint"]
        assert mistake.problem in printed.err, mistake
        assert printed.err.count("error: ") == 1, mistake
        assert "Traceback" not in printed.err, mistake


def test_a_person_gets_a_mistake_on_stderr_alone_and_the_usage(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["validate", "absent.py"],
        ["validate"],
        ["validate", "a.py", "--dims", "1"],
        ["validat"],
    ):
        assert main(arguments) == 2
        printed = capfd.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("error: ")
        assert ("Usage" in printed.err) == ("absent.py" not in arguments)
        assert "Traceback" not in printed.err
    assert main([]) == 2
    assert "Usage" in capfd.readouterr().out


def test_every_mistake_in_a_call_is_one_json_object(capfd: pytest.CaptureFixture[str]) -> None:
    for words in ("", "docs", "nope", "doctor --bogus", "completion", "install", "serve --toolsets nope"):
        for arguments in ([*words.split(), "--json"], ["--json", *words.split()]):
            assert main(arguments) == 2, arguments
            error = error_in(capfd.readouterr().out)
            assert error["kind"] in ("usage", "bad_input")
            assert error["message"]
            assert error["hint"]
            assert "\n" not in error["message"]


def test_a_right_kernel_exits_0_and_shows_its_groups_and_with_all_its_cases(
    right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["validate", str(right_kernel), "--device", "interpreter", "--dim", "N=8,40"]
    assert main(command) == 0
    out = capfd.readouterr().out
    assert "cases are right" in out.partition("\n")[0]
    assert "declared" in out
    assert "N=8 " not in out
    assert main([*command, "--all"]) == 0
    assert "N=8 " in capfd.readouterr().out


def test_json_prints_only_json_and_timings_go_to_stderr(
    wrong_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--timings", "validate", str(wrong_kernel), *INTERPRETED, "--json"]) == 1
    printed = capfd.readouterr()
    result = json.loads(printed.out)
    assert list(result)[:3] == ["summary", "next_step", "verdict"]
    assert result["verdict"] == "failed"
    assert any(case["status"] == "failed" for case in result["cases"])
    rows = [line.split() for line in printed.err.splitlines() if "(interpreter)" in line]
    assert {"reference", "candidate"} <= {row[2] for row in rows}
    assert all(float(seconds) >= 0 for row in rows for seconds in row[:2])


def test_convert_takes_the_only_function_of_a_file_and_writes_into_the_folder_that_was_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ops.py"
    file.write_text("import torch\n\n\ndef shifted_relu(x, by=1):\n    return torch.relu(x + by)\n")
    into = tmp_path / "results"
    arguments = ["--input", "x=float32[N]", "--dim", "N=5", "--into", str(into)]
    assert main(["convert", str(file), *arguments, "--device", "interpreter"]) == 0
    out = capfd.readouterr().out
    assert "3 tuned" in out
    assert "by is 1 in the kernel, its default" in " ".join(out.split())
    assert "not measured" in out
    assert (into / "shifted_relu_triton.py").is_file()


ESTIMATES = (
    (("--estimate", "H2000"), "no data sheet for 'H2000'", "H200"),
    (("--estimate", ""), "no data sheet for ''", "H200"),
    (("--estimate", "H100"), "H100 SXM or H100 PCIe", "in full"),
    (("--estimate", "H200", "--tune", "5"), "tune cannot be combined with estimate", "Drop them"),
    (("--estimate", "H200", "--freeze", "frozen.py"), "freeze cannot be combined", "Drop them"),
)


def test_an_estimate_that_cannot_be_made_exits_2(
    right_kernel: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(right_kernel.parent)
    for options, problem, fix in ESTIMATES:
        assert main(["benchmark", str(right_kernel), *options]) == 2, options
        printed = capfd.readouterr().err
        assert problem in printed
        assert fix in printed
        assert not Path("frozen.py").exists()


def test_an_estimate_for_what_cannot_be_traced_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("square.py").write_text(
        'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [4], "N": [4]}\nREQUIRES = ["M == N"]\n\n\n'
        "def reference(x):\n    return x + x.mT\n\n\ndef run(x):\n    return x + x.mT\n"
    )
    assert main(["benchmark", "square.py", "--estimate", "H200"]) == 2
    printed = capfd.readouterr().err
    assert "No sizes differ from dim to dim and meet M == N" in printed
    assert "BYTES and FLOPS" in printed


def test_a_function_without_a_reference_is_estimated_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text("def doubled(x):\n    return x * 2\n")
    into = tmp_path / "limits"
    arguments = ["--input", "x=float32[N]", "--dim", "N=268435456", "--into", str(into)]
    assert main(["benchmark", "ops.py:doubled", *arguments, "--estimate", "H200"]) == 0
    out = capfd.readouterr().out
    assert "at least 0.4474 ms (estimated, memory-bound)" in out
    assert f"Report: {into / 'report.md'}" in out


def test_the_version_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    version = capfd.readouterr().out.strip()
    assert version
    assert main(["--json", "--version"]) == 0
    assert json.loads(capfd.readouterr().out) == {"version": version}


def test_a_defect_is_reported_as_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(call: ToolCall) -> NoReturn:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(commands, "TOOLS", (Tool(broken, "Break"),))
    assert main(["broken", "--json"]) == 5
    printed = capfd.readouterr()
    error = error_in(printed.out)
    assert error["kind"] == "defect"
    assert "ZeroDivisionError: a slip" in error["message"]
    assert "Traceback" in printed.err


def test_docs_explain_every_rule_that_an_audit_may_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "read", "rules/access_without_mask"]) == 0
    shown = capfd.readouterr().out
    assert "Severity: " in shown
    assert "Fix: " in shown
    assert "@triton.jit" in shown
    assert main(["docs", "read", "rules/access_without_masks"]) == 2
    assert "rules/access_without_mask" in capfd.readouterr().err
