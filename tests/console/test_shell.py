"""The shell around the pages in a real browser: live regions, themes, the menu of a phone, first steps, invites, sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from foliot.web.console.session import COOKIE
from tests.console.site import Site, needs_browser

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = needs_browser


@pytest.fixture
def home(site: Site) -> str:
    """A workspace of the test's own, with one job that runs every second."""
    slug = f"shell-{uuid4().hex[:8]}"
    site.add_workspace(slug)
    job = {
        "name": "steady",
        "type": "http",
        "config": {"url": f"{site.base}/healthz", "method": "GET"},
        "schedule": {"words": "every 1 second"},
    }
    site.api(slug).post("/jobs", job)
    return slug


@pytest.fixture
def page(site: Site, browser: Any, home: str) -> Iterator[Any]:
    errors: list[str] = []
    with site.context(browser, site.session(home, "system")) as context:
        made = context.new_page()
        made.on("pageerror", lambda error: errors.append(str(error)))
        yield made
    assert errors == []


def expect(locator: Any) -> Any:
    return playwright.expect(locator)


def test_new_rows_wait_behind_a_button_and_live_updates_pause(page: Any) -> None:
    page.goto("/console/runs")
    bar = page.locator("#runs .new-bar")
    expect(page.locator("#runs [data-row]").first).to_be_visible()
    expect(bar).to_contain_text("new")
    top = page.locator("#runs [data-row]").first.get_attribute("data-row")
    bar.click()
    expect(page.locator("#runs [data-row]").first).not_to_have_attribute("data-row", top)
    page.locator("#live-toggle").click()
    expect(page.locator("#live-word")).to_have_text("Paused")
    expect(page.locator("#live-toggle")).to_have_attribute("aria-pressed", "true")
    page.locator("#live-toggle").click()
    expect(page.locator("#live-dot.on")).to_be_visible()


def test_a_region_changes_when_the_pointer_has_left_it(page: Any) -> None:
    page.goto("/console/")
    number = page.locator("#figures .figure b").first
    page.locator("#figures").hover()
    number.evaluate("each => { each.textContent = 'held' }")
    shown = page.locator("#newest tbody tr a.name").first.inner_text()
    expect(page.locator("#newest tbody tr a.name").first).not_to_have_text(shown)
    expect(number).to_have_text("held")
    page.mouse.move(2, 2)
    expect(number).not_to_have_text("held")


def test_the_theme_is_kept_and_the_menu_of_a_phone_opens(page: Any) -> None:
    page.goto("/console/")
    page.locator(".who").click()
    page.get_by_role("button", name="Dark", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/console/jobs")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.locator(".side nav")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.locator(".side").get_by_role("link", name="Settings").click()
    expect(page.locator("h1")).to_have_text("Settings")


def test_the_guide_turns_green_and_a_schedule_is_tested_while_typing(page: Any) -> None:
    page.goto("/console/start")
    expect(page.locator("#guide")).to_contain_text("Your first run arrived")
    page.goto("/console/start/schedule")
    page.get_by_label("Schedule", exact=True).fill("0 4 * * 1-5")
    expect(page.locator("#tested .sentence")).to_contain_text("Every weekday at 04:00")
    assert "when=0+4" in page.url  # the address can be shared


def test_an_invited_person_joins_once_and_signs_in_again_after_the_session(
    site: Site, browser: Any, home: str
) -> None:
    api = site.api(home)
    member = api.post("/members", {"kind": "user", "name": "Cleo", "role": "viewer"})
    invite = api.post(f"/members/{member['id']}/invite", {})
    context = browser.new_context(base_url=site.base, locale="en-GB")
    page = context.new_page()
    page.goto(invite["path"])
    page.get_by_role("button", name="Accept the invite").click()
    expect(page.locator("h1")).to_have_text("Welcome, Cleo")
    key = page.locator("#own-key").inner_text()
    page.get_by_role("link", name="Open the console").click()
    expect(page.locator(".who")).to_contain_text("viewer")
    assert page.get_by_role("link", name="New job").count() == 0
    page.goto(invite["path"])
    expect(page.get_by_role("alert")).to_contain_text("used already")
    context.clear_cookies(name=COOKIE)  # the session has ended
    page.goto("/console/runs?q=status:failed")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Runs")
    assert page.url.endswith("/console/runs?q=status:failed")  # back at the page
    context.close()
