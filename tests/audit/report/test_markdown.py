"""The Markdown report has every finding with its evidence, and source text cannot break it."""

from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytorch_to_triton.audit.report.markdown import code, fence_code, markdown, text
from pytorch_to_triton.audit.report.wording import CATEGORIES
from pytorch_to_triton.schema.finding import AuditReport

from .sample import FINDINGS, HOSTILE, SAMPLE

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens_of(report: str) -> list[Token]:
    """All tokens, those within lines too."""
    return [one for token in PARSER.parse(report) for one in (token, *(token.children or ()))]


def section(report: str, heading: str) -> str:
    return report.split(f"\n## {heading}\n")[1].split("\n## ")[0].strip()


def headings(report: str) -> list[str]:
    tokens = PARSER.parse(report)
    return [after.content for one, after in pairwise(tokens) if one.type == "heading_open"]


def test_findings_stand_by_category_then_severity() -> None:
    found = [line for line in headings(markdown(SAMPLE)) if " at " in line or line.lower() in CATEGORIES]
    assert found == [
        "Correctness",
        "`block_not_power_of_two` at softmax.py:10 in `softmax_kernel`",
        "`access_without_mask` at softmax.py:11 in `softmax_kernel`",
        "Performance",
        "`host_sync_in_run` at softmax.py:52 in `run`",
        "`autotune_without_reset` at softmax.py:6",
        "Best practices",
        "`deprecated_api` at row sums.py:3",
    ]


def test_a_finding_says_how_bad_it_is_and_what_it_rests_on() -> None:
    found = section(markdown(SAMPLE), "Findings")
    assert "**critical**, evidence: source\n" in found
    assert "**medium**, evidence: source, in the baseline\n" in found
    assert "**low**, evidence: source, suspected\n" in found


def test_code_stands_as_it_is() -> None:
    fences = [token.content for token in tokens_of(markdown(SAMPLE)) if token.type == "fence"]
    assert "columns = tl.arange(0, 1024)\n" in fences
    assert f"{FINDINGS[1].excerpt}\n".replace("\u202e", "\\u202e") in fences


def test_source_text_is_text() -> None:
    tokens = tokens_of(markdown(SAMPLE))
    assert [token.content for token in tokens if token.type in ("html_inline", "html_block", "image")] == []
    bold = [after.content for one, after in pairwise(tokens) if one.type == "strong_open"]
    assert set(bold) <= {"critical", "high", "medium", "low", "info", "faulty"}


@pytest.mark.parametrize(
    "prose",
    [
        HOSTILE,
        "- no list",
        "1. no list",
        "# no heading",
        "> no quotation",
        "x_ptr * y_ptr * _private_ __init__ ~~gone~~",
        "[no](link) ![no](image) <https://no.link> &amp; \\*",
        "one ` and ``two`` and ```three```",
    ],
)
def test_prose_is_rendered_as_it_was_written(prose: str) -> None:
    paragraph, line, end = PARSER.parse(text(prose))
    assert (paragraph.type, end.type) == ("paragraph_open", "paragraph_close")
    plain = "".join(token.content for token in line.children or () if token.type in ("text", "text_special"))
    spans = {token.type for token in line.children or ()} - {"text", "text_special"}
    if "code_inline" not in spans:
        assert plain == prose
    assert spans <= {"code_inline"}


def test_a_mention_calls_nobody() -> None:
    assert text("@triton.jit is a decorator.") == "`@triton.jit` is a decorator."


@pytest.mark.parametrize("source", ["x", "`x`", "``", "a ``` b", "x`"])
def test_a_span_holds_any_backticks(source: str) -> None:
    (span,) = [token for token in tokens_of(code(source)) if token.type == "code_inline"]
    assert span.content == source


def test_a_fence_holds_any_fence() -> None:
    (fence,) = PARSER.parse("\n".join(fence_code("a\n````\nb", "python")))
    assert fence.content == "a\n````\nb\n"


def test_the_summary_counts_by_category_and_severity_and_the_known_ones() -> None:
    summary = section(markdown(SAMPLE), "Summary")
    assert "| correctness | faulty | 1 | 1 | 0 | 0 | 0 |" in summary
    assert "1 of these 5 findings is in the baseline." in summary


def test_recommendations_keep_their_order() -> None:
    assert section(markdown(SAMPLE), "Recommendations").splitlines()[::2] == [
        "1. **critical** `block_not_power_of_two`: A block has a size that is no power of two.",
        "2. **medium** `host_sync_in_run`: A function that launches a kernel makes the CPU wait for the GPU.",
    ]


def test_a_recommendation_names_some_places_and_counts_the_rest() -> None:
    many = SAMPLE.recommendations[0].model_copy(update={"places": tuple(f"k.py:{n}" for n in range(12))})
    found = section(markdown(SAMPLE.model_copy(update={"recommendations": (many,)})), "Recommendations")
    assert found.endswith("k.py:6, k.py:7 and 4 more)")


def test_figures_and_timings_have_tables() -> None:
    report = markdown(SAMPLE)
    assert (
        "| softmax_kernel | sm_90, BLOCK=1024 num_warps=4 | 40 | 0 | 16 | 75 % | 128 bits | none |" in report
    )
    assert "| M=8192 N=4096 | bfloat16 | 0.0367 | 0.0363 to 0.0371 | 0.1096 | 2.99 |" in report


def test_suppressed_findings_and_unread_files_have_their_reasons() -> None:
    report = markdown(SAMPLE)
    assert "| softmax.py:52 | deprecated_api | medium | needed &#124; until 3.8 |" in report
    assert section(report, "Files not read") == "- old.py: old.py is not Python 3: line 2 says print x | y."


def test_what_was_not_measured_is_listed() -> None:
    bare = SAMPLE.model_copy(update={"examined": (), "compiled": (), "timings": ()})
    assert [line.split(":")[0] for line in section(markdown(bare), "What was not measured").splitlines()] == [
        "- No kernel was compiled",
        "- Nothing was run",
        "- No times were measured.",
        "- 1 suspicion neither confirmed nor cleared by a run.",
    ]


def test_each_command_is_there() -> None:
    assert section(markdown(SAMPLE), "Reproduce").splitlines()[1:-1] == [
        "pytorch-to-triton audit kernels",
        "pytorch-to-triton benchmark softmax.py --seed 7",
        "pytorch-to-triton validate softmax.py --seed 7",
    ]


def test_a_clean_report_has_no_empty_sections() -> None:
    nothing = {
        "findings": (),
        "recommendations": (),
        "suppressed": (),
        "unread": (),
        "notes": (),
        "timings": (),
    }
    clean: AuditReport = SAMPLE.model_copy(update={**nothing, "verdict": "clean"})
    report = markdown(clean)
    assert "- Verdict: **clean** (no findings of severity medium or worse)." in report
    assert not {"Findings", "Recommendations", "Rules", "Suppressed"} & set(headings(report))
