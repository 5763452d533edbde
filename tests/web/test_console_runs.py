"""Runs, one run and its log in the console: groups of errors, the comparison with a good run, previews, edited input."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from uuid import uuid4

import pytest

from foliot.domain.ids import WorkerId
from foliot.domain.logs import LogLine, LogStream
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.services.runs import artifacts, logs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Claimed, Turns, claim
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness
from tests.web.test_console import HOSTILE, post, signed_in

NO_RETRY = {"max": 0, "strategy": "none"}
PNG = b"\x89PNG\r\n\x1a\n"


async def take_run(api: ApiHarness, worker: WorkerId, job_id: str, **given: object) -> Claimed:
    answer = await api.request("POST", f"/jobs/{job_id}/run", json=given)
    assert answer.status_code == 201, answer.text
    [run] = await claim(api.database, worker, "default", ["http"], 1, Turns())
    return run


async def end_run(
    api: ApiHarness, worker: WorkerId, run: Claimed, outcome: Outcome, output: object = None
) -> None:
    assert await report(api.database, [Report(run.run_id, run.job_id, run.fence, worker, outcome, output)])


async def fail_run(api: ApiHarness, worker: WorkerId, job_id: str, message: str) -> Claimed:
    run = await take_run(api, worker, job_id)
    await end_run(api, worker, run, Failed(RunError("boom", message)))
    return run


@pytest.fixture
async def worker(api: ApiHarness) -> WorkerId:
    return await api.register_worker(WorkerId(uuid4()))


async def test_the_list_groups_runs_by_error_and_links_to_them(api: ApiHarness, worker: WorkerId) -> None:
    for name in ("first", "second"):
        job = await api.create_job(name=name, retry=NO_RETRY)
        await fail_run(api, worker, job["id"], f"port {len(name)} of <b>db</b> is closed")
    session = await signed_in(api, "viewer")
    page = await api.http.get("/console/runs", headers=session)
    assert "<b>2</b> runs" in page.text
    assert "2 jobs" in page.text
    assert "&lt;b&gt;db&lt;/b&gt;" in page.text
    link = re.search(r'class="error-count" href="([^"]+)"', page.text)
    assert link is not None
    found = await api.http.get(unescape(link[1]), headers=session)
    assert found.text.count("data-row=") == 2
    assert "Retry all" not in found.text  # a viewer may not


async def test_each_bar_of_the_histogram_is_a_link_to_its_span(
    api: ApiHarness, worker: WorkerId, clock: ManualClock
) -> None:
    job = await api.create_job(name="nightly", retry=NO_RETRY)
    await fail_run(api, worker, job["id"], "early")
    clock.advance(timedelta(hours=3))
    late = await fail_run(api, worker, job["id"], "late")
    session = await signed_in(api)
    page = (await api.http.get("/console/runs", headers=session)).text
    bars = [unescape(each) for each in re.findall(r'<a href="(/console/runs\?since=[^"]+)" aria-label', page)]
    assert len(bars) == 2
    newest = (await api.http.get(bars[-1], headers=session)).text
    assert re.findall(r'data-row="([^"]+)"', newest) == [str(late.run_id)]


async def test_a_wrong_filter_is_answered_with_a_sentence_on_the_page(shared_api: ApiHarness) -> None:
    session = await signed_in(shared_api)
    for query in ("q=status:nonsense", "since=nonsense", "q=%22", "until=x&since=y"):
        page = await shared_api.http.get(f"/console/runs?{query}", headers=session)
        assert page.status_code == 200
        assert 'role="alert"' in page.text, query


async def test_today_names_a_failing_job_that_has_no_incident_yet(api: ApiHarness, worker: WorkerId) -> None:
    job = await api.create_job(name="import of invoices", retry=NO_RETRY)
    await api.create_job(name="all well")
    await fail_run(api, worker, job["id"], "port 8 is closed")
    page = (await api.http.get("/console/", headers=await signed_in(api))).text
    verdict = page[page.index('id="verdict"') : page.index('id="figures"')]
    assert "import of invoices" in verdict
    assert "port 8 is closed" in verdict
    assert "all well" not in verdict


async def test_a_failed_run_answers_what_a_person_asks_at_night(
    api: ApiHarness, worker: WorkerId, clock: ManualClock
) -> None:
    job = await api.create_job(
        name="nightly", retry=NO_RETRY, payload={"month": "October"}, description="Runbook: docs/n.md"
    )
    good = await take_run(api, worker, job["id"])
    await end_run(api, worker, good, Succeeded(), {"rows": 7})
    clock.advance(timedelta(hours=1))
    edited = await api.request("PATCH", f"/jobs/{job['id']}", json={"payload": {"month": "November"}})
    assert edited.status_code == 200, edited.text
    clock.advance(timedelta(hours=1))
    bad = await take_run(api, worker, job["id"])
    lines = [LogLine(clock.now(), LogStream.LOG, f"\x1b[31mline {n}\x1b[0m {HOSTILE}") for n in range(150)]
    await logs.append(api.database, [LogChunk(bad.run_id, 1, bad.fence, 1, lines)])
    await end_run(api, worker, bad, Failed(RunError("boom", "port 7 is closed")))
    await fail_run(api, worker, job["id"], "port 8 is closed")
    page = (await api.http.get(f"/console/runs/{bad.run_id}", headers=await signed_in(api, "viewer"))).text
    text = unescape(re.sub(r"<[^>]+>", "", page))
    for part in (
        "port 7 is closed",
        "Last good run",
        "2 runs of this job in 7 days",
        "Runbook: docs/n.md",
        "line 149",
    ):
        assert part in text, part
    assert "line 49 " not in text  # the log opens at its tail
    assert "\x1b" not in page
    assert "<script>alert" not in page
    compared = page[page.index('id="compare"') :]
    for part in ("month", "October", "November", "revision 2"):
        assert part in compared, part
    assert "Run again" not in text


async def test_earlier_lines_and_the_whole_log_are_read_in_parts(
    api: ApiHarness, worker: WorkerId, clock: ManualClock
) -> None:
    job = await api.create_job(name="nightly")
    run = await take_run(api, worker, job["id"])
    lines = [LogLine(clock.now(), LogStream.STDOUT, f"line {n + 1} {HOSTILE}") for n in range(1_300)]
    await logs.append(api.database, [LogChunk(run.run_id, 1, run.fence, 1, lines)])
    session = await signed_in(api, "viewer")
    page = (await api.http.get(f"/console/runs/{run.run_id}", headers=session)).text
    assert re.findall(r'data-seq="(\d+)"', page)[::99] == ["1201", "1300"]
    base = f"/console/runs/{run.run_id}/log"
    earlier = await api.http.get(f"{base}?before=1201", headers=session)
    assert re.findall(r'data-seq="(\d+)"', earlier.text)[::99] == ["1101", "1200"]
    assert "<script>alert" not in earlier.text
    assert re.findall(
        r'data-seq="(\d+)"', (await api.http.get(f"{base}?before=3", headers=session)).text
    ) == ["1", "2"]
    for odd in ("1", "0", "-5", "abc", "9" * 5_000, ""):
        assert (await api.http.get(f"{base}?before={odd}", headers=session)).status_code == 200, odd
    whole = await api.http.get(f"{base}.txt", headers=session)
    assert whole.headers["content-disposition"].startswith("attachment;")
    assert whole.headers["content-type"].startswith("text/plain")
    assert whole.text.count("\n") == 1_300
    other = await signed_in(api, "viewer", "globex")
    for path in (f"{base}?before=9", f"{base}.txt", f"{base}/stream"):
        assert (await api.http.get(path, headers=other)).status_code == 404, path


@pytest.mark.parametrize(
    ("media_type", "is_shown"),
    [
        ("image/png", True),
        ("application/pdf", True),
        ("text/html", False),
        ("image/svg+xml", False),
        ("application/xhtml+xml", False),
    ],
)
async def test_only_images_and_pdf_are_shown_by_the_browser_and_run_nothing(
    api: ApiHarness, worker: WorkerId, media_type: str, is_shown: bool
) -> None:
    job = await api.create_job(name="nightly")
    run = await take_run(api, worker, job["id"])
    file = NewArtifact(run.run_id, run.fence, worker, 1, "file", media_type, PNG)
    await artifacts.keep(api.database, file)
    session = await signed_in(api, "viewer")
    view = await api.http.get(f"/console/runs/{run.run_id}/artifacts/file/view", headers=session)
    assert view.headers["content-disposition"].startswith("inline" if is_shown else "attachment")
    assert view.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in view.headers["content-security-policy"]
    assert view.headers["content-type"] == media_type


async def test_a_text_file_is_shown_as_text_and_cut(api: ApiHarness, worker: WorkerId) -> None:
    job = await api.create_job(name="nightly")
    run = await take_run(api, worker, job["id"])
    body = f"{HOSTILE}{'x' * 150_000}the end".encode()
    await artifacts.keep(
        api.database, NewArtifact(run.run_id, run.fence, worker, 1, "a&b.html", "text/html", body)
    )
    session = await signed_in(api, "viewer")
    page = (await api.http.get(f"/console/runs/{run.run_id}?show=a%26b.html", headers=session)).text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "the end" not in page
    assert "Only the first part is shown." in page


async def test_an_edited_input_is_shown_as_a_difference_before_it_runs(
    api: ApiHarness, worker: WorkerId
) -> None:
    job = await api.create_job(name="nightly", retry=NO_RETRY, payload={"month": 10, "to": "ana"})
    run = await fail_run(api, worker, job["id"], "wrong month")
    session = await signed_in(api, "operator")
    form = await api.http.get(f"/console/runs/{run.run_id}/edit", headers=session)
    assert "&#34;month&#34;: 10" in form.text
    address = f"/console/runs/{run.run_id}/retry"
    reviewed = await post(api, address, session, input='{"month": 11, "to": "ana"}', step="review")
    assert reviewed.status_code == 200
    assert "<code>10</code>" in reviewed.text
    assert "<code>11</code>" in reviewed.text
    listed = (await api.request("GET", f"/jobs/{job['id']}/runs")).json()["items"]
    assert len(listed) == 1  # nothing ran
    for wrong in ("[1]", "{", '{"month": 1} x'):
        refused = await post(api, address, session, input=wrong, step="run")
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
    done = await post(api, address, session, input='{"month": 11, "to": "ana"}', step="run")
    assert done.status_code == 303
    made = (await api.request("GET", f"/runs/{done.headers['location'].rsplit('/', 1)[1]}")).json()
    assert (made["input"], made["retry_of"]) == ({"month": 11, "to": "ana"}, str(run.run_id))
    viewer = await signed_in(api, "viewer")
    assert (await post(api, address, viewer, input="{}", step="run")).status_code == 403


async def test_many_runs_are_retried_after_a_look_at_their_number(api: ApiHarness, worker: WorkerId) -> None:
    job = await api.create_job(name="nightly", retry=NO_RETRY)
    for port in (1, 2):
        await fail_run(api, worker, job["id"], f"port {port} is closed")
    await fail_run(api, worker, job["id"], "another")
    session = await signed_in(api, "operator")
    listed = unescape((await api.http.get("/console/runs", headers=session)).text)
    link = re.search(r'class="button small" href="([^"]+bulk[^"]+error[^"]+)"', listed)
    assert link is not None
    page = (await api.http.get(link[1], headers=session)).text
    assert "2 runs will be repeated" in page
    assert page.count("data-row=") == 2
    q = re.search(r'name="q" value="([^"]+)"', page)
    assert q is not None
    await fail_run(api, worker, job["id"], "port 3 is closed")  # one more since the look
    fields = {"action": "retry", "q": unescape(q[1]), "expected_count": "2"}
    changed = await post(api, "/console/runs/bulk", session, **fields)
    assert changed.status_code == 409
    assert "3 runs will be repeated" in changed.text
    done = await post(api, "/console/runs/bulk", session, **fields | {"expected_count": "3"})
    assert done.headers["location"] == "/console/runs"
    retried = (await api.request("GET", "/runs?q=trigger:retry")).json()["items"]
    assert len(retried) == 3
    viewer = await signed_in(api, "viewer")
    assert (await post(api, "/console/runs/bulk", viewer, **fields)).status_code == 403


@pytest.mark.requirement("S1-US4.1", "S1-US4.3", "S1-FR-009", "S1-FR-010")
async def test_a_failing_job_is_found_read_edited_tried_and_managed_in_the_console(
    api: ApiHarness, worker: WorkerId
) -> None:
    job = await api.create_job(name="nightly", retry=NO_RETRY, config={"url": "https://example.test/old"})
    runs = [await fail_run(api, worker, job["id"], f"port {n} is closed") for n in (7, 8, 9)]
    for run in runs:
        line = LogLine(api.database.clock.now(), LogStream.LOG, f"log of {run.run_id}")  # type: ignore[union-attr]
        await logs.append(api.database, [LogChunk(run.run_id, 1, run.fence, 1, [line])])
    session = await signed_in(api)

    async def text(path: str) -> str:
        page = await api.http.get(f"/console{path}", headers=session)
        assert page.status_code == 200, path
        return unescape(re.sub(r"<[^>]+>", " ", page.text))

    listed = " ".join((await text("/jobs")).split())
    for part in ("nightly", "every 10", "Active", "failed", "3 in a row"):
        assert part.lower() in listed.lower(), part
    shown = await text(f"/jobs/{job['id']}")
    assert "3 failures in a row" in shown
    assert "port 9 is closed" in shown
    for run, n in zip(runs, (7, 8, 9), strict=True):
        page = await text(f"/runs/{run.run_id}")
        assert f"port {n} is closed" in page
    assert "100" in await text(f"/jobs/{job['id']}?tab=figures")
    assert (
        "https://example.test/old"
        in (await api.http.get(f"/console/jobs/{job['id']}/edit", headers=session)).text
    )
    tried = await post(api, f"/console/jobs/{job['id']}/run", session)
    assert tried.status_code == 303
    for verb, status in (("pause", "paused"), ("resume", "active"), ("delete", "archived")):
        moved = await post(api, f"/console/jobs/{job['id']}/{verb}", session, reason="x")
        assert moved.status_code == 303, verb
        assert (await api.request("GET", f"/jobs/{job['id']}")).json()["status"] == status
