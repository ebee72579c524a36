"""The page in Chromium: a click on a heading sorts, a box filters, and nothing is fetched."""

import json
import re
import shutil
import subprocess
from html import unescape
from typing import Any

import pytest

from pytorch_to_triton.sweep.outcome import ItemResult, State
from pytorch_to_triton.sweep.page import page_of
from pytorch_to_triton.sweep.report import report_of

MEASURE = """
<script>
addEventListener("load", () => {
  const rows = () => [...document.querySelectorAll("#items tbody tr")].filter(row => row.checkVisibility());
  const keys = () => rows().map(row => row.cells[0].textContent);
  const headings = [...document.querySelectorAll("#items th button")];
  const heading = name => headings.find(button => button.textContent === name);
  const result = {first: keys()};
  heading("ms").click();
  result.ascending = keys();
  heading("ms").click();
  result.descending = keys();
  document.querySelector('#states input[value="wrong"]').click();
  result.filtered = keys();
  result.columns = [...document.querySelectorAll("#items th")].map(th => th.textContent.trim());
  result.points = document.querySelectorAll("circle").length;
  result.fits = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
  result.requests = performance.getEntriesByType("resource").length;
  const text = JSON.stringify(result);
  document.body.append(Object.assign(document.createElement("pre"), {id: "result", textContent: text}));
});
</script></body>
"""


def item(key: str, state: State, ms: float | None) -> ItemResult:
    timed = {"speedup_over_eager": 2.0, "share_of_limit": 0.8, "kernel_ms": ms} if ms else {}
    return ItemResult.model_validate({"key": key, "state": state, "why": "", "seconds": 1.0, **timed})


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    results = [item("slow", "right", 10.0), item("wrong", "wrong", None), item("fast", "right", 9.0)]
    page = page_of(report_of(("validate", "time"), "a GPU", results, None), results)
    file = tmp_path_factory.mktemp("browser") / "sweep.html"
    file.write_text(page.replace("</body>", MEASURE), encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom")
    profile = f"--user-data-dir={file.parent / 'profile'}"
    done = subprocess.run(
        [browser, *options, profile, file.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-500:]
    return json.loads(unescape(found[1]))


def test_a_heading_sorts_numbers_as_numbers_and_what_has_none_comes_last(seen: Any) -> None:
    assert seen["first"] == ["slow", "wrong", "fast"]
    assert seen["ascending"] == ["fast", "slow", "wrong"]
    assert seen["descending"] == ["slow", "fast", "wrong"]


def test_a_box_hides_the_items_of_a_state(seen: Any) -> None:
    assert seen["filtered"] == ["slow", "fast"]


def test_only_columns_with_figures_are_shown_and_nothing_is_fetched(seen: Any) -> None:
    assert seen["columns"] == ["item", "state", "over eager", "of the limit", "ms", "seconds", "why"]
    assert seen["points"] == 2
    assert seen["fits"]
    assert seen["requests"] == 0
