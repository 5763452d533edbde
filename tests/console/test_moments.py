"""The moments that decide whether people trust the console, each as one story in a real browser on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.console.site import Site, needs_browser
from tests.fork_server import environ_without_foliot, run_foliot
from tests.stories.server_process import ServerProcess
from tools.sample_workspace import SampleMaker

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = needs_browser
LINK = r"(http://\S+/console/sign-in\?link=\S+)"


@pytest.fixture
def home(site: Site) -> str:
    """An empty workspace of the test's own."""
    slug = f"story-{uuid4().hex[:8]}"
    site.add_workspace(slug)
    return slug


@pytest.fixture
def page(site: Site, browser: Any, home: str) -> Iterator[Any]:
    """A page of the administrator in that workspace. A script error or a broken content policy fails the test."""
    errors: list[str] = []
    with site.context(browser, site.session(home, "system")) as context:
        made = context.new_page()
        made.on("pageerror", lambda error: errors.append(str(error)))
        made.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
        yield made
    assert errors == []


def expect(locator: Any) -> Any:
    return playwright.expect(locator)


def create(page: Any, name: str, when: str, url: str | None = None) -> str:
    """Create a job in the editor and return its address."""
    page.goto("/console/jobs/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Schedule", exact=True).fill(when)
    page.get_by_label("URL").fill(url or page.url.partition("/console")[0] + "/healthz")
    page.get_by_label("Method").select_option("GET")
    page.get_by_role("button", name="Create job").click()
    expect(page.locator("h1")).to_have_text(name)
    return str(page.url)


def pause(page: Any, reason: str) -> None:
    page.get_by_role("button", name="Pause", exact=True).first.click()
    page.get_by_label("Reason").first.fill(reason)
    page.locator("#pause button.primary").click()
    expect(page.locator("#head")).to_contain_text(reason)


def run_count(site: Site, home: str, job: str) -> int:
    return int(site.api(home).call("GET", f"/jobs/{job.rpartition('/')[2]}")["run_count"])


def wait_for_runs_elsewhere(site: Site, count: int) -> None:
    """Wait for runs of a job in another workspace that runs every two seconds: the scheduler is at work."""
    probe = site.workspaces["acme"].jobs["heartbeat probe"]
    before = run_count(site, "acme", probe)
    SampleMaker(site.api("acme")).wait(
        lambda: run_count(site, "acme", probe) >= before + count, "runs in another workspace"
    )


def test_1_a_stranger_makes_the_first_job_in_words_and_watches_it_run(page: Any) -> None:
    page.goto("/console/jobs")
    page.get_by_role("link", name="Create the first job").click()
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("URL").fill(page.url.partition("/console")[0] + "/healthz")
    page.get_by_label("Method").select_option("GET")
    page.get_by_label("Schedule", exact=True).fill("every 2 seconds")
    expect(page.locator("#preview .sentence")).to_have_text("Every 2 seconds")  # follows the typing
    page.get_by_role("button", name="Create job").click()
    expect(page.get_by_role("status").first).to_have_text("The job was created.")
    expect(page.locator("#runs .s-ok").first).to_be_visible()  # without a reload
    page.locator("#runs a.name").first.click()
    expect(page.locator("#head")).to_contain_text("succeeded")


def test_2_the_next_times_are_the_same_in_the_editor_on_the_job_and_in_the_api(
    page: Any, site: Site, home: str
) -> None:
    page.goto(
        "/console/jobs/new?kind=cron&when=30+2+*+*+1-5&timezone=Europe/Paris&name=nightly&url=https://example.test/"
    )
    shown = page.locator("#preview time").evaluate_all("all => all.map(each => each.dateTime)")
    page.get_by_role("button", name="Create job").click()
    expect(page.locator("h1")).to_have_text("nightly")
    on_job = page.locator("#next time").evaluate_all("all => all.map(each => each.dateTime)")
    job = page.url.rsplit("/", 1)[1]
    planned = [each["planned_for"] for each in site.api(home).items(f"/jobs/{job}/next?n=10")]
    assert list(dict.fromkeys(shown)) == planned
    assert list(dict.fromkeys(on_job)) == planned[:5]
    assert "CET" in page.locator("#next").inner_text() or "CEST" in page.locator("#next").inner_text()


