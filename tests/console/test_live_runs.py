"""Runs in a real browser: a run that fails while its page is open, its log as it is written, spans drawn over the histogram, new rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.site import needs_browser
from tests.stories.server_process import ServerProcess

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = needs_browser
FUNCTIONS = """
import time
from pathlib import Path


def work(given, ctx):
    for number in range(given.get("lines", 1)):
        ctx.log(f"line {number + 1}")
    go = Path(given["go"])
    while not go.exists():
        time.sleep(0.02)
    ctx.log("the last line")
    if given.get("fail"):
        raise ConnectionError("port 7 is closed")
    return {"rows": 7}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("console-runs")
    (made / "story_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def serving(folder: Path) -> Iterator[ServerProcess]:
    started = ServerProcess(folder / "data")
    yield started
    started.end()


@pytest.fixture(scope="module")
def session(serving: ServerProcess, browser: Any) -> Iterator[Any]:
    """A browser context that the printed link has signed in."""
    link = serving.wait_for(r"(http://\S+/console/sign-in\?link=\S+)")[1]
    context = browser.new_context(
        base_url=link.partition("/console")[0], locale="en-GB", viewport={"width": 1280, "height": 900}
    )
    context.new_page().goto(link)
    yield context
    context.close()


@pytest.fixture
def page(session: Any) -> Iterator[Any]:
    """A page of the administrator. A script error or a broken content policy fails the test."""
    errors: list[str] = []
    made = session.new_page()
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
    yield made
    made.close()
    assert errors == []


class Api:
    """Calls of the API with the administrator's key."""

    def __init__(self, page: Any, folder: Path) -> None:
        self._page = page
        self._key = (folder / "data" / "admin.key").read_text(encoding="utf-8").strip()
        page.goto("/console/runs")
        self._base = page.url.partition("/console")[0]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._key}"}
        answer = self._page.request.fetch(
            f"{self._base}/api/v1{path}", method=method, headers=headers, data=body
        )
        assert answer.ok, answer.text()
        return answer.json()

    def start(self, name: str, **payload: Any) -> dict[str, Any]:
        job = self.call("POST", "/jobs", {
            "name": name, "type": "python", "config": {"call": "story_functions:work"}, "schedule": {"kind": "manual"},
            "retry": {"max": 0, "strategy": "none"}, "payload": payload,
        })  # fmt: skip
        run: dict[str, Any] = self.call("POST", f"/jobs/{job['id']}/run", {})
        return run


@pytest.fixture
def api(page: Any, folder: Path) -> Api:
    return Api(page, folder)


def test_a_run_that_fails_while_its_page_is_open_shows_why_without_a_reload(
    page: Any, api: Api, folder: Path
) -> None:
    go = folder / "go-1"
    run = api.start("nightly", go=str(go), lines=250, fail=True)
    page.goto(f"/console/runs/{run['id']}")
    page.evaluate("window.same = true")
    log = page.locator("#log-box")
    playwright.expect(log).to_contain_text("line 250")  # as it is written
    playwright.expect(page.locator("#head .status").first).to_have_text("Running", ignore_case=True)
    go.touch()
    playwright.expect(log).to_contain_text("the last line")
    playwright.expect(page.locator("#head .status").first).to_have_text("Failed", ignore_case=True)
    playwright.expect(page.locator("#head")).to_contain_text("port 7 is closed")
    assert page.evaluate("window.same") is True  # the page was not loaded again


def test_a_long_log_opens_at_its_end_and_loads_earlier_lines_on_demand(
    page: Any, api: Api, folder: Path
) -> None:
    go = folder / "go-2"
    go.touch()
    run = api.start("long", go=str(go), lines=250)
    page.goto(f"/console/runs/{run['id']}")
    playwright.expect(page.locator("#head .status").first).to_have_text("Succeeded", ignore_case=True)
    page.reload()
    log = page.locator("#log-box")
    playwright.expect(log.locator("[data-seq]")).to_have_count(100)
    box, last = log.bounding_box(), log.locator("[data-seq]").last.bounding_box()
    assert last["y"] + last["height"] <= box["y"] + box["height"] + 1  # the end is in sight
    log.get_by_role("link", name="Earlier lines").click()
    playwright.expect(log.locator("[data-seq]")).to_have_count(200)
    log.get_by_role("link", name="Earlier lines").click()
    playwright.expect(log.locator("[data-seq]").first).to_contain_text("line 1")
    playwright.expect(log.get_by_role("link", name="Earlier lines")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert Path(download.value.path()).read_text(encoding="utf-8").count("\n") == 251


def test_a_span_drawn_over_the_histogram_is_in_the_address(page: Any, api: Api, folder: Path) -> None:
    go = folder / "go-3"
    go.touch()
    run = api.start("drawn", go=str(go))
    page.goto("/console/runs")
    bars = page.locator("#histogram svg.bars")
    playwright.expect(bars).to_be_visible()
    box = bars.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.1, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    page.mouse.move(box["x"] + box["width"], middle, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"since=.*until="))
    playwright.expect(page.locator(".terms")).to_contain_text("…")
    page.locator(".terms a").last.click()
    page.wait_for_url(re.compile(r"/console/runs$"))
    assert run["id"] in page.content()


def test_new_runs_wait_behind_a_button(page: Any, api: Api, folder: Path) -> None:
    go = folder / "go-4"
    go.touch()
    api.start("known", go=str(go))
    page.goto("/console/runs")
    first = page.locator("#runs [data-row]").first.get_attribute("data-row")
    fresh = api.start("fresh", go=str(go))
    bar = page.locator("#runs .new-bar")
    playwright.expect(bar).to_be_visible()
    assert page.locator("#runs [data-row]").first.get_attribute("data-row") == first  # nothing has moved
    bar.click()
    playwright.expect(page.locator(f"#runs [data-row='{fresh['id']}']")).to_be_visible()
