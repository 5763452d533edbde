"""The console in a real browser, on a real server: the first job, live pages, a pause, a kill, and pages without script."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.server_process import ServerProcess

CHROMIUM = (
    os.environ.get("FOLIOT_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(180),
]
PAGES = ("", "jobs", "jobs/new", "runs", "agenda", "capacity", "freezes", "audit", "settings")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    started = ServerProcess(tmp_path_factory.mktemp("console") / "data")
    yield started
    started.end()


@pytest.fixture(scope="module")
def session(browser: Any, serving: ServerProcess) -> Iterator[Any]:
    """A browser context that the printed link has signed in."""
    link = serving.wait_for(r"(http://\S+/console/sign-in\?link=\S+)")[1]
    context = browser.new_context(
        base_url=link.partition("/console")[0], locale="en-GB", viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    page.goto(link)
    playwright.expect(page.locator("h1")).to_have_text("Today")
    page.close()
    again = browser.new_context()
    other = again.new_page()
    other.goto(link)
    playwright.expect(other.get_by_role("alert")).to_contain_text("used already")  # a link signs in once
    again.close()
    yield context
    context.close()


@pytest.fixture
def page(session: Any) -> Iterator[Any]:
    made = session.new_page()
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on(
        "console",
        lambda message: errors.append(message.text) if "Content Security Policy" in message.text else None,
    )
    yield made
    made.close()
    assert errors == []


def create(page: Any, name: str, when: str) -> None:
    page.goto("/console/jobs/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Schedule", exact=True).fill(when)
    page.get_by_label("URL").fill(page.url.partition("/console")[0] + "/healthz")
    page.get_by_label("Method").select_option("GET")
    page.get_by_role("button", name="Create job").click()
    playwright.expect(page.locator("h1")).to_have_text(name)


def test_a_stranger_makes_a_job_in_words_and_watches_it_run(page: Any) -> None:
    page.goto("/console/")
    playwright.expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    page.get_by_role("link", name="Create the first job").click()
    page.get_by_label("URL").fill(page.url.partition("/console")[0] + "/healthz")
    page.get_by_label("Schedule", exact=True).fill("every 2 seconds")
    playwright.expect(page.locator("#preview .sentence")).to_have_text(
        "Every 2 seconds"
    )  # follows the typing
    page.get_by_role("button", name="Create job").click()
    playwright.expect(page.get_by_role("status").first).to_have_text("The job was created.")
    # No reload: the region is replaced when an event arrives.
    playwright.expect(page.locator("#runs .s-ok").first).to_be_visible(timeout=30_000)
    page.locator("#runs a.name").first.click()
    playwright.expect(page.locator("#head .verdict")).to_contain_text("succeeded")
    playwright.expect(page.locator("#output pre")).to_contain_text('"status": 200')


def test_a_paused_job_does_not_run_while_another_goes_on(page: Any) -> None:
    create(page, "goes on", "every 1 second")
    create(page, "to pause", "every 1 second")
    playwright.expect(page.locator("#runs .s-ok").first).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Pause").first.click()
    page.get_by_label("Reason").fill("lunch")
    page.locator("#pause button.primary").click()
    playwright.expect(page.locator("#head")).to_contain_text("paused · lunch")
    job = page.url
    page.goto(job)
    before = _runs(page)
    page.goto("/console/jobs?q=name:%22goes%20on%22")
    seen = int(page.locator("#jobs td.right a").first.inner_text())
    playwright.expect(page.locator("#jobs td.right a").first).not_to_have_text(
        re.compile(rf"^({seen}|{seen + 1}|{seen + 2})$"), timeout=30_000
    )
    page.goto(job)
    assert _runs(page) == before
    page.get_by_role("button", name="Resume").click()
    playwright.expect(page.locator("#head .status").first).to_have_text("active")


def _runs(page: Any) -> int:
    return int(page.locator("#strip .figure b").first.inner_text().replace(",", ""))


def test_two_people_who_edit_one_job_do_not_overwrite_each_other(page: Any, session: Any) -> None:
    create(page, "shared", "every hour")
    address = page.url + "/edit"
    second = session.new_page()
    page.goto(address)
    second.goto(address)
    page.get_by_label("Name", exact=True).fill("shared by the first")
    page.get_by_role("button", name="Save").click()
    playwright.expect(page.locator("h1")).to_have_text("shared by the first")
    second.get_by_label("Name", exact=True).fill("shared by the second")
    second.get_by_role("button", name="Save").click()
    playwright.expect(second.get_by_role("alert")).to_contain_text("revision")
    assert (
        second.get_by_label("Name", exact=True).input_value() == "shared by the second"
    )  # nothing typed is lost
    second.close()


def test_the_palette_finds_a_job_by_keyboard_alone(page: Any) -> None:
    create(page, "needle in a haystack", "every hour")
    page.goto("/console/")
    page.keyboard.press("Control+k")
    page.keyboard.type("needle")
    playwright.expect(page.locator("#palette li").first).to_contain_text("needle in a haystack")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("h1")).to_have_text("needle in a haystack")


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in PAGES:
        page.goto(f"/console/{name}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


def test_pages_and_single_actions_work_without_script(browser: Any, session: Any) -> None:
    context = browser.new_context(
        java_script_enabled=False, storage_state=session.storage_state(), base_url=_base(session)
    )
    page = context.new_page()
    for name in PAGES:
        assert page.goto(f"/console/{name}").status == 200, name
    page.goto("/console/jobs/new")
    page.get_by_label("Name", exact=True).fill("without script")
    page.get_by_label("URL").fill("http://127.0.0.1:1/")
    page.get_by_role("button", name="Create job").click()
    assert page.locator("h1").inner_text() == "without script"
    page.get_by_role("button", name="Pause").first.click()
    page.get_by_label("Reason").fill("no script needed")
    page.locator("#pause button.primary").click()
    playwright.expect(page.locator("#head")).to_contain_text("paused · no script needed")
    context.close()


def _base(session: Any) -> str:
    page = session.new_page()
    page.goto("/console/")
    base = str(page.url).partition("/console")[0]
    page.close()
    return base


def test_a_server_killed_and_started_again_shows_every_planned_time(browser: Any, tmp_path: Path) -> None:
    first = ServerProcess(tmp_path / "data")
    try:
        link = first.wait_for(r"(http://\S+/console/sign-in\?link=\S+)")[1]
        context = browser.new_context(base_url=link.partition("/console")[0], locale="en-GB")
        page = context.new_page()
        page.goto(link)
        create(page, "every second", "every 1 second")
        playwright.expect(page.locator("#runs .s-ok").first).to_be_visible(timeout=30_000)
        job = page.url.rsplit("/", 1)[-1]
    finally:
        first.end()  # kill -9
    second = ServerProcess(tmp_path / "data")
    try:
        page.goto(second.wait_for(r"(http://\S+/console/sign-in\?link=\S+)")[1])
        page.goto(page.url.partition("/console")[0] + f"/console/runs?q=job:{job}")
        playwright.expect(page.locator("#runs")).to_contain_text("succeeded", timeout=30_000)
        numbers = sorted(
            int(each.rsplit("#", 1)[1]) for each in page.locator("#runs a.name").all_inner_texts()
        )
        assert numbers == list(
            range(numbers[0], numbers[-1] + 1)
        )  # no record is missing, none is there twice
        context.close()
    finally:
        second.end()