def test_3_a_planned_time_that_did_not_run_says_why(page: Any, site: Site, home: str) -> None:
    api = site.api(home)
    job = create(page, "skipped once", "every 2 seconds")
    api.post(f"/jobs/{job.rsplit('/', 1)[1]}/skip-next", {"reason": "the vendor asked for it"})
    skipped = f"/console/runs?q=status:skipped+job:{job.rsplit('/', 1)[1]}"
    page.goto(skipped)
    expect(page.locator("#runs a.name").first).to_be_visible()
    page.locator("#runs a.name").first.click()
    expect(page.locator("main")).to_contain_text("the vendor asked for it")


def test_4_today_says_in_one_sentence_whether_all_is_well(page: Any, site: Site, home: str) -> None:
    create(page, "fine", "every 2 seconds")
    expect(page.locator("#runs .s-ok").first).to_be_visible()
    page.goto("/console/")
    expect(page.locator("#verdict .s-ok").first).to_be_visible()
    create(page, "broken", "every hour", "http://127.0.0.1:1/")
    job = site.api(home).items("/jobs?q=name:broken")[0]["id"]
    site.api(home).call("PATCH", f"/jobs/{job}", {"retry": {"max": 0, "strategy": "none"}})
    page.goto("/console/")
    site.api(home).post(f"/jobs/{job}/run")
    expect(page.locator("#verdict")).to_contain_text("broken")  # while the page is open
    expect(page.locator("#verdict .s-fail").first).to_be_visible()


def test_5_the_agenda_lists_what_runs_tonight_with_the_freeze_over_it(
    page: Any, site: Site, home: str
) -> None:
    create(page, "backup", "every day at 3am")
    create(page, "often", "every 15 minutes")
    page.goto("/console/agenda?view=list")
    expect(page.locator("main")).to_contain_text("backup")
    expect(page.locator("main")).to_contain_text("often")
    site.api(home).post("/freezes", {"reason": "database upgrade"})
    page.goto("/console/agenda")
    page.get_by_role("link", name="Later").click()  # just before midnight nothing is planned for today
    expect(page.locator("#agenda .lanes")).to_contain_text("often")
    expect(page.locator("#agenda .frozen").first).to_be_attached()
    calendar = page.request.get(page.get_by_role("link", name="Calendar file").get_attribute("href")).text()
    assert "SUMMARY:backup" in calendar


def test_6_a_freeze_holds_everything_and_leaves_each_job_as_it_was(page: Any, site: Site, home: str) -> None:
    job = create(page, "held", "every 1 second")
    paused = create(page, "paused before", "every hour")
    pause(page, "not ours to touch")
    page.goto("/console/freezes")
    page.get_by_label("Reason").fill("database upgrade")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("held")  # the name of the first job
    page.get_by_role("button", name="Freeze now").click()
    expect(page.locator("#freezes")).to_contain_text("database upgrade")
    page.goto(job)
    expect(page.locator("main")).to_contain_text("database upgrade")
    wait_for_runs_elsewhere(site, 1)  # the runs that were ready have started
    held = run_count(site, home, job)
    wait_for_runs_elsewhere(site, 2)
    assert run_count(site, home, job) == held
    page.goto("/console/freezes")
    page.get_by_role("button", name="Lift").first.click()
    SampleMaker(site.api(home)).wait(lambda: run_count(site, home, job) > held, "a run after the freeze")
    page.goto(paused)
    expect(page.locator("#head")).to_contain_text("not ours to touch")


def test_7_a_run_that_waits_says_for_what_and_capacity_shows_the_limit(
    page: Any, site: Site, home: str
) -> None:
    api = site.api(home)
    api.call("PUT", "/limits", {"key": "warehouse", "cap": 1})
    work = {"type": "python", "config": {"call": "sample_functions:last"}, "concurrency_key": "warehouse"}
    runs = []
    for name in ("greedy", "patient"):
        job = api.post("/jobs", {"name": name, "schedule": {"kind": "manual"}, "timeout": "1h", **work})["id"]
        runs.append(api.post(f"/jobs/{job}/run")["id"])
    SampleMaker(api).wait(lambda: api.call("GET", f"/runs/{runs[0]}")["status"] == "running", "the first run")
    page.goto(f"/console/runs/{runs[1]}")
    expect(page.locator("main")).to_contain_text("warehouse")
    page.goto("/console/runs?q=status:waiting,ready")
    assert page.locator("#runs a.name").all_inner_texts() == ["patient #1"]
    page.goto("/console/capacity")
    expect(page.locator("main")).to_contain_text("warehouse")


