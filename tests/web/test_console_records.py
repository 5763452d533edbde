"""The console's pages of records: incidents, rooms, freezes, calendars, audit, settings."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any, get_args
from uuid import UUID

import httpx2 as httpx

from foliot.domain.access import MemberRole
from foliot.domain.ids import IncidentId, JobId
from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.run import RunError
from foliot.storage.notifications import incidents
from foliot.storage.tx import Role
from foliot.testing.clock import ManualClock
from foliot.web.console.pages.settings import SECTIONS
from foliot.wire.notifications import EventName
from tests.web.conftest import ApiHarness, job
from tests.web.test_console import csrf_of, post, signed_in


async def open_incident(api: ApiHarness, job_id: str, message: str = "db-2 refused", **more: Any) -> str:
    """An incident of the job, as the notifier stores it."""
    async with api.database.tx(Role.APP, api.ids["acme"]) as tx:
        made = Incident(
            IncidentId(tx.new_id()),
            f"job:{job_id}",
            JobId(UUID(job_id)),
            NoticeEvent.RUN_FAILED,
            f"http_failed:{message}",
            tx.now,
            tx.now,
            RunError("http_failed", message),
            **{"failures": 3, **more},
        )
        await incidents.insert(tx, [made])
    return str(made.id)


async def text_of(api: ApiHarness, path: str, session: dict[str, str]) -> str:
    answer = await api.http.get(f"/console/{path}", headers=session)
    assert answer.status_code == 200, answer.text[:2_000]
    return answer.text


async def test_incidents_with_one_error_stand_together_and_states_filter_them(api: ApiHarness) -> None:
    for name, error in (("orders", "refused"), ("customers", "refused"), ("ledger", "404")):
        await open_incident(api, (await api.create_job(name=name))["id"], error)
    session = await signed_in(api, "operator")
    page = await text_of(api, "incidents", session)
    assert len(re.findall(r'class="card group"', page)) == 2
    assert "same error in 2 jobs" in page
    assert "ledger" not in await text_of(api, "incidents?state=muted", session)


async def test_an_incident_is_acknowledged_snoozed_muted_noted_and_closed(api: ApiHarness) -> None:
    incident_id = await open_incident(api, (await api.create_job(name="orders"))["id"])
    address = f"/console/incidents/{incident_id}"
    session = await signed_in(api, "operator")

    async def found() -> dict[str, Any]:
        answer: dict[str, Any] = (await api.request("GET", f"/incidents/{incident_id}")).json()
        return answer

    await post(api, f"{address}/acknowledge", session)
    assert (await found())["state"] == "acknowledged"
    await post(api, f"{address}/snooze", session, hours="4")
    clock = api.database.clock
    assert isinstance(clock, ManualClock)
    assert (await found())["snoozed_until"][:16] == (clock.now() + timedelta(hours=4)).isoformat()[:16]
    refused = await post(api, f"{address}/snooze", session, until="tomorrow")
    assert "Write a time such as" in refused.text
    await post(api, f"{address}/mute", session)
    assert (await found())["state"] == "muted"
    await post(api, f"{address}/unmute", session)
    await post(api, f"{address}/note", session, note="Ana looks after it")
    page = await text_of(api, f"incidents/{incident_id}", session)
    assert "Ana looks after it" in page
    assert f"foliot incidents ack {incident_id}" in page
    await post(api, f"{address}/close", session)
    assert (await found())["state"] == "closed"
    assert "Acknowledge</button>" not in await text_of(api, f"incidents/{incident_id}", session)


async def test_a_room_shows_who_wrote_what_and_takes_a_message(api: ApiHarness) -> None:
    session = await signed_in(api, "editor")
    made = await post(api, "/console/rooms/create", session, name="Support", key="support")
    address = made.headers["location"]
    assert address.startswith("/console/rooms/")
    await post(api, f"{address}/send", session, text="<b>Good</b> morning")
    page = await text_of(api, address.removeprefix("/console/"), session)
    assert "&lt;b&gt;Good&lt;/b&gt; morning" in page
    viewer = await text_of(api, address.removeprefix("/console/"), await signed_in(api, "viewer"))
    assert "Good" in viewer
    assert 'action="' + address not in viewer
    kept = await post(api, f"{address}/delete", session, confirm="something else")
    assert "Write the name of the room" in kept.text
    await post(api, f"{address}/delete", session, confirm="Support")
    assert (await api.request("GET", "/rooms")).json()["items"] == []


async def test_a_long_conversation_is_read_a_page_at_a_time(api: ApiHarness) -> None:
    room = (await api.request("POST", "/rooms", json={"name": "Long"})).json()["id"]
    for number in range(60):
        await api.request("POST", f"/rooms/{room}/messages", json={"text": f"message {number:02}"})
    session = await signed_in(api, "viewer")
    newest = await text_of(api, f"rooms/{room}", session)
    assert "message 59" in newest
    assert "message 09" not in newest
    earlier = re.search(r"\?before=(\d+)", newest)
    assert earlier is not None
    older = await text_of(api, f"rooms/{room}?before={earlier[1]}", session)
    assert "message 00" in older
    assert "message 10" not in older


async def test_a_freeze_of_some_jobs_is_previewed_with_their_names(api: ApiHarness) -> None:
    await api.create_job(name="nightly", tags=["billing"])
    await api.create_job(name="other")
    session = await signed_in(api, "operator")
    query = "reason=upgrade&scope=some&tags=billing&after=all&per_minute=5&end_at=2999-01-01T06:00"
    page = await text_of(api, f"freezes?{query}", session)
    assert "1 job" in page
    assert "nightly" in page
    assert "foliot freeze on --reason upgrade --tag billing" in page
    assert "--per-minute 5" in page
    wrong = await text_of(api, "freezes?reason=x&end_at=2001-01-01T06:00", session)
    assert "A freeze ends after it starts." in wrong
    viewer = await text_of(api, f"freezes?{query}", await signed_in(api, "viewer"))
    assert "/console/freezes/create" not in viewer


async def test_a_member_is_added_changed_and_removed_with_its_jobs_handed_over(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    for name in ("Ana", "Bo"):
        await post(
            api, "/console/settings/members/create", session, name=name, kind="user", role="editor", email=""
        )
    known = {each["name"]: each["id"] for each in (await api.request("GET", "/members")).json()["items"]}
    made = await api.request("POST", "/jobs", json=job(name="nightly", owner=known["Ana"]), role="admin")
    assert made.status_code == 201, made.text
    address = f"/console/settings/members/{known['Ana']}"
    page = await text_of(api, address.removeprefix("/console/"), session)
    assert "nightly" in page
    await post(api, address, session, name="Ana María", role="operator", email="ana@example.com")
    changed = (await api.request("GET", f"/members/{known['Ana']}")).json()
    assert (changed["name"], changed["role"], changed["email"]) == (
        "Ana María",
        "operator",
        "ana@example.com",
    )
    await post(api, f"{address}/remove", session, jobs="hand_over", to=known["Bo"])
    assert (await api.request("GET", f"/members/{known['Ana']}")).json()["active"] is False
    moved = (await api.request("GET", f"/jobs/{made.json()['id']}", role="admin")).json()
    assert moved["owner"] == known["Bo"]
    assert "Ana María" in await text_of(api, "settings/members?removed=yes", session)


async def test_a_key_is_made_for_a_member_with_scope_and_end_and_revoked(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    page = await post(api, "/console/settings/keys", session, name="robot", scope="viewer", expires="30")
    secret = re.search(r"fol_\w{8}_\w{20,}", page.text)
    assert secret is not None
    me = await api.http.get("/api/v1/me", headers={"Authorization": f"Bearer {secret[0]}"})
    assert me.json()["role"] == "viewer"
    assert me.json()["key"]["expires_at"] is not None
    await post(api, f"/console/settings/keys/{me.json()['key']['id']}/revoke", session)
    again = await api.http.get("/api/v1/me", headers={"Authorization": f"Bearer {secret[0]}"})
    assert again.status_code == 401
    wrong = await post(api, "/console/settings/keys", session, name="robot", scope="viewer", expires="soon")
    assert wrong.status_code == 422
    assert "This must be a whole number." in wrong.text


async def test_a_channel_is_made_tested_and_a_wrong_one_comes_back_with_what_was_typed(
    api: ApiHarness,
) -> None:
    session = await signed_in(api, "editor")
    fields = {"kind": "email", "name": "ops", "config-to": "ops@example.com, on-call@example.com"}
    fields["timezone"] = "Asia/Tokyo"
    wrong = await post(
        api,
        "/console/settings/channels/new",
        session,
        **{**fields, "config-to": "nobody", "config-port": "9"},
    )
    assert wrong.status_code == 422
    assert 'value="nobody"' in wrong.text
    made = await post(api, "/console/settings/channels/new", session, **fields)
    address = made.headers["location"]
    channel = (await api.request("GET", address.replace("/console/settings", ""))).json()
    assert channel["config"]["to"] == ["ops@example.com", "on-call@example.com"]
    sent = await post(api, f"{address}/test", session)
    page = await api.http.get(sent.headers["location"], headers=session)
    assert "Waiting for the answer" in page.text
    assert 'http-equiv="refresh"' in page.text
    assert address in await text_of(api, "settings/deliveries", session)
    await post(api, f"{address}/disable", session)
    assert (await api.request("GET", f"/channels/{channel['id']}")).json()["enabled"] is False
    again = await post(api, address, session, **{**fields, "enabled": "no", "name": "people"})
    assert again.status_code == 303
    kept = (await api.request("GET", f"/channels/{channel['id']}")).json()
    assert (kept["name"], kept["enabled"], kept["timezone"]) == ("people", False, "Asia/Tokyo")
    viewer = await text_of(api, address.removeprefix("/console/"), await signed_in(api, "viewer"))
    assert f'action="{address}/test"' not in viewer
    assert "Save</button>" not in viewer


async def test_a_rule_keeps_every_field_of_its_form(api: ApiHarness) -> None:
    session = await signed_in(api, "editor")
    body = {"name": "ops", "config": {"kind": "email", "to": ["ops@example.com"]}}
    channel = (await api.request("POST", "/channels", json=body)).json()["id"]
    fields = {
        "name": "billing", "event-run_failed": "1", f"channel-{channel}": "1", "tags": "billing, sync", "after_n": "2",
        "cooldown": "1h", "quiet_start": "22:00", "quiet_end": "07:00", "quiet_zone": "Europe/Madrid", "enabled": "1",
        "attachments": "*.pdf", "q": "type:http -tag:test", "event-late": "1",
    }  # fmt: skip
    answer = await post(api, "/console/settings/rules/new", session, **fields)
    assert answer.status_code == 303, answer.text
    [rule] = (await api.request("GET", "/notification-rules")).json()["items"]
    assert (rule["events"], rule["channels"], rule["after_n"]) == (["run_failed", "late"], [channel], 2)
    assert rule["scope"]["q"] == "type:http -tag:test"
    assert rule["scope"]["tags"] == ["billing", "sync"]
    assert rule["quiet_hours"]["timezone"] == "Europe/Madrid"
    address = f"settings/rules/{rule['id']}"
    page = await text_of(api, address, session)
    assert 'value="*.pdf"' in page
    assert 'value="type:http -tag:test"' in page
    assert all(f'name="event-{each}"' in page for each in get_args(EventName))
    missing = await post(api, f"/console/{address}", session, name="billing", after_n="2")
    assert missing.status_code == 422
    await post(api, f"/console/{address}/delete", session)
    assert (await api.request("GET", "/notification-rules")).json()["items"] == []


async def test_a_secret_is_written_and_never_shown(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    for value in ("first-sealed-value", "second-sealed-value"):
        await post(api, "/console/settings/secrets", session, name="crm", value=value)
    [secret] = (await api.request("GET", "/secrets")).json()["items"]
    assert secret["version"] == 2
    page = await text_of(api, "settings/secrets", session)
    assert "crm" in page
    assert "sealed-value" not in page
    refused = await post(
        api, "/console/settings/secrets", session, name="no spaces", value="third-sealed-value"
    )
    assert "third-sealed-value" not in refused.text
    await post(api, f"/console/settings/secrets/{secret['id']}/delete", session)
    assert (await api.request("GET", "/secrets")).json()["items"] == []


async def test_limits_defaults_and_types_are_set_and_given_back(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    await post(api, "/console/settings/limits", session, key="db", cap="3")
    assert (await api.request("GET", "/limits")).json()["items"][0]["cap"] == 3
    await post(api, "/console/settings/limits/remove", session, key="db")
    assert (await api.request("GET", "/limits")).json()["items"] == []
    before = (await api.request("GET", "/defaults")).json()
    fields = {
        "timeout": "7m",
        "retries": str(before["retry"]["max"]),
        "delays": ", ".join(before["retry"]["delays"]),
        "keep": before["retention"]["keep"],
        "keep_last": str(before["retention"]["keep_last"]),
        "timezone": before["timezone"],
    }
    await post(api, "/console/settings/defaults", session, **fields)
    after = (await api.request("GET", "/defaults")).json()
    assert (after["timeout"], after["origins"]["timeout"]) == ("7m", "workspace")
    assert after["origins"]["retry"] == "installation"  # what was not changed stays inherited
    wrong = await post(api, "/console/settings/defaults", session, **{**fields, "timeout": "long"})
    assert 'value="long"' in wrong.text
    await post(api, "/console/settings/defaults", session, **fields, reset="timeout")
    assert (await api.request("GET", "/defaults")).json()["origins"]["timeout"] == "installation"
    await post(api, "/console/settings/types/http", session, enabled="no", reason="maintenance")
    assert "maintenance" in await text_of(api, "settings/types", session)


async def test_a_system_administrator_manages_workspaces(api: ApiHarness) -> None:
    session = await signed_in(api, who="system")
    await post(api, "/console/settings/workspaces/create", session, slug="new-one", name="New one")
    address = "/console/settings/workspaces/new-one"
    await post(api, address, session, name="Newer", default_timezone="Europe/Madrid", jobs="10")
    found = (await api.request("GET", "/workspaces/new-one", who="system")).json()
    assert (found["name"], found["quotas"]["jobs"], found["quotas"]["rooms"]) == ("Newer", 10, None)
    kept = await post(api, f"{address}/archive", session, confirm="other")
    assert "Write the slug" in kept.text
    await post(api, f"{address}/archive", session, confirm="new-one")
    assert "Newer" in await text_of(api, "settings/workspaces?archived=yes", session)
    refused = await api.http.get("/console/settings/workspaces", headers=await signed_in(api, "admin"))
    assert refused.status_code == 403


async def test_an_invite_is_shown_once_as_a_link_that_signs_in(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    await post(api, "/console/settings/members/create", session, name="Ana", kind="user", role="viewer")
    [ana] = [each for each in (await api.request("GET", "/members")).json()["items"] if each["name"] == "Ana"]
    address = f"settings/members/{ana['id']}"
    page = await post(api, f"/console/{address}/invite", session)
    link = re.search(r'<pre id="invite"[^>]*>(/console/\S+?)</pre>', page.text)
    assert link is not None
    assert (await api.http.get(unescape(link[1]))).status_code == 200
    assert link[1] not in await text_of(api, address, session)


async def test_a_viewer_gets_no_form_of_the_settings(api: ApiHarness) -> None:
    """Every form of a section posts to a route that the API would open to this role."""
    session = await signed_in(api, "viewer")
    allowed = ("/console/choose", "/console/sign-out", "/console/settings/keys")  # a viewer may make own keys
    for name, _ in SECTIONS[:-1]:
        page = await text_of(api, f"settings/{name}", session)
        forms = re.findall(r'<form[^>]*method="post" action="([^"]+)"', page)
        assert [each for each in forms if not each.startswith(allowed)] == [], name
    assert "Save</button>" not in await text_of(api, "settings/defaults", session)


async def test_the_audit_names_a_job_that_was_created(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly invoices")
    page = await api.http.get("/console/audit?action=job.created", headers=await signed_in(api, "admin"))
    assert f'<a href="/console/jobs/{made["id"]}">nightly invoices</a>' in page.text


async def test_the_audit_filters_shows_differences_and_is_exported(api: ApiHarness) -> None:
    made = await api.create_job(name='=cmd|"x"')
    await api.request("PATCH", f"/jobs/{made['id']}", json={"name": "renamed"})
    session = await signed_in(api, "admin")
    page = await text_of(api, f"audit?object=job:{made['id']}", session)
    assert "<code>job.created</code>" in page
    assert "<code>job.edited</code>" in page
    assert "<del>" in page
    assert "<code>job.created</code>" not in await text_of(api, "audit?action=job.edited", session)
    assert "<code>job.edited</code>" not in await text_of(api, "audit?since=2999-01-01T00:00", session)
    assert "Write a time such as" in await text_of(api, "audit?since=yesterday", session)
    lines = (await api.http.get("/console/audit/export.jsonl?action=job", headers=session)).text.splitlines()
    assert {json.loads(line)["action"] for line in lines} == {"job.created", "job.edited"}
    sheet = await api.http.get("/console/audit/export.csv?action=job", headers=session)
    assert sheet.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    assert sheet.text.splitlines()[0].startswith("at,actor,actor_name,action")
    assert not re.search(r"(^|,)=", sheet.text, re.MULTILINE)
    refused = await api.http.get("/console/audit/export.csv", headers=await signed_in(api, "editor"))
    assert refused.status_code == 403


async def test_a_calendar_is_made_of_holidays_dates_and_weekends_and_shown_by_year(api: ApiHarness) -> None:
    session = await signed_in(api, "editor")
    fields = {
        "name": "holidays", "kind": "blackout", "otherwise": "skip", "timezone": "Europe/Madrid", "years": "1",
        "dates": "2027-12-24..2027-12-26 Christmas", "first_year": "2027", "country": "ES",
        "weekly-0-sat": "1", "weekly-0-sun": "1",
    }  # fmt: skip
    form = await post(api, "/console/calendars/new", session, **fields, add="country")
    assert "2027-01-06 Epiphany" in unescape(form.text)
    assert (await api.request("GET", "/calendars")).json()["items"] == []
    text = "BEGIN:VEVENT\nDTSTART:20270704\nSUMMARY:Our day\nEND:VEVENT"
    form = await post(api, "/console/calendars/new", session, **{**fields, "ics": text}, add="ics")
    assert "2027-07-04 Our day" in form.text
    wrong = await post(api, "/console/calendars/new", session, **{**fields, "dates": "someday"})
    assert wrong.status_code == 422
    assert "Line 1 is not a day" in wrong.text
    assert "someday" in wrong.text
    made = await post(api, "/console/calendars/new", session, **fields)
    address = made.headers["location"]
    page = await text_of(api, f"{address.removeprefix('/console/')}?year=2027", session)
    assert page.count('class="day closed"') == 104 + 1 + 1  # weekends, the Friday, and the legend
    assert "Christmas" in page
    edit = await text_of(api, f"{address.removeprefix('/console/')}/edit", session)
    assert "2027-12-24..2027-12-26 Christmas" in edit
    assert 'name="weekly-0-sat" value="1" checked' in edit
    await api.request("PATCH", address.replace("/console", ""), json={"otherwise": "defer"})
    stale = await post(api, f"{address}/edit", session, **fields, revision="1")
    assert stale.status_code == 412
    viewer = await text_of(api, address.removeprefix("/console/"), await signed_in(api, "viewer"))
    assert f"{address}/edit" not in viewer
    await post(api, f"{address}/delete", session)
    assert (await api.request("GET", "/calendars")).json()["items"] == []


async def test_a_job_gets_an_address_that_is_changed_replaced_and_deleted(api: ApiHarness) -> None:
    job_id = (await api.create_job(name="deploy <b>"))["id"]
    await api.request("POST", "/secrets", role="admin", json={"name": "hook", "value": "whsec_MfKQ9r8GKYqr"})
    session = await signed_in(api, "editor")
    wrong = await post(api, "/console/settings/webhooks/create", session, job="nothing", secret="hook")
    assert wrong.status_code == 422
    assert "There is no job of this name." in wrong.text
    assert 'value="nothing"' in wrong.text  # what was typed stays
    unsigned = await post(api, "/console/settings/webhooks/create", session, job="deploy <b>")
    assert "needs a secret" in unescape(unsigned.text)
    await post(api, "/console/settings/webhooks/create", session, job="deploy <b>", secret="hook")
    [made] = (await api.request("GET", "/webhooks")).json()["items"]
    assert (made["kind"], made["job_id"], made["name"]) == ("trigger", job_id, "deploy <b>")
    page = await text_of(api, "settings/webhooks", session)
    assert made["url"] in page
    assert "foliot webhooks rotate" in page
    viewer = await text_of(api, "settings/webhooks", await signed_in(api, "viewer"))
    assert made["url"] not in viewer
    assert f"/webhooks/{made['id']}" not in viewer
    at = f"/console/settings/webhooks/{made['id']}"
    await post(api, at, session, name="deploy", secret="hook", old_secret="hook")
    [changed] = (await api.request("GET", "/webhooks")).json()["items"]
    assert (changed["name"], changed["enabled"], changed["old_secret"]) == (
        "deploy",
        False,
        {"secret": "hook"},
    )
    await post(api, f"{at}/rotate", session)
    [rotated] = (await api.request("GET", "/webhooks")).json()["items"]
    assert rotated["url"] != made["url"]
    await post(api, f"{at}/delete", session)
    assert "No webhook yet" in await text_of(api, "settings/webhooks", session)


async def test_a_host_is_changed_gets_and_loses_servers_and_is_deleted(
    api: ApiHarness, clock: ManualClock
) -> None:
    worker = await api.create_key("acme", MemberRole.VIEWER, scopes=frozenset({"worker"}))
    for name in ("h1", "h2"):
        hello = {"name": f"{name}/1", "types": ["http"], "capacity": 4, "host": {"name": name}}
        bearer = {"Authorization": f"Bearer {worker}"}
        answer = await api.http.post("/api/v1/worker/register", json=hello, headers=bearer)
        assert answer.status_code == 201, answer.text
    session = await signed_in(api, "editor")
    first, second = (await api.request("GET", "/hosts")).json()["items"]
    at = f"/console/settings/hosts/{first['id']}"
    assert f'href="{at}"' in await text_of(api, "settings/hosts", session)

    async def found(host_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await api.request("GET", f"/hosts/{host_id}")).json()
        return answer

    await post(api, at, session, max_mutations="3", max_reads="0", labels="region=eu, disk = ssd")
    now = await found(first["id"])
    assert (now["max_mutations"], now["max_reads"], now["labels"]) == (3, 0, {"region": "eu", "disk": "ssd"})
    refused = await post(api, at, session, max_mutations="3", max_reads="0", labels="region")
    assert "Write a label as name=value" in refused.text
    await post(api, f"{at}/instances", session, name="pvp", labels="role=game")
    server = (await found(first["id"]))["instances"][0]
    page = await text_of(api, f"settings/hosts/{first['id']}", session)
    assert "role=game" in page
    assert "foliot hosts move-server pvp" in page
    await post(api, f"{at}/instances/{server['id']}", session, labels="role=db", to=second["id"])
    [moved] = (await found(second["id"]))["instances"]
    assert (moved["id"], moved["labels"]) == (server["id"], {"role": "db"})
    await post(api, f"/console/settings/hosts/{second['id']}/instances/{server['id']}/remove", session)
    assert (await found(second["id"]))["instances"] == []
    online = await post(api, f"{at}/delete", session)
    assert online.status_code == 409
    clock.advance(timedelta(hours=1))
    await post(api, f"{at}/delete", await signed_in(api, "editor"))
    assert [each["name"] for each in (await api.request("GET", "/hosts")).json()["items"]] == ["h2"]
    viewer = await text_of(api, f"settings/hosts/{second['id']}", await signed_in(api, "viewer"))
    assert 'name="max_reads"' not in viewer


async def test_a_calendar_file_is_uploaded_without_script(api: ApiHarness) -> None:
    session = await signed_in(api, "editor")
    text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20270704\r\nSUMMARY:Día nuestro\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    fields = {"csrf": await csrf_of(api, session), "add": "ics", "name": "office", "kind": "blackout"}
    fields |= {"otherwise": "skip", "years": "1", "first_year": "2027"}
    files = {"file": ("ours.ics", text.encode(), "text/calendar")}
    answer = await api.http.post("/console/calendars/new", data=fields, files=files, headers=session)
    assert answer.status_code == 200, answer.text
    assert "2027-07-04 Día nuestro" in answer.text
    assert 'enctype="multipart/form-data"' in answer.text
    forged = await api.http.post(
        "/console/calendars/new", data=fields | {"csrf": "x"}, files=files, headers=session
    )
    assert forged.status_code == 403
    many = {f"f{n}": ("x", b"x", "text/plain") for n in range(200)}
    refused = await api.http.post("/console/calendars/new", data=fields, files=many, headers=session)
    assert refused.status_code == 400


async def test_a_mute_and_a_removed_member_offer_an_undo(api: ApiHarness) -> None:
    incident_id = await open_incident(api, (await api.create_job(name="orders"))["id"])
    session = await signed_in(api, "operator")
    muted = await post(api, f"/console/incidents/{incident_id}/mute", session)
    cookie = muted.headers["set-cookie"].partition(";")[0]
    shown = await api.http.get(
        f"/console/incidents/{incident_id}", headers={"Cookie": f"{session['Cookie']}; {cookie}"}
    )
    assert f'action="/console/incidents/{incident_id}/unmute"' in shown.text
    assert "Undo" in shown.text


async def undone(api: ApiHarness, session: dict[str, str], answer: httpx.Response) -> None:
    """Open the page that a form leads to, and press its Undo."""
    assert answer.status_code == 303, answer.text
    cookie = f"{session['Cookie']}; foliot_flash={answer.cookies['foliot_flash']}"
    api.http.cookies.clear()
    shown = await api.http.get(answer.headers["location"], headers={"Cookie": cookie})
    banner = re.search(r'banner flash.*?action="([^"]+)"(.*?)</form>', shown.text, re.DOTALL)
    assert banner is not None, shown.text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', banner[2]))
    sent = {name: unescape(value) for name, value in fields.items()}
    taken_back = await api.http.post(unescape(banner[1]), data=sent, headers=session)
    assert taken_back.status_code == 303, taken_back.text


async def test_removing_a_limit_or_a_budget_offers_an_undo(api: ApiHarness) -> None:
    session, key = await signed_in(api, "admin"), 'db "<one>" é'
    await api.request("PUT", "/limits", json={"key": key, "cap": 7})
    await api.request("PUT", "/limits", json={"cap": 50}, role="admin")
    before = (await api.request("GET", "/limits")).json()
    for each in (key, ""):
        await undone(api, session, await post(api, "/console/settings/limits/remove", session, key=each))
    assert (await api.request("GET", "/limits")).json() == before
    budget = {"unit": "usd", "amount": "25", "period": "day", "warn_at": None, "action": "warn"}
    await api.request("PUT", "/budgets", json={"items": [budget]}, role="admin")
    stored = (await api.request("GET", "/budgets")).json()["items"]
    await undone(
        api, session, await post(api, "/console/settings/budgets", session, unit="usd", period="day")
    )
    assert (await api.request("GET", "/budgets")).json()["items"] == stored


async def test_switching_a_type_off_and_on_offers_an_undo(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")

    async def state() -> tuple[bool, str | None]:
        found = (await api.request("GET", "/job-types")).json()["items"]
        return next((each["enabled"], each["disabled_reason"]) for each in found if each["name"] == "http")

    path = "/console/settings/types/http"
    off = await post(api, path, session, enabled="no", reason="the vendor is down")
    assert await state() == (False, "the vendor is down")
    await undone(api, session, off)
    assert (await state())[0]
    await post(api, path, session, enabled="no", reason="the vendor is down")
    await undone(api, session, await post(api, path, session, enabled="yes"))
    assert await state() == (False, "the vendor is down")


async def test_lifting_a_freeze_offers_an_undo_that_holds_the_same_until_the_same_end(
    api: ApiHarness, clock: ManualClock
) -> None:
    session = await signed_in(api, "operator")
    end = (clock.now() + timedelta(hours=5)).isoformat()
    body = {"reason": "upgrade", "scope": {"tags": ["db"]}, "end_at": end, "after": "all", "per_minute": 7}
    made = (await api.request("POST", "/freezes", json=body, role="operator")).json()
    await undone(api, session, await post(api, f"/console/freezes/{made['id']}/lift", session))
    clock.advance(timedelta(minutes=1))
    [again] = (await api.request("GET", "/freezes")).json()["items"]
    same = ("reason", "scope", "end_at", "after", "per_minute", "running", "status")
    assert {name: again[name] for name in same} == {name: made[name] for name in same}


async def test_a_channel_shows_how_to_enable_or_disable_it_as_a_command(api: ApiHarness) -> None:
    made = await api.request(
        "POST", "/channels", json={"name": "ops", "config": {"kind": "email", "to": ["a@example.com"]}}
    )
    path, session = f"settings/channels/{made.json()['id']}", await signed_in(api, "operator")
    assert "foliot channels disable ops" in await text_of(api, path, session)
    await post(api, f"/console/{path}/disable", session)
    page = unescape(await text_of(api, path, session))
    assert "foliot channels enable ops" in page
    assert f'client.channels.enable("{made.json()["id"]}")' in page
