"""A real client talks to a real server, as an assistant does."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ImageContent

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.answers import CHARACTERS

from .clients import answered, content_of, refused, text_of

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


async def test_device_shows_what_kernels_run_on(client: Client) -> None:
    machine = await answered(client, "device")
    assert list(machine)[:2] == ["summary", "next_step"]
    assert machine["torch"] in machine["summary"]
    assert machine["mode"] == ("cuda" if machine["devices"] else "interpreter")


async def test_a_right_kernel_passes_its_cases_are_named_and_progress_grows(
    client: Client, right_kernel: Path
) -> None:
    reports: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    arguments = {"kernel": str(right_kernel), "device": "interpreter"}
    result = await client.call_tool("validate", arguments, progress_callback=on_progress)
    assert reports
    assert [progress for progress, _ in reports] == sorted({progress for progress, _ in reports})
    assert all(message for _, message in reports)
    content = content_of(result)
    assert content["verdict"] == "passed"
    assert content["cases"] == []
    assert "N=40" in content["passed_cases"]
    assert json.loads(text_of(result)) == content


async def test_a_wrong_kernel_is_a_result_that_says_what_is_wrong(client: Client, wrong_kernel: Path) -> None:
    arguments: dict[str, Any] = {"kernel": str(wrong_kernel), "device": "interpreter", "seed": 7}
    content = await answered(client, "validate", **arguments)
    assert content["verdict"] == "failed"
    assert content["seed"] == 7
    first = content["cases"][0]
    assert first["mismatches"][0]["kind"] == "constant_factor"
    assert len([case for case in content["cases"] if "mismatches" in case]) <= 8
    assert all(case["why"] for case in content["cases"])


async def test_an_unknown_argument_or_tool_is_refused_with_those_there_are(client: Client) -> None:
    text = await refused(client, "validate", kernel="a.py", dims=["M=1"])
    assert "dims: no such argument" in text
    assert "reference, input, dim" in text
    assert ", ".join([*(tool.name for tool in TOOLS), "job"]) in await refused(client, "benchmrk")


REFUSED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"input": ["x=float99[N]"]}, "float99[N]\n  ^", "float32"),
    ({"kernel": "double.py:trouble"}, "no `trouble`", "Name a function or an nn.Module"),
    ({"input": ["x=float32[K]"]}, "no dimension 'K'", "Add dim K="),
    ({"dim": ["N=-4"]}, "the size -4 is negative", "0 or more"),
    ({"input": ["y=float32[N]"]}, "not taken: y", "name by name"),
)
"""Arguments of validate for `double.py`, and what the answer to them contains."""


async def test_a_refusal_reaches_the_client_with_its_hint(client: Client, right_kernel: Path) -> None:
    for arguments, problem, hint in REFUSED:
        kernel = right_kernel.parent / arguments.get("kernel", right_kernel.name)
        text = await refused(
            client, "validate", **{"device": "interpreter", **arguments, "kernel": str(kernel)}
        )
        assert problem in text
        assert hint in text


async def test_a_long_result_is_cut_to_its_worst_findings_and_a_file_has_the_whole(
    client: Client, tmp_path: Path
) -> None:
    kernels = [f"@triton.jit\ndef kernel_{n}(n):\n    while n:\n        break\n" for n in range(150)]
    (tmp_path / "many.py").write_text("import triton\n\n" + "\n".join(kernels))
    arguments = {"paths": [str(tmp_path)], "evidence": "source", "format": "sarif"}
    result = await client.call_tool("audit", arguments)
    content = content_of(result)
    assert len(text_of(result)) <= CHARACTERS["brief"]
    assert json.loads(text_of(result)) == content
    assert {finding["severity"] for finding in content["findings"]} == {"critical"}
    assert any(one.startswith("findings: ") for one in content["cut"]["left_out"])
    whole = json.loads(Path(content["cut"]["whole"]).read_text())
    assert [finding["rule"] for finding in whole["findings"]].count("unsupported_syntax") == 150
    assert json.loads(whole["document"])["version"] == "2.1.0"


async def test_the_advice_for_a_benchmark_without_a_gpu_works(client: Client, tmp_path: Path) -> None:
    kernel = ROOT / "reference_kernels" / "vector_add.py"
    [advised] = re.findall(r"estimate (\S+),", await refused(client, "benchmark", kernel=str(kernel)))
    arguments = {"kernel": str(kernel), "estimate": advised, "into": str(tmp_path)}
    result = await client.call_tool("benchmark", arguments)
    chart = result.content[-1]
    assert isinstance(chart, ImageContent)
    assert base64.b64decode(chart.data) == (tmp_path / "roofline.png").read_bytes()
    assert content_of(result)["verdict"] == "estimated"


async def test_a_benchmark_replaces_its_own_results_and_no_others(
    client: Client, right_kernel: Path, wrong_kernel: Path, tmp_path: Path
) -> None:
    report = tmp_path / "limits" / "report.md"
    options: dict[str, Any] = {"estimate": "H200", "into": str(report.parent)}
    for _ in range(2):
        assert await answered(client, "benchmark", kernel=str(right_kernel), **options)
    before = report.read_text(encoding="utf-8")
    text = await refused(client, "benchmark", kernel=str(wrong_kernel), **options)
    assert f"{report.parent} holds the results of benchmark for {right_kernel}" in text
    assert report.read_text(encoding="utf-8") == before
    assert await answered(client, "benchmark", kernel=str(wrong_kernel), **options, force=True)
    assert str(wrong_kernel) in report.read_text(encoding="utf-8")


WORKS = (
    ('BYTES = "2 * Q * itemsize"', "no dimension 'Q'", "over N, itemsize"),
    ("FLOPS = 12.5", "FLOPS is 12.5", 'BYTES = "2 * M'),
    ('BYTES = "-N"', "0 or more", "0 or more"),
)


async def test_work_that_a_file_declares_wrongly_is_refused_with_what_it_may_declare(
    client: Client, right_kernel: Path, tmp_path: Path
) -> None:
    source = right_kernel.read_text()
    for number, (line, problem, hint) in enumerate(WORKS):
        kernel = tmp_path / f"kernel_{number}.py"
        kernel.write_text(f"{source}\n{line}\n")
        arguments = {"kernel": str(kernel), "estimate": "H200", "into": str(tmp_path / "limits")}
        text = await refused(client, "benchmark", **arguments)
        assert problem in text
        assert hint in text