def test_8_jobs_of_a_crontab_arrive_disabled_from_the_command_line_and_from_the_page(
    page: Any, site: Site, home: str, tmp_path: Path
) -> None:
    (tmp_path / "crontab").write_text("30 2 * * 1-5 /usr/bin/backup --all\n@daily /usr/bin/rotate\n")
    given = {"FOLIOT_API_URL": site.base, "FOLIOT_API_KEY": site.system_key, "FOLIOT_WORKSPACE": home}
    done = run_foliot("import", "crontab", "crontab", cwd=tmp_path, env=environ_without_foliot() | given)
    assert done.returncode == 0, done.stdout + done.stderr
    page.goto("/console/jobs?q=status:disabled")
    expect(page.locator("#jobs a.name")).to_have_count(2)
    expect(page.locator("#jobs")).to_contain_text("02:30")
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_label("File").fill("15 4 * * * /usr/bin/vacuum\nnonsense\n")
    page.get_by_role("button", name="Show what it becomes").click()
    expect(page.locator("#outcome")).to_contain_text("Nothing is stored yet")
    expect(page.locator("#outcome")).to_contain_text("1 rejected")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("link", name="Review the disabled jobs").click()
    expect(page.locator("#jobs a.name")).to_have_count(3)
    page.get_by_role("link", name="vacuum").click()
    page.get_by_role("button", name="Resume", exact=True).first.click()
    expect(page.locator("#head .status").first).to_have_text("active", ignore_case=True)


def test_9_the_page_of_a_failure_answers_at_three_in_the_morning(site: Site, browser: Any) -> None:
    """On one screen of a phone: what failed and why, and a button to try again. Below: the last lines of the log."""
    run = site.workspaces["acme"].runs["sync customers"]
    phone = {"viewport": {"width": 390, "height": 844}}
    with site.context(browser, site.session("acme", "operator"), **phone) as context:
        page = context.new_page()
        page.goto(f"/console/runs/{run}")
        expect(page.locator("main")).to_contain_text("db-2 refused the connection")
        expect(page.locator("main")).to_contain_text("connecting to db-2")
        retry = page.get_by_role("button", name=re.compile("^(Retry|Run again)")).first
        for each in (page.locator("#head", has_text="db-2 refused the connection"), retry):
            expect(each).to_be_in_viewport()
        retry.click()
        page.goto("/console/runs?q=status:failed,running,ready")
        expect(page.locator("main")).to_contain_text("sync customers #2")


def test_10_two_people_who_edit_one_job_do_not_overwrite_each_other(
    page: Any, site: Site, home: str, browser: Any
) -> None:
    job = create(page, "shared", "every hour")
    member = site.api(home).post("/members", {"kind": "user", "name": "Elena", "role": "editor"})
    key = site.api(home).post("/keys", {"name": "Elena's", "principal": member["id"]})["secret"]
    page.goto(f"{job}/edit")
    with site.context(browser, site.sign_in(key)) as theirs:
        second = theirs.new_page()
        second.goto(f"{job}/edit")
        page.get_by_label("Name", exact=True).fill("shared by the first")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("h1")).to_have_text("shared by the first")
        second.get_by_label("Name", exact=True).fill("shared by the second")
        second.get_by_role("button", name="Save").click()
        expect(second.get_by_role("alert")).to_contain_text("Revision")
        # Nothing typed is lost.
        expect(second.get_by_label("Name", exact=True)).to_have_value("shared by the second")
    page.goto(job)
    expect(page.locator("h1")).to_have_text("shared by the first")
    page.get_by_role("link", name="Changes").first.click()
    page.get_by_role("button", name=re.compile("^Revert")).first.click()
    page.locator("[popover]:popover-open form button").last.click()  # it asks
    page.goto(job)
    expect(page.locator("h1")).to_have_text("shared")


