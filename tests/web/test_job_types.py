"""/job-types: what workers tell of types that only they know, and switching a type off for a workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.scheduling.tick import tick
from foliot.services.workers import workers
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
SCHEMA = {
    "type": "object",
    "properties": {"source": {"type": "string"}, "tables": {"type": "array", "items": {"type": "string"}}},
    "required": ["source"],
    "additionalProperties": False,
}


async def types(api: ApiHarness, who: str = "acme") -> dict[str, Any]:
    return {each["name"]: each for each in (await api.request("GET", "/job-types", who=who)).json()["items"]}


async def employ(api: ApiHarness, lease: timedelta = workers.LEASE) -> None:
    reported = [JobTypeDescription("DATA_SYNC", "Copy tables.", SCHEMA)]
    await workers.register(api.database, "w", ["*"], ["DATA_SYNC"], 1, lease=lease, described=reported)


def sync(**config: Any) -> dict[str, Any]:
    return {"name": "s", "type": "DATA_SYNC", "schedule": {"kind": "manual"}, "config": config}


async def test_a_type_that_only_a_worker_knows_is_listed_with_what_it_takes(
    api: ApiHarness, clock: ManualClock
) -> None:
    assert "DATA_SYNC" not in await types(api)
    await employ(api)
    found = (await types(api))["DATA_SYNC"]
    assert (found["description"], found["config_schema"]) == ("Copy tables.", SCHEMA)
    assert (found["active"], found["enabled"], found["known_to"]) == (True, True, ["workers"])
    clock.advance(timedelta(days=1))  # its worker is gone; what it reported is still known
    found = (await types(api))["DATA_SYNC"]
    assert (found["active"], found["config_schema"]) == (False, SCHEMA)


async def test_a_config_that_does_not_fit_what_a_worker_reported_is_refused(api: ApiHarness) -> None:
    assert (
        await api.request("POST", "/jobs", json=sync(anything=1))
    ).status_code == 201  # nobody knows it yet
    await employ(api)
    refused = await api.request("POST", "/jobs", json=sync(source=1, tables=["a", 2]))
    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/config/source", "/config/tables/1"]
    assert (await api.request("POST", "/jobs", json=sync(tables=[]))).status_code == 422
    made = await api.request("POST", "/jobs", json={**sync(source="crm"), "name": "t"})
    assert (made.status_code, made.json()["warnings"]) == (201, [])
    changed = await api.request("PATCH", f"/jobs/{made.json()['id']}", json={"config": {"source": 5}})
    assert changed.status_code == 422


@pytest.mark.requirement("S2-18")
async def test_a_type_that_is_type_off_skips_its_planned_times_in_that_workspace_alone(
    api: ApiHarness, clock: ManualClock, owner: Any
) -> None:
    mine, theirs = await api.create_job(), await api.create_job("globex")
    off = await api.request(
        "PUT", "/job-types/http", role="admin", json={"enabled": False, "reason": "moving"}
    )
    assert (off.status_code, off.json()["enabled"], off.json()["disabled_reason"]) == (200, False, "moving")
    assert (await types(api, "globex"))["http"]["enabled"] is True
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    [skipped] = (await api.request("GET", f"/jobs/{mine['id']}/runs")).json()["items"]
    assert (skipped["status"], skipped["skip_reason"]) == ("skipped", "type_disabled")
    [fired] = (await api.request("GET", f"/jobs/{theirs['id']}/runs", who="globex")).json()["items"]
    assert fired["status"] == "ready"
    refused = await api.request("POST", f"/jobs/{mine['id']}/run")
    assert (refused.status_code, "switched off" in refused.json()["detail"]) == (409, True)
    why = (await api.request("GET", f"/runs/{skipped['id']}/explain")).json()
    assert "switched off" in str(why)
    on = await api.request("PUT", "/job-types/http", role="admin", json={"enabled": True})
    assert on.json()["enabled"] is True
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    runs = (await api.request("GET", f"/jobs/{mine['id']}/runs")).json()["items"]
    assert [each["status"] for each in runs] == ["ready", "skipped"]
    trail = owner.execute(
        "SELECT action FROM foliot.audit WHERE action LIKE 'job_type.%' ORDER BY id"
    ).fetchall()
    assert trail == [("job_type.disabled",), ("job_type.enabled",)]


async def test_only_administrators_switch_types_and_only_those_that_there_are(api: ApiHarness) -> None:
    for role in ("viewer", "operator", "editor"):
        answer = await api.request("PUT", "/job-types/http", role=role, json={"enabled": False})
        assert answer.status_code == 403
    assert (
        await api.request("PUT", "/job-types/NOTHING", role="admin", json={"enabled": False})
    ).status_code == 404
