"""The page in Chromium: it fits narrow and wide screens, filters without scripts, and reaches no network."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.audit.report.html import html

from .sample import SAMPLE, SOFTMAX, SOURCE

WIDTHS = (360, 390, 1280)
SECONDS = 60
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
)
"""A browser that shows nothing, fetches nothing by itself, and does not wait in real time."""

# The page itself runs no scripts: one around it looks into the frames that show it.
WRAPPER = """<!DOCTYPE html>
<html><body>
%s
<script>
addEventListener("load", () => {
  const pages = [...document.querySelectorAll("iframe")].map(measured);
  setTimeout(() => {
    const result = document.createElement("pre");
    result.id = "result";
    result.textContent = JSON.stringify(pages);
    document.body.append(result);
  }, 500);
});

function measured(frame) {
  const page = frame.contentDocument;
  const shows = (one) => one.checkVisibility() ? one.dataset.severity : null;
  const seen = () => [...page.querySelectorAll("article")].map(shows).filter(Boolean);
  const result = {
    width: page.documentElement.clientWidth,
    scrolls: page.documentElement.scrollWidth,
    badge: getComputedStyle(page.querySelector(".badge.critical")).backgroundColor,
    unscrolled: [...page.querySelectorAll("main > *")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1)
      .filter((one) => getComputedStyle(one).overflowX === "visible")
      .map((one) => one.outerHTML.slice(0, 80)),
    seen: seen(),
    requests: frame.contentWindow.performance.getEntriesByType("resource").map((one) => one.name),
    refused: [],
  };
  page.getElementById("show-low").click();
  page.getElementById("show-correctness").click();
  result.filtered = seen();
  page.addEventListener("securitypolicyviolation", (one) => result.refused.push(one.effectiveDirective));
  page.body.append(Object.assign(page.createElement("img"), { src: "http://127.0.0.1:9/x.png" }));
  page.body.append(Object.assign(page.createElement("script"), { textContent: "0" }));
  return result;
}
</script>
</body></html>
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """By width, what a browser measures."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    folder = tmp_path_factory.mktemp("browser")
    page = escape(html(SAMPLE, {SOFTMAX: SOURCE}))
    frames = "\n".join(f'<iframe width="{width}" height="800" srcdoc="{page}"></iframe>' for width in WIDTHS)
    wrapper = folder / "wrapper.html"
    wrapper.write_text(WRAPPER % frames, encoding="utf-8")
    return dict(zip(WIDTHS, measured_by(browser, wrapper, folder / "profile"), strict=True))


def measured_by(browser: str, page: Path, profile: Path) -> Any:
    """What the script of a page left in it."""
    command = [browser, *QUIET, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    (result,) = re.findall(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(result))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_only_code_and_tables_scroll(measured: dict[int, Any], width: int) -> None:
    result = measured[width]
    assert result["scrolls"] <= result["width"] <= width
    assert result["unscrolled"] == []


def test_the_policy_lets_the_style_work(measured: dict[int, Any]) -> None:
    assert measured[1280]["badge"] in ("rgb(163, 15, 45)", "rgb(255, 151, 163)")


def test_unticked_boxes_hide_their_findings(measured: dict[int, Any]) -> None:
    assert sorted(measured[390]["seen"]) == ["critical", "high", "info", "low", "medium"]
    assert sorted(measured[390]["filtered"]) == ["info", "medium"]


def test_the_page_asks_for_nothing_and_may_not(measured: dict[int, Any]) -> None:
    result = measured[1280]
    assert [name for name in result["requests"] if not name.startswith("data:")] == []
    assert sorted(result["refused"]) == ["img-src", "script-src-elem"]
