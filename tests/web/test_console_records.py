"""The console's pages of records: incidents, rooms, freezes, calendars, audit, settings."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

from foliot.domain.ids import IncidentId, JobId
from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.run import RunError
from foliot.storage.notifications import incidents
from foliot.storage.tx import Role
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness
from tests.web.test_console import post, signed_in


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
