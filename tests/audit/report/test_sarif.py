"""SARIF has every finding where code hosts look for it, and follows the standard."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytorch_to_triton.audit.report.sarif import plain, sarif
from pytorch_to_triton.schema.finding import AuditReport

from .sample import FINDINGS, ROOT, SAMPLE
from .sarif_schema import SARIF

CLEAN = SAMPLE.model_copy(update={"findings": (), "suppressed": (), "unread": (), "notes": ()})


def run_of(report: AuditReport, root: Path = ROOT) -> Any:
    (run,) = json.loads(sarif(report, root))["runs"]
    return run


@pytest.mark.parametrize("report", [SAMPLE, CLEAN], ids=["faulty", "clean"])
def test_it_follows_the_standard(report: AuditReport) -> None:
    errors = Draft202012Validator(SARIF).iter_errors(json.loads(sarif(report, ROOT)))
    assert [(list(error.absolute_path), error.message) for error in errors] == []


def test_a_finding_has_its_rule_place_level_and_fingerprint() -> None:
    run = run_of(SAMPLE)
    result = run["results"][0]
    (location,) = result["locations"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "block_not_power_of_two"
    assert result["level"] == "error"
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "kernels/softmax.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 10, "startColumn": 5, "snippet": {"text": "columns = tl.arange(0, 1000)"}},
    }
    assert location["logicalLocations"] == [{"name": "softmax_kernel", "kind": "function"}]
    assert list(result["partialFingerprints"].values()) == ["0123456789abcdef"]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///repository/"}}


def test_severities_share_levels_but_not_ranks() -> None:
    results = run_of(SAMPLE)["results"][: len(FINDINGS)]
    assert [result["level"] for result in results] == ["error", "error", "warning", "note", "note"]
    ranks = [result["rank"] for result in results]
    assert ranks == sorted(set(ranks), reverse=True)


def test_evidence_and_proof_are_properties() -> None:
    properties = run_of(SAMPLE)["results"][1]["properties"]
    assert properties["evidence"] == "measured"
    assert properties["proof"] == FINDINGS[1].proof
    assert "fix" not in properties


def test_what_a_comment_sets_aside_is_suppressed_with_its_reason() -> None:
    *live, aside = run_of(SAMPLE)["results"]
    assert all(result["suppressions"] == [] for result in live)
    assert aside["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": "needed | until 3.8"}
    ]


def test_only_a_report_with_a_baseline_has_states() -> None:
    states = [result["baselineState"] for result in run_of(SAMPLE)["results"]]
    assert states == ["new", "new", "unchanged", "new", "new", "new"]
    fresh = SAMPLE.model_copy(update={"findings": FINDINGS[:1]})
    assert all("baselineState" not in result for result in run_of(fresh)["results"])


def test_a_file_that_was_not_read_is_a_notification() -> None:
    (invocation,) = run_of(SAMPLE)["invocations"]
    unread, note = invocation["toolExecutionNotifications"]
    assert invocation["endTimeUtc"] == "2026-11-21T22:30:00Z"
    assert unread["level"] == "warning"
    assert unread["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels/old.py"
    assert note == {"level": "note", "message": {"text": "A note with a | in it."}}


def test_a_name_is_encoded_and_a_file_outside_the_root_is_named_in_full() -> None:
    uris = [artifact["location"]["uri"] for artifact in run_of(SAMPLE)["artifacts"]]
    assert uris == ["kernels/softmax.py", "kernels/row%20sums.py"]
    outside = run_of(SAMPLE, ROOT / "docs")["artifacts"][1]["location"]
    assert outside == {"uri": "file:///repository/kernels/row%20sums.py"}


def test_code_in_a_message_is_neither_a_link_nor_a_placeholder() -> None:
    assert plain("kernel[grid](x) takes x[0] and {0} of {n}") == (
        r"kernel\[grid](x) takes x[0] and {{0}} of {n}"
    )