def test_11_a_new_teammate_reads_everything_and_breaks_nothing(site: Site, browser: Any) -> None:
    with site.context(browser, site.session("acme", "viewer")) as context:
        page = context.new_page()
        page.goto(f"/console/jobs/{site.workspaces['acme'].jobs['nightly invoices']}")
        expect(page.locator("main")).to_contain_text("Sends each customer the invoice of the day.")
        expect(page.get_by_text("As commands").first).to_be_attached()
        assert page.get_by_role("button", name="Run now").count() == 0


def test_12_people_see_what_an_agent_planned_and_can_stop_it(page: Any, site: Site, home: str) -> None:
    api = site.api(home)
    agent = api.post("/members", {"kind": "agent", "name": "assistant", "role": "editor"})
    key = api.post("/keys", {"name": "assistant", "principal": agent["id"]})["secret"]
    body = {"name": "remind Ana of the invoice", "type": "http", "config": {"url": f"{site.base}/healthz"}}
    type(api)(site.base, key).post("/jobs", body | {"schedule": {"words": "in 2 hours"}})
    page.goto("/console/jobs")
    page.get_by_role("link", name="remind Ana of the invoice").click()
    expect(page.locator("main")).to_contain_text("assistant")
    pause(page, "Ana has paid")


def test_ten_jobs_are_made_one_is_paused_and_does_not_run_while_the_others_do(
    page: Any, site: Site, home: str
) -> None:
    jobs = [create(page, f"job {number}", "every 1 second") for number in range(1, 11)]
    page.goto(jobs[4])
    pause(page, "lunch")
    before = run_count(site, home, jobs[4])
    others = {job: run_count(site, home, job) for job in jobs if job != jobs[4]}
    SampleMaker(site.api(home)).wait(
        lambda: all(run_count(site, home, job) > seen + 1 for job, seen in others.items()),
        "runs of the other nine",
    )
    assert run_count(site, home, jobs[4]) == before
    page.goto("/console/jobs?q=status:paused")
    assert page.locator("#jobs a.name").all_inner_texts() == ["job 5"]


def test_a_run_that_fails_while_its_page_is_open_shows_it_at_once(page: Any, site: Site, home: str) -> None:
    api = site.api(home)
    work = {
        "type": "python",
        "config": {"call": "sample_functions:fail"},
        "retry": {"max": 0, "strategy": "none"},
    }
    job = api.post("/jobs", {"name": "fails", "schedule": {"kind": "manual"}, **work})["id"]
    page.goto(f"/console/jobs/{job}")
    expect(page.locator("#live-dot.on")).to_be_visible()  # the stream is open
    api.post(f"/jobs/{job}/run")
    expect(page.locator("#runs .s-fail").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("db-2 refused the connection")


def test_the_palette_finds_a_job_by_keyboard_alone(page: Any) -> None:
    create(page, "needle in a haystack", "every hour")
    page.goto("/console/")
    page.keyboard.press("Control+k")
    page.keyboard.type("needle")
    expect(page.locator("#palette li a").first).to_contain_text("needle in a haystack")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("needle in a haystack")


def test_the_printed_link_signs_in_once_and_a_killed_server_shows_every_planned_time(
    browser: Any, tmp_path: Path
) -> None:
    first = ServerProcess(tmp_path / "data")
    try:
        link = first.wait_for(LINK)[1]
        context = browser.new_context(base_url=link.partition("/console")[0], locale="en-GB")
        page = context.new_page()
        page.goto(link)
        stranger = browser.new_context()
        other = stranger.new_page()
        other.goto(link)
        expect(other.get_by_role("alert")).to_contain_text("used already")
        stranger.close()
        job = create(page, "every second", "every 1 second").rsplit("/", 1)[1]
        expect(page.locator("#runs .s-ok").first).to_be_visible()
    finally:
        first.end()  # kill -9
    second = ServerProcess(tmp_path / "data")
    try:
        page.goto(second.wait_for(LINK)[1])
        page.goto(page.url.partition("/console")[0] + f"/console/runs?q=job:{job}")
        expect(page.locator("#runs")).to_contain_text("succeeded")
        texts = page.locator("#runs a.name").all_inner_texts()
        numbers = sorted(int(each.rsplit("#", 1)[1]) for each in texts)
        assert numbers == list(
            range(numbers[0], numbers[-1] + 1)
        )  # no record is missing, none is there twice
        context.close()
    finally:
        second.end()
