"""An assistant gets as much of a long answer as it can read, the worst first, and where the rest is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from pytorch_to_triton import places
from pytorch_to_triton_server.over_mcp import answers
from pytorch_to_triton_server.over_mcp.answers import compact
from pytorch_to_triton_server.over_mcp.fit import fit_text, fit_value, plain, size

MOST = 20_000

ROOM = 3000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=9), inner, max_size=9),
    max_leaves=60,
)
RESULTS = st.dictionaries(st.sampled_from("abcdefgh"), VALUES, max_size=8)


class Result(BaseModel):
    model_config = ConfigDict(extra="allow")

    summary: str = "Many findings."
    next_step: str = "Start with the first."
    verdict: str = "faulty"


def finding(number: int) -> dict[str, Any]:
    return {"rule": f"rule_{number}", "severity": "high", "line": number, "message": "x" * 900}


@settings(max_examples=25)
@given(RESULTS)
def test_any_result_fits_with_all_its_fields(result: dict[str, Any]) -> None:
    before = plain(result)
    cut = fit_value(before, ROOM)
    assert size(cut.value) <= ROOM
    assert list(cut.value) == list(before)
    assert bool(cut.left_out) == (cut.value != before)
    assert json.loads(json.dumps(cut.value, allow_nan=False)) == cut.value


@given(st.text())
def test_any_text_can_be_sent(text: str) -> None:
    assert fit_text(text + "\ud800", 100).encode()


def test_a_list_keeps_its_first_items_and_a_long_text_its_beginning_and_its_end() -> None:
    findings = [finding(number) for number in range(200)]
    cut = fit_value({"findings": findings, "files": ["/a/b.py"] * 5000}, 18_000)
    kept = cut.value["findings"]
    assert kept == findings[: len(kept)]
    assert len(kept) >= 9
    assert cut.left_out[0] == f"findings: {200 - len(kept)} of 200 items"
    assert cut.left_out[1].startswith("files: ")
    cut = fit_value({"log": "started\n" + "x" * 50_000 + "\nValueError: no"}, 1000)
    assert cut.value["log"].startswith("started\n")
    assert cut.value["log"].endswith("\nValueError: no")
    assert " characters left out …]" in cut.value["log"]
    stages = [{"stage": number, "verdict": "passed", "report": "x" * 20_000} for number in (1, 2, 3)]
    cut = fit_value({"stages": stages}, 6000)
    assert [(one["stage"], one["verdict"]) for one in cut.value["stages"]] == [
        (1, "passed"),
        (2, "passed"),
        (3, "passed"),
    ]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))
    return places.results()


def test_a_short_result_is_whole_and_no_file_is_written(results: Path) -> None:
    content = compact(Result.model_validate({"findings": [finding(1)]}), "audit", MOST)
    assert content == {"findings": [finding(1)]}
    assert not results.exists()


def test_the_whole_of_a_long_result_is_in_a_file_that_is_named(results: Path) -> None:
    findings = [finding(number) for number in range(1000)]
    result = Result.model_validate({"summary": "Bad.", "findings": findings})
    content = compact(result, "audit", MOST)
    assert size(content) <= MOST
    assert list(content)[:2] == ["summary", "cut"]
    assert content["findings"] == findings[: len(content["findings"])]
    whole = Path(content["cut"]["whole"])
    assert whole.parent == results
    assert json.loads(whole.read_text())["findings"] == findings


def test_a_cache_that_cannot_be_written_is_noted_and_the_result_is_still_there(
    results: Path,
) -> None:
    results.parent.mkdir(exist_ok=True)
    results.write_text("a file in place of the folder")
    content = compact(Result.model_validate({"findings": [finding(n) for n in range(1000)]}), "audit", MOST)
    assert content["cut"]["whole"].startswith("not saved: ")
    assert content["findings"]


def test_only_the_latest_whole_results_are_kept_the_last_however_large(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_FILES", 3)
    files = [answers.keep_result("audit", "{}") for _ in range(5)]
    assert sorted(results.iterdir()) == files[2:]
    monkeypatch.setattr(answers, "MOST_BYTES", 10)
    answers.keep_result("audit", "{}")
    newest = answers.keep_result("audit", "x" * 100)
    assert sorted(results.iterdir()) == [newest]
