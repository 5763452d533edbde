"""Channels, notification rules, incidents and deliveries over HTTP: dry run, preconditions, and walls between workspaces."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from foliot.domain.ids import ChannelId
from foliot.domain.notifications.channel import RefusedAddress
from foliot.storage.notifications import channels
from foliot.storage.tx import Role
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
MAIL: dict[str, Any] = {"name": "ops", "config": {"kind": "email", "to": ["ops@example.com"]}}


async def create(api: ApiHarness, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await api.request("POST", path, json=body, **more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_channel_is_created_tested_changed_and_deleted(api: ApiHarness) -> None:
    tried = await api.request("POST", "/channels", json=MAIL, params={"dry_run": "true"})
    assert tried.status_code == 200
    assert (await api.request("GET", "/channels")).json()["items"] == []
    channel = await create(api, "/channels", MAIL)
    assert channel["config"]["to"] == ["ops@example.com"]
    assert channel["disabled_at"] is None
    sent = await api.request("POST", f"/channels/{channel['id']}/test", role="operator")
    assert sent.status_code == 200, sent.text
    assert sent.json()["message_kind"] == "test"
    log = (await api.request("GET", "/deliveries")).json()["items"]
    assert [each["id"] for each in log] == [sent.json()["id"]]
    again = await api.request("POST", f"/deliveries/{sent.json()['id']}/replay", role="operator")
    assert again.status_code == 409  # it has not ended
    stale = await api.request("PUT", f"/channels/{channel['id']}", json=MAIL, headers={"If-Match": '"9"'})
    assert stale.status_code == 412
    off = await api.request("POST", f"/channels/{channel['id']}/disable", role="operator")
    assert off.json()["enabled"] is False
    assert (await api.request("POST", "/channels", json=MAIL)).status_code == 409
    assert (await api.request("DELETE", f"/channels/{channel['id']}")).status_code == 204
    assert (await api.request("GET", f"/channels/{channel['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"kind": "fax"}, "/config"),
        ({"kind": "email", "to": ["a@b\r\nBcc: c@d"]}, "/config/to/0"),
        ({"kind": "email", "to": []}, "/config/to"),
        ({"kind": "email", "to": ["a@b.test"], "host": "169.254.169.254"}, "/config/host"),
        ({"kind": "slack"}, "/config"),
        ({"kind": "webhook", "url": "http://127.0.0.1/"}, "/config/url"),
        (
            {"kind": "webhook", "url": "https://example.test/", "secret": {"secret": "no-such"}},
            "/config/secret",
        ),
        (
            {"kind": "whatsapp", "to": ["12"], "token": {"secret": "t"}, "phone_number_id": "1"},
            "/config/to/0",
        ),
    ],
)
async def test_a_channel_that_could_not_work_is_refused(
    api: ApiHarness, config: dict[str, Any], pointer: str
) -> None:
    answer = await api.request("POST", "/channels", json={"name": "x", "config": config})
    assert answer.status_code == 422, answer.text
    assert pointer in answer.text


@pytest.mark.parametrize(
    ("terms", "pointer"),
    [
        ({"recipients": ["ops"]}, "/recipients/0"),
        ({"recipients": ["a@b.test\r\nBcc: c@d.test"]}, "/recipients/0"),
        ({"quiet_hours": {"start": "08:00", "end": "08:00"}}, "/quiet_hours"),
        (
            {"quiet_hours": {"start": "08:00", "end": "09:00", "timezone": "Mars/Base"}},
            "/quiet_hours/timezone",
        ),
        ({"scope": {"q": "owner:me"}}, "/scope/q"),
    ],
)
async def test_a_rule_that_could_not_work_is_refused(
    api: ApiHarness, terms: dict[str, Any], pointer: str
) -> None:
    rule = {"name": "x", "events": ["run_failed"], **terms}
    answer = await api.request("POST", "/notification-rules", json=rule)
    assert answer.status_code == 422, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


async def test_a_channel_has_the_zone_of_its_people(api: ApiHarness) -> None:
    made = await create(api, "/channels", {**MAIL, "timezone": "Asia/Tokyo"})
    assert made["timezone"] == "Asia/Tokyo"
    answer = await api.request("PUT", f"/channels/{made['id']}", json={**MAIL, "timezone": "Asia/Tokio"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/timezone"


async def test_a_rule_names_channels_and_jobs_of_its_own_workspace(api: ApiHarness) -> None:
    channel = await create(api, "/channels", MAIL)
    theirs = await create(api, "/channels", MAIL, who="globex")
    job = await api.create_job()
    rule = {
        "name": "billing",
        "events": ["run_failed", "recovered"],
        "channels": [channel["id"]],
        "scope": {"jobs": [job["id"]], "tags": ["billing"]},
        "after_n": 2,
        "cooldown": "1h",
        "quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "Europe/Madrid"},
    }
    made = await create(api, "/notification-rules", rule)
    for name, value in rule.items():
        if name not in ("quiet_hours", "scope"):
            assert made[name] == value
    assert made["quiet_hours"]["timezone"] == "Europe/Madrid"
    crossing = await api.request(
        "POST", "/notification-rules", json={**rule, "name": "y", "channels": [theirs["id"]]}
    )
    assert crossing.status_code == 422
    assert "/channels/0" in crossing.text
    used = await api.request("DELETE", f"/channels/{channel['id']}")
    assert used.status_code == 409
    muted = await api.request("PUT", f"/notification-rules/{made['id']}", json={**rule, "channels": []})
    assert muted.json()["channels"] == []
    assert (await api.request("DELETE", f"/notification-rules/{made['id']}")).status_code == 204


async def test_another_workspace_finds_none_of_it(api: ApiHarness) -> None:
    channel = await create(api, "/channels", MAIL)
    rule = await create(api, "/notification-rules", {"name": "r", "events": ["run_failed"]})
    for path in (f"/channels/{channel['id']}", f"/notification-rules/{rule['id']}"):
        assert (await api.request("GET", path, who="globex")).status_code == 404
        assert (await api.request("DELETE", path, who="globex")).status_code == 404
    assert (await api.request("GET", "/incidents", who="globex")).json()["items"] == []


@pytest.mark.requirement("S1-D1")
async def test_a_job_has_notification_preferences_of_its_own(api: ApiHarness) -> None:
    job = await api.create_job(name="plain")
    assert job["notify"] is None
    path = f"/jobs/{job['id']}"
    changed = await api.request("PATCH", path, json={"notify": {"recipients": ["ana@example.com"]}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["notify"] == {
        "email": True,
        "slack": False,
        "whatsapp": False,
        "recipients": ["ana@example.com"],
    }
    refused = await api.request("PATCH", path, json={"notify": {"fax": True}})
    assert refused.status_code == 422
    assert (await api.request("PATCH", path, json={"notify": None})).json()["notify"] is None


async def test_a_viewer_reads_a_delivery_and_refused_addresses(api: ApiHarness) -> None:
    channel = await create(api, "/channels", MAIL | {"name": "read by all"})
    sent = (await api.request("POST", f"/channels/{channel['id']}/test", role="operator")).json()
    shown = await api.request("GET", f"/deliveries/{sent['id']}", role="viewer")
    assert shown.status_code == 200
    async with api.database.tx(Role.APP, api.ids["acme"]) as tx:
        refused = [RefusedAddress("ops@example.com", "550 no such user")]
        await channels.add_refused(tx, ChannelId(UUID(channel["id"])), refused)
    seen = await api.request("GET", f"/channels/{channel['id']}", role="viewer")
    assert seen.json()["refused"][0]["reason"] == "550 no such user"
