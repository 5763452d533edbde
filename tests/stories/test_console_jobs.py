"""The console's pages of jobs in a real browser: suggestions, bulk actions, the editor, a conflict, a run with input."""

from __future__ import annotations

import re
from typing import Any

from tests.stories.test_console import (
    browser,
    create,
    page,
    playwright,
    pytestmark,
    serving,
    session,
)

__all__ = ["browser", "page", "pytestmark", "serving", "session"]


def test_the_filter_box_completes_terms_by_keyboard(page: Any) -> None:
    create(page, "found by status", "every hour")
    page.goto("/console/jobs")
    box = page.get_by_label("Filter jobs").first
    box.press_sequentially("sta")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    playwright.expect(box).to_have_value("status:")
    box.press_sequentially("act")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    playwright.expect(box).to_have_value("status:active ")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#jobs")).to_contain_text("found by status")
    assert "q=status" in page.url


def test_selected_jobs_are_paused_after_a_review_and_the_undo_starts_them_again(page: Any) -> None:
    for name in ("bulk one", "bulk two"):
        create(page, name, "every hour")
    page.goto("/console/jobs?q=bulk")
    for box in page.locator('#jobs input[name="id"]').all():
        box.check()
    playwright.expect(page.locator(".bulk-count")).to_have_text("2 selected")
    page.locator('#bulk button[value="pause"]').click()
    playwright.expect(page.locator(".sentence")).to_have_text("2 of 2 jobs would change.")
    page.get_by_label("Reason").fill("maintenance")
    page.get_by_role("button", name=re.compile("^Pause")).click()
    playwright.expect(page.locator(".sentence")).to_contain_text("2 jobs changed.")
    page.get_by_role("button", name="Undo").click()
    playwright.expect(page.locator(".sentence")).to_contain_text("2 jobs changed.")
    page.goto("/console/jobs?q=bulk")
    assert page.locator("#jobs .status", has_text="Paused").count() == 0


def test_a_view_is_an_address_with_a_name(page: Any) -> None:
    page.goto("/console/jobs?q=status%3Apaused")
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Name of this view").fill("on hold")
    page.get_by_role("button", name="Save this view").click()
    page.goto("/console/jobs")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("link", name="on hold").click()
    playwright.expect(page.get_by_label("Filter jobs").first).to_have_value("status:paused")


def test_the_editor_follows_type_and_kind_and_shows_what_changes(page: Any) -> None:
    create(page, "first of two", "every day at 2am")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Schedule", exact=True).fill("0 3 * * *")
    playwright.expect(page.locator("#preview .run-diff .moved").first).to_be_visible()
    page.get_by_label("What changed, and why (optional)").fill("later")
    page.get_by_role("button", name="Save").click()
    playwright.expect(page.locator("#head .sentence")).to_contain_text("03:00")
    page.get_by_role("link", name="Changes").click()
    playwright.expect(page.locator("#revisions")).to_contain_text("later")
    page.goto("/console/jobs/new")
    page.get_by_label("Type").select_option("python")
    playwright.expect(page.get_by_label(re.compile("^Call"))).to_be_visible()
    page.get_by_label("Name", exact=True).fill("second of two")
    page.get_by_label(re.compile("^Call")).fill("shop.jobs:sync")
    page.get_by_text("after a job", exact=True).click()
    playwright.expect(page.get_by_label("Schedule", exact=True)).to_be_hidden()
    page.get_by_label("Job 1").fill("first of two")
    page.get_by_role("button", name="Create job").click()
    playwright.expect(page.locator("h1")).to_have_text("second of two")
    playwright.expect(page.locator("#graph")).to_contain_text("first of two")


def test_two_editors_of_one_job_merge_their_changes(page: Any, session: Any) -> None:
    create(page, "merged", "every hour")
    address = page.url + "/edit"
    second = session.new_page()
    page.goto(address)
    second.goto(address)
    page.get_by_label("Tags").fill("theirs")
    page.get_by_role("button", name="Save").click()
    playwright.expect(page.locator("#head")).to_contain_text("theirs")
    second.get_by_label("Name", exact=True).fill("merged by the second")
    second.get_by_role("button", name="Save").click()
    playwright.expect(second.locator(".conflict")).to_contain_text("tags")
    second.get_by_role("button", name="Use mine, on top of theirs").click()
    playwright.expect(second.locator("h1")).to_have_text("merged by the second")
    playwright.expect(second.locator("#head")).to_contain_text("theirs")
    second.close()


def test_a_skip_is_taken_back_from_its_notice(page: Any) -> None:
    create(page, "skipped once", "every day at 2am")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("button", name="Skip next…").click()
    page.locator("#skip button.primary").click()
    playwright.expect(page.locator("#next")).to_contain_text("It will be skipped")
    page.get_by_role("button", name="Undo", exact=True).click()
    playwright.expect(page.locator("#next")).not_to_contain_text("It will be skipped")
