"""The console's pages of jobs in a real browser: suggestions, bulk actions, the editor, a conflict, a run with input."""

from __future__ import annotations

import re
from typing import Any

from tests.console.site import needs_browser
from tests.console.test_moments import create, expect, home, page

__all__ = ["home", "page"]  # fixtures
pytestmark = needs_browser


def test_the_filter_box_completes_terms_by_keyboard(page: Any) -> None:
    create(page, "found by status", "every hour")
    page.goto("/console/jobs")
    box = page.get_by_label("Filter jobs").first
    box.press_sequentially("sta")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("status:")
    box.press_sequentially("act")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("status:active ")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.locator("#jobs")).to_contain_text("found by status")
    assert "q=status" in page.url


def test_selected_jobs_are_paused_after_a_review_and_the_undo_starts_them_again(page: Any) -> None:
    for name in ("bulk one", "bulk two"):
        create(page, name, "every hour")
    page.goto("/console/jobs?q=bulk")
    for box in page.locator('#jobs input[name="id"]').all():
        box.check()
    expect(page.locator(".bulk-count")).to_have_text("2 selected")
    page.locator('#bulk button[value="pause"]').click()
    expect(page.locator(".sentence")).to_have_text("2 of 2 jobs would change.")
    page.get_by_label("Reason").fill("maintenance")
    page.get_by_role("button", name=re.compile("^Pause")).click()
    expect(page.locator(".sentence")).to_contain_text("2 jobs changed.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".sentence")).to_contain_text("2 jobs changed.")
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
    expect(page.get_by_label("Filter jobs").first).to_have_value("status:paused")


def test_the_editor_follows_type_and_kind_and_shows_what_changes(page: Any) -> None:
    create(page, "first of two", "every day at 2am")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Schedule", exact=True).fill("0 3 * * *")
    expect(page.locator("#preview .run-diff .moved").first).to_be_visible()
    page.get_by_label("What changed, and why (optional)").fill("later")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#head .sentence")).to_contain_text("03:00")
    page.get_by_role("link", name="Changes").click()
    expect(page.locator("#revisions")).to_contain_text("later")
    page.goto("/console/jobs/new")
    page.get_by_label("Type").select_option("python")
    expect(page.get_by_label(re.compile("^Call"))).to_be_visible()
    page.get_by_label("Name", exact=True).fill("second of two")
    page.get_by_label(re.compile("^Call")).fill("shop.jobs:sync")
    page.get_by_text("After a job", exact=True).click()
    expect(page.get_by_label("Schedule", exact=True)).to_be_hidden()
    page.get_by_label("Job 1").fill("first of two")
    page.get_by_role("button", name="Create job").click()
    expect(page.locator("h1")).to_have_text("second of two")
    expect(page.locator("#graph")).to_contain_text("first of two")


def test_a_day_that_is_ticked_in_the_editor_looks_so(page: Any) -> None:
    page.goto("/console/jobs/new")
    page.locator("#before summary").click()
    day = page.locator("#before .days label", has_text="Mon")
    colors = "each => [each, ...each.children].map(part => getComputedStyle(part).backgroundColor).join()"
    before = day.evaluate(colors)
    day.click()
    expect(page.locator("input[name=window_mon]")).to_be_checked()
    assert day.evaluate(colors) != before


def test_two_editors_of_one_job_merge_their_changes(page: Any) -> None:
    create(page, "merged", "every hour")
    address = page.url + "/edit"
    second = page.context.new_page()
    page.goto(address)
    second.goto(address)
    page.get_by_label("Tags").fill("theirs")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#head")).to_contain_text("theirs")
    second.get_by_label("Name", exact=True).fill("merged by the second")
    second.get_by_role("button", name="Save").click()
    expect(second.locator(".conflict")).to_contain_text("tags")
    second.get_by_role("button", name="Use mine, on top of theirs").click()
    expect(second.locator("h1")).to_have_text("merged by the second")
    expect(second.locator("#head")).to_contain_text("theirs")
    second.close()


def test_a_skip_is_taken_back_from_its_notice(page: Any) -> None:
    create(page, "skipped once", "every day at 2am")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("button", name="Skip next…").click()
    page.locator("#skip button.primary").click()
    expect(page.locator("#next")).to_contain_text("It will be skipped")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("#next")).not_to_contain_text("It will be skipped")
