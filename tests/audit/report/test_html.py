"""The page has every finding beside its line, is sound HTML, and takes source text for text."""

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pytorch_to_triton.audit.report.html import MOST, Stretch, html, stretches
from pytorch_to_triton.audit.report.wording import CATEGORIES
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport

from .sample import FINDINGS, HOSTILE, ROOT, SAMPLE, SOFTMAX, SOURCE, TIMING

VOID = {"meta", "img", "input", "br"}
PAGE = html(SAMPLE, {SOFTMAX: SOURCE})
STYLE = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)[0]


class Reader(HTMLParser):
    """What a page consists of; `open` has the elements that were not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]

    @property
    def text(self) -> str:
        return "".join(self.texts)


READ = Reader(PAGE)


def test_elements_are_balanced() -> None:
    assert READ.open == []


def test_names_are_unique_and_links_lead_somewhere() -> None:
    names = READ.values("id")
    assert len(names) == len(set(names))
    inside = [link[1:] for link in READ.values("href") if link.startswith("#")]
    assert set(inside) | set(READ.values("aria-labelledby")) <= set(names)
    assert len(inside) > len(FINDINGS)


def test_nothing_is_fetched_and_nothing_runs() -> None:
    assert not READ.tags & {"script", "link", "iframe", "object", "embed", "form", "base"}
    assert [name for name, _ in READ.attributes if name.startswith("on") or name == "style"] == []
    assert [source for source in READ.values("src") if not source.startswith("data:")] == []
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    (policy,) = [value for value in READ.values("content") if "default-src" in value]
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")


def test_a_finding_is_shown_in_full() -> None:
    fields = ("message", "suggestion", "proof", "fix", "rule")
    for text in (getattr(finding, field) for finding in FINDINGS for field in fields):
        assert text.replace("`", "").replace("\u202e", "\\u202e") in READ.text.replace("`", "")


def test_a_finding_stands_below_its_line() -> None:
    for finding in FINDINGS[:4]:
        before = READ.text.split(f"{finding.suggestion}\n")[0]
        line = f"{finding.line}{SOURCE.splitlines()[finding.line - 1]}".replace("\u202e", "\\u202e")
        assert line in before


def test_hostile_text_is_text() -> None:
    hostile = HOSTILE.replace("\u202e", "\\u202e")
    assert hostile in READ.text
    assert "onerror" not in {name for name, _ in READ.attributes}
    assert "\u202e" not in PAGE


def test_a_file_without_source_shows_the_excerpts() -> None:
    assert "3tl.libdevice.exp(x)\n" in READ.text
    bare = Reader(html(SAMPLE, {}))
    assert "10columns = tl.arange(0, 1000)\n" in bare.text
    assert bare.open == []


def test_long_stretches_without_findings_are_folded() -> None:
    assert list(stretches(60, (10, 11, 50))) == [
        Stretch(1, 10, folded=False),
        Stretch(11, 11, folded=False),
        Stretch(12, 16, folded=False),
        Stretch(17, 44, folded=True),
        Stretch(45, 50, folded=False),
        Stretch(51, 60, folded=False),
    ]


def test_every_line_is_there_once() -> None:
    numbers = re.findall(r'class="number">(\d+)<', PAGE.split('<h3>softmax.py</h3>\n<div class="source">')[1])
    assert [int(number) for number in numbers] == list(range(1, len(SOURCE.splitlines()) + 1))


def test_a_long_list_of_findings_is_folded_but_whole() -> None:
    many = SAMPLE.model_copy(update={"findings": FINDINGS[:1] * (MOST + 5)})
    page = html(many, {SOFTMAX: SOURCE})
    assert "<summary>5 more findings</summary>" in page
    assert page.count("<li data-severity=") == page.count("<article ") == MOST + 5
    assert Reader(page).open == []


def test_a_filter_has_a_box_for_what_occurs() -> None:
    boxes = {name.removeprefix("show-") for name in READ.values("id") if name.startswith("show-")}
    assert boxes == {*SEVERITIES, "correctness", "performance", "best-practices"}


def test_a_box_hides_what_has_its_name() -> None:
    for word in (*SEVERITIES, *CATEGORIES):
        kind = "severity" if word in SEVERITIES else "category"
        name = word.replace(" ", "-")
        assert f'body:has(#show-{name}:not(:checked)) [data-{kind}="{word}"]' in STYLE


def test_a_picture_is_part_of_the_page_and_described(tmp_path: Path) -> None:
    picture = tmp_path / "roofline.png"
    picture.write_bytes(b"png")
    timing = TIMING.model_copy(update={"pictures": (picture,)})
    read = Reader(html(SAMPLE.model_copy(update={"timings": (timing,)}), {}))
    assert read.values("src") == ["data:image/png;base64,cG5n"]
    (description,) = read.values("alt")
    assert description.startswith("Roofline: the rate that softmax.py reaches")
    assert "The picture speedup.png is missing." in READ.text


def test_a_clean_report_is_a_sound_page() -> None:
    nothing = {"findings": (), "recommendations": (), "suppressed": (), "unread": (), "timings": ()}
    clean: AuditReport = SAMPLE.model_copy(update={**nothing, "verdict": "clean"})
    read = Reader(html(clean, {}))
    assert read.open == []
    assert "Source" not in read.texts


def test_a_name_of_a_file_is_text_too() -> None:
    odd = ROOT / '<i>" onclick="x\u202e.py'
    finding = FINDINGS[0].model_copy(update={"file": odd})
    read = Reader(html(SAMPLE.model_copy(update={"findings": (finding,), "files": (odd,)}), {odd: SOURCE}))
    assert "i" not in read.tags
    assert "onclick" not in {name for name, _ in read.attributes}
    assert 'Audit of <i>" onclick="x\\u202e.py' in read.texts


def test_only_who_asks_for_a_page_waits_for_jinja() -> None:
    code = "import sys, pytorch_to_triton.audit.report.render; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def palette(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#\w{6});", css))


def luminance(color: str) -> float:
    """Relative, as WCAG 2 defines it."""
    shares = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


LIGHT, DARK = (palette(part) for part in STYLE.split("@media (prefers-color-scheme: dark)"))


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_contrasts_suffice(colors: dict[str, str]) -> None:
    pairs = [(ink, ground) for ink in ("ink", "soft") for ground in ("page", "panel", "marked")]
    pairs += [("accent", "page"), *(("on-badge", kind) for kind in (*SEVERITIES, "clean"))]
    for one, other in pairs:
        dark, light = sorted((luminance(colors[one]), luminance(colors[other])))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (one, other)
