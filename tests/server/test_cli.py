"""What a script and a person get from the commands: exit status, stdout, stderr."""

import dataclasses
import json
import re
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from pytorch_to_triton_server.catalogue import TOOLS, Call
from pytorch_to_triton_server.cli import leave, main, perform, print_error, print_json

KERNEL_FILE = "double.py"
"""What fixture `right_kernel` writes."""


class Mistake(NamedTuple):
    """Arguments of `validate`, and what stderr says to them."""

    arguments: tuple[str, ...]
    problem: str
    fix: str


MISTAKES = {
    "missing file": Mistake(("absent.py",), "absent.py does not exist.", "Check the path."),
    "no such name": Mistake((f"{KERNEL_FILE}:trouble",), "no `trouble`", "Name a function or an nn.Module"),
    "syntax error": Mistake(("syntax.py",), "syntax.py, line 1", "Correct the file"),
    "bad dtype": Mistake((KERNEL_FILE, "--input", "x=float31[N]"), "float31[N]", "float32"),
    "unbound dimension": Mistake((KERNEL_FILE, "--input", "x=float32[K]"), "no dimension 'K'", "--dim K="),
    "negative size": Mistake((KERNEL_FILE, "--dim", "N=-4"), "the size -4 is negative", "0 or more"),
    "wrong arity": Mistake((KERNEL_FILE, "--input", "y=float32[N]"), "not taken: y", "name by name"),
    "bad time limit": Mistake((KERNEL_FILE, "--timeout", "0"), "timeout: Input should be", "validate takes"),
    "not a name": Mistake((f"{KERNEL_FILE}:1x",), "'1x'", "path.py:name"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_bad_input_exits_2_with_one_message_and_its_mend(
    mistake: Mistake, right_kernel: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(right_kernel.parent)
    Path("syntax.py").write_text("def run(x:\n")
    status = main(["validate", *mistake.arguments, "--device", "interpreter"])
    said = capfd.readouterr()
    assert status == 2
    assert mistake.problem in said.err
    assert mistake.fix in said.err
    assert said.err.count("error: ") == 1
    assert "Traceback" not in said.err
    assert said.out == ""


@pytest.mark.parametrize("arguments", [["validate"], ["validate", "a.py", "--dims", "M=1"], ["validat"], []])
def test_a_call_that_does_not_parse_exits_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capfd.readouterr()
    assert "Usage" in said.out + said.err
    assert "Traceback" not in said.err


def test_a_right_kernel_exits_0_and_shows_its_cases(
    right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(right_kernel), "--device", "interpreter", "--dim", "N=8,40"]) == 0
    out = capfd.readouterr().out
    assert "N=8 " in out
    assert "passed" in out
    assert "cases are right" in out


def test_json_prints_only_json_and_a_wrong_kernel_exits_1(
    wrong_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(wrong_kernel), "--device", "interpreter", "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert list(told)[:3] == ["summary", "next_step", "verdict"]
    assert told["verdict"] == "failed"
    assert any(case["status"] == "failed" for case in told["cases"])


def test_what_the_machine_lacks_exits_3(right_kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["validate", str(right_kernel), "--python", str(right_kernel.parent / "no_python")])
    said = capfd.readouterr().err
    assert status == 3
    assert "cannot be started" in said
    assert "Name a Python that has torch and triton." in said


def test_convert_writes_its_results_into_the_folder_that_was_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ops.py"
    file.write_text("import torch\n\n\ndef shifted_relu(x):\n    return torch.relu(x + 1)\n")
    into = tmp_path / "results"
    arguments = ["--input", "x=float32[M, N]", "--dim", "M=3", "--dim", "N=5", "--into", str(into)]
    assert main(["convert", f"{file}:shifted_relu", *arguments, "--device", "interpreter"]) == 0
    out = capfd.readouterr().out
    assert "3 tuned" in out
    assert "not measured" in out
    assert (into / "shifted_relu_triton.py").is_file()


def test_a_folder_for_results_that_is_a_file_is_refused(
    right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(right_kernel), "--into", str(right_kernel)]) == 2
    assert "is a file" in capfd.readouterr().err


def test_a_benchmark_without_a_gpu_exits_3_and_its_advice_works(
    right_kernel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", str(right_kernel)]) == 3
    [advised] = re.findall(r"(--estimate) (\S+),", capfd.readouterr().err)
    assert main(["benchmark", str(right_kernel), *advised, "--into", str(tmp_path / "limits")]) == 0
    assert "estimated" in capfd.readouterr().out
    assert (tmp_path / "limits" / "roofline.png").is_file()


def test_a_benchmark_replaces_its_own_results_and_no_others(
    right_kernel: Path, wrong_kernel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "limits"
    estimate = ["--estimate", "H200", "--into", str(into)]
    for _ in range(2):
        assert main(["benchmark", str(right_kernel), *estimate]) == 0
    before = (into / "report.md").read_text(encoding="utf-8")
    assert main(["benchmark", str(wrong_kernel), *estimate]) == 2
    assert f"{into} holds the results of benchmark for {right_kernel}" in capfd.readouterr().err
    assert (into / "report.md").read_text(encoding="utf-8") == before
    assert main(["benchmark", str(wrong_kernel), *estimate, "--force"]) == 0
    assert str(wrong_kernel) in (into / "report.md").read_text(encoding="utf-8")


ESTIMATES = {
    "no such GPU": (("--estimate", "H2000"), "no data sheet of 'H2000'", "H200"),
    "no name": (("--estimate", ""), "no data sheet of ''", "H200"),
    "several variants": (("--estimate", "H100"), "H100 SXM or H100 PCIe", "in full"),
    "a search": (("--estimate", "H200", "--tune", "5"), "tune mean", "Leave them out"),
    "a table": (("--estimate", "H200", "--freeze", "frozen.py"), "freeze mean", "Leave them out"),
}


@pytest.mark.parametrize(("given", "problem", "fix"), ESTIMATES.values(), ids=ESTIMATES.keys())
def test_an_estimate_that_cannot_be_made_exits_2(
    given: tuple[str, ...], problem: str, fix: str, right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", str(right_kernel), *given]) == 2
    said = capfd.readouterr().err
    assert problem in said
    assert fix in said
    assert not Path("frozen.py").exists()


WORKS = {
    "another dim": ('BYTES = "2 * Q * itemsize"', "no dimension 'Q'", "over N, itemsize"),
    "a fraction": ("FLOPS = 12.5", "FLOPS is 12.5", 'BYTES = "2 * M'),
    "negative": ('BYTES = "-N"', "0 or more", "0 or more"),
}


@pytest.mark.parametrize(("line", "problem", "fix"), WORKS.values(), ids=WORKS.keys())
def test_work_that_a_file_declares_wrongly_is_refused_with_what_it_may_say(
    line: str, problem: str, fix: str, right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    right_kernel.write_text(f"{right_kernel.read_text()}\n{line}\n")
    into = right_kernel.parent / "limits"
    assert main(["benchmark", str(right_kernel), "--estimate", "H200", "--into", str(into)]) == 2
    said = capfd.readouterr().err
    assert problem in said
    assert fix in said


def test_the_version_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.strip()


def error_in(out: str) -> dict[str, str]:
    """What `--json` says in the place of a result."""
    told = json.loads(out)
    assert list(told) == ["error"]
    assert list(told["error"]) == ["kind", "message", "hint"]
    error: dict[str, str] = told["error"]
    return error


REFUSALS = {
    "missing file": (("validate", "absent.py"), 2, "target_not_found", "absent.py does not exist."),
    "bad declaration": (
        ("validate", KERNEL_FILE, "--input", "x=float31[N]"),
        2,
        "bad_declaration",
        "float31",
    ),
    "no Python": (
        ("validate", KERNEL_FILE, "--python", "/no/python"),
        3,
        "missing_requirement",
        "/no/python cannot be started",
    ),
    "not convertible": (("convert", "scan.py:f"), 4, "not_convertible", "cumsum"),
    "no such option": (("validate", KERNEL_FILE, "--dims", "N=1"), 2, "usage", "--dims"),
    "no such command": (("validat",), 2, "usage", "validat"),
    "nothing to validate": (("validate",), 2, "usage", "kernel"),
}


@pytest.mark.parametrize(("arguments", "status", "kind", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_json_tells_why_there_is_no_result(
    arguments: tuple[str, ...],
    status: int,
    kind: str,
    message: str,
    right_kernel: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(right_kernel.parent)
    Path("scan.py").write_text(
        'INPUTS = {"x": "float32[N]"}\nDIMS = {"N": [4]}\n\n\ndef f(x):\n    return x.cumsum(0)\n'
    )
    device = [] if kind in ("usage", "missing_requirement") else ["--device", "interpreter"]
    assert main([*arguments, *device, "--json"]) == status
    said = capfd.readouterr()
    error = error_in(said.out)
    assert error["kind"] == kind
    assert message in error["message"]
    assert error["hint"]
    assert "Traceback" not in said.err


def test_a_defect_is_told_as_one(capfd: pytest.CaptureFixture[str]) -> None:
    async def broken(call: Call) -> NoReturn:
        raise ZeroDivisionError("a slip")

    tool = dataclasses.replace(TOOLS[0], name="broken", function=broken)
    assert perform(tool, {}, print_json, print_error, leave) == 5
    said = capfd.readouterr()
    error = error_in(said.out)
    assert error["kind"] == "defect"
    assert "ZeroDivisionError: a slip" in error["message"]
    assert "Traceback" in said.err


@pytest.mark.parametrize("command", [[], ["convert"], ["docs", "search"]])
def test_the_help_says_what_each_exit_status_means(
    command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--help"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "4 the function cannot be converted" in said


def test_timings_list_each_process_on_stderr(capfd: pytest.CaptureFixture[str], right_kernel: Path) -> None:
    call = ["validate", str(right_kernel), "--device", "interpreter", "--case", "N=4", "--json", "--timings"]
    assert main(call) == 0
    said = capfd.readouterr()
    assert json.loads(said.out)["verdict"] == "passed"
    rows = [line.split() for line in said.err.splitlines() if "(interpreter)" in line]
    assert [row[2] for row in rows][:2] == ["imports", "describe"]
    assert {"reference", "candidate"} <= {row[2] for row in rows}
    assert all(float(seconds) >= 0 for row in rows for seconds in row[:2])
