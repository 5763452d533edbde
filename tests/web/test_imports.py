"""POST /imports: files of other schedulers become disabled jobs, once; one bad record stops no other."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.web.conftest import ApiHarness
from tests.web.test_console import post, signed_in

pytestmark = pytest.mark.anyio
CRONTAB = "CRON_TZ=Europe/Madrid\n0 9 * * 1-5 /usr/bin/report\n*/5 * * * * /usr/bin/sync\n99 * * * * /usr/bin/never\n"


async def imported(api: ApiHarness, **fields: Any) -> dict[str, Any]:
    query = "?dry_run=true" if fields.pop("dry_run", False) else ""
    body = {"source": "crontab", "text": CRONTAB, **fields}
    answer = await api.request("POST", f"/imports{query}", role="editor", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def jobs_of(api: ApiHarness) -> list[dict[str, Any]]:
    answer = await api.request("GET", "/jobs?tag=imported&status=disabled&status=active", role="editor")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.requirement("S4-29", "X-10")
async def test_records_become_disabled_jobs_and_a_bad_one_is_named(api: ApiHarness) -> None:
    done = await imported(api)
    assert done["planned"] is False
    assert {name: count for name, count in done["counts"].items() if count} == {"imported": 2, "rejected": 1}
    assert [each["result"] for each in done["records"]] == ["imported", "imported", "rejected"]
    bad = done["records"][2]
    assert "99" in bad["notes"][0]
    assert bad["raw"]["text"] == "99 * * * * /usr/bin/never"
    jobs = await jobs_of(api)
    assert {job["status"] for job in jobs} == {"disabled"}
    assert {job["id"] for job in jobs} == {each["job_id"] for each in done["records"][:2]}
    assert {job["external_ref"]["raw"]["text"] for job in jobs} >= {"*/5 * * * * /usr/bin/sync"}


@pytest.mark.requirement("S4-32")
async def test_two_imports_of_one_file_at_the_same_time_make_each_job_once(api: ApiHarness) -> None:
    both = await asyncio.gather(*(imported(api) for _ in range(3)))
    results = [[each["result"] for each in done["records"]] for done in both]
    assert [column.count("imported") for column in zip(*results, strict=True)] == [1, 1, 0]
    assert [column.count("unchanged") for column in zip(*results, strict=True)] == [2, 2, 0]
    assert len(await jobs_of(api)) == 2
    made = {tuple(each["job_id"] for each in done["records"]) for done in both}
    assert len(made) == 1, "each import names the same jobs"


async def test_a_plan_checks_everything_and_writes_nothing(api: ApiHarness) -> None:
    done = await imported(api, dry_run=True)
    assert done["planned"] is True
    assert [each["result"] for each in done["records"]] == ["imported", "imported", "rejected"]
    assert await jobs_of(api) == []
    report, sync, never = done["records"]
    assert report["words"] == "Every weekday at 09:00, Europe/Madrid"
    assert [len(report["next_times"]), len(sync["next_times"])] == [3, 3]
    assert (never["words"], never["next_times"]) == (None, [])


async def test_a_second_import_changes_nothing_and_keeps_edits(api: ApiHarness) -> None:
    def beat(every: int) -> dict[str, Any]:
        entries = {name: {"task": name, "schedule": every} for name in ("report", "sync")}
        return {"source": "celery-beat", "text": json.dumps(entries)}

    first = await imported(api, **beat(60))
    again = await imported(api, **beat(60))
    assert [each["result"] for each in again["records"]] == ["unchanged", "unchanged"]
    path = f"/jobs/{first['records'][0]['job_id']}"
    edited = await api.request("PATCH", path, json={"description": "mine"}, headers={"If-Match": "*"})
    assert edited.status_code == 200, edited.text
    third = await imported(api, **beat(90))
    assert [each["result"] for each in third["records"]] == ["skipped", "updated"]
    forced = await imported(api, **beat(90), update=True)
    assert [each["result"] for each in forced["records"]] == ["updated", "unchanged"]
    assert {(job["status"], job["schedule"]["every"]) for job in await jobs_of(api)} == {
        ("disabled", "1m30s")
    }


async def test_shadow_jobs_are_active_and_only_record(api: ApiHarness) -> None:
    text = "0 9 * * 1-5 /usr/bin/report\n"
    done = await imported(api, text=text, shadow=True, time_zone="Europe/Madrid")
    assert done["counts"]["imported"] == 1
    [job] = await jobs_of(api)
    assert (job["status"], job["shadow"]) == ("active", True)
    ahead = (await api.request("GET", f"/jobs/{job['id']}/next", role="viewer")).json()
    assert "Shadow mode" in " ".join(ahead["notes"])


async def test_a_text_of_another_kind_and_a_viewer_are_refused(api: ApiHarness) -> None:
    wrong = await api.request(
        "POST", "/imports", role="editor", json={"source": "airflow", "text": "not json"}
    )
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/text")
    refused = await api.request(
        "POST", "/imports", role="viewer", json={"source": "crontab", "text": CRONTAB}
    )
    assert refused.status_code == 403


async def test_the_console_shows_the_plan_before_it_imports(api: ApiHarness) -> None:
    session = await signed_in(api, "editor")
    form = {"source": "crontab", "text": CRONTAB, "timezone": "Europe/Madrid"}
    planned = await post(api, "/console/import", session, **form, step="plan")
    assert planned.status_code == 200
    assert "Nothing is stored yet" in planned.text
    assert "/usr/bin/report" in planned.text
    assert "Every weekday at 09:00, Europe/Madrid" in planned.text
    assert planned.text.count("<time ") >= 6  # the next times of two records
    assert await jobs_of(api) == []
    twice = await post(
        api, "/console/import", session, **form | {"text": "MAILTO=ops@example.com\n" + CRONTAB}, step="plan"
    )
    assert twice.text.count("mailed its output to ops@example.com") == 1, (
        "the note of both records stands once"
    )
    form["text"] += "@reboot /usr/bin/boot\n"  # a schedule without an expression
    done = await post(api, "/console/import", session, **form, step="import")
    assert "Imported." in done.text
    assert len(await jobs_of(api)) == 3
    wrong = await post(api, "/console/import", session, source="airflow", text="not json", step="plan")
    assert (wrong.status_code, "not JSON" in wrong.text) == (422, True)
