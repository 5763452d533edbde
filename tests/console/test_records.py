"""Incidents, rooms, freezes, calendars and settings in a real browser: what an operator does, on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.site import Site, needs_browser

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = needs_browser
HOLIDAY = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20270704\nSUMMARY:Our day\nEND:VEVENT\nEND:VCALENDAR\n"
)


@pytest.fixture
def page(site: Site, browser: Any) -> Iterator[Any]:
    with site.context(browser, site.session("acme", "admin")) as context:
        made = context.new_page()
        errors: list[str] = []
        made.on("pageerror", lambda error: errors.append(str(error)))
        yield made
        assert errors == []


def test_an_operator_acknowledges_an_incident_and_leaves_a_note(site: Site, page: Any) -> None:
    page.goto(f"/console/incidents/{site.workspaces['acme'].ids['incident_id']}")
    page.get_by_role("button", name="Acknowledge").click()
    playwright.expect(page.locator(".banner.flash")).to_contain_text("acknowledged")
    playwright.expect(page.locator("#head .verdict")).to_contain_text("acknowledged")
    page.get_by_label("Note").fill("Ana restarts db-2")
    page.get_by_role("button", name="Save").click()
    playwright.expect(page.get_by_label("Note")).to_have_value("Ana restarts db-2")
    page.get_by_role("button", name="Snooze").click()
    page.get_by_role("button", name="for 4 hours").click()
    playwright.expect(page.locator("#head .verdict")).to_contain_text("snoozed")
    page.goto("/console/incidents?state=snoozed")
    playwright.expect(page.locator("#incidents")).to_contain_text("Ana restarts db-2")


def test_a_channel_is_made_and_its_test_shows_what_the_peer_answered(page: Any) -> None:
    page.goto("/console/settings/channels")
    page.get_by_role("button", name="New channel").click()
    page.get_by_role("link", name="Room", exact=True).click()
    page.get_by_label("Name").fill("people")
    page.get_by_label("Key or id of the room").fill("billing")
    page.get_by_role("button", name="Create channel").click()
    page.get_by_role("button", name="Send a test message").click()
    # The page looks again by itself until the courier has the answer.
    playwright.expect(page.get_by_text("The peer answered")).to_be_visible()
    playwright.expect(page.locator("main")).to_contain_text("The room has it.")


def test_a_calendar_is_made_of_a_country_and_a_file_and_shows_its_year(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "ours.ics"
    file.write_text(HOLIDAY)
    page.goto("/console/calendars/new")
    page.get_by_label("Name", exact=True).fill("office")
    page.get_by_label("Country").fill("ES")
    page.get_by_label("From the year").fill("2027")
    page.get_by_label("Years").fill("1")
    page.get_by_role("button", name="Add these days").first.click()
    playwright.expect(page.get_by_label("Days, one a line")).to_have_value(re.compile("2027-01-06 Epiphany"))
    page.get_by_label("File (.ics)").set_input_files(file)
    page.get_by_role("button", name="Add these days").last.click()
    playwright.expect(page.get_by_label("Days, one a line")).to_have_value(re.compile("2027-07-04 Our day"))
    page.get_by_role("button", name="Create calendar").click()
    playwright.expect(page.locator("h1")).to_have_text("office")
    page.goto(page.url + "?year=2027")
    playwright.expect(page.get_by_title("closed: Our day")).to_be_visible()
    page.locator("#closed-days summary").click()
    playwright.expect(page.locator("#closed-days")).to_contain_text("2027-01-06")


def test_a_freeze_is_previewed_with_its_jobs_put_in_force_and_lifted(page: Any) -> None:
    page.goto("/console/freezes")
    page.get_by_label("Reason").fill("upgrade of db-9")
    page.get_by_role("button", name="Preview").click()
    playwright.expect(page.locator("#preview")).to_contain_text("planned times of")
    playwright.expect(page.locator("#preview .times a").first).to_be_visible()
    page.get_by_role("button", name="Freeze now").click()
    row = page.locator("#freezes tr", has_text="upgrade of db-9")
    playwright.expect(row).to_contain_text("in force")
    row.get_by_role("button", name="Lift").click()
    playwright.expect(page.locator("#past")).to_contain_text("upgrade of db-9")


def test_a_message_is_written_into_a_room(site: Site, page: Any) -> None:
    page.goto(f"/console/rooms/{site.workspaces['acme'].ids['room_id']}")
    page.get_by_label("Message as").fill("Is the export done?")
    page.get_by_role("button", name="Send", exact=True).click()
    playwright.expect(page.locator("#messages .mine").last).to_contain_text("Is the export done?")
