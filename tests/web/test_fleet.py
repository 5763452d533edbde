"""/workers, /queues and /job-types: who is there, what stands in line, and what nobody could take."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.sweep import sweep
from foliot.services.workers import overview, workers
from foliot.services.workers.claim import Turns, claim
from foliot.testing.clock import ManualClock
from foliot.wire.instants import write_instant
from tests.web.conftest import ApiHarness, job

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def items(api: ApiHarness, path: str, **more: Any) -> list[dict[str, Any]]:
    answer = await api.request("GET", path, **{"role": "viewer", **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_a_worker_is_alive_then_draining_then_lost_and_then_forgotten(
    api: ApiHarness, clock: ManualClock
) -> None:
    began = clock.now()
    worker = await workers.register(api.database, "host/1", ["default"], ["http"], 10)
    [found] = await items(api, "/workers")
    assert (found["id"], found["name"], found["status"]) == (str(worker), "host/1", "alive")
    assert (found["queues"], found["types"], found["capacity"]) == (["default"], ["http"], 10)
    assert found["since"] == found["last_heartbeat_at"] == write_instant(began)
    beat = clock.advance(timedelta(seconds=10))
    await workers.beat(api.database, worker, draining=True)
    [found] = await items(api, "/workers")
    assert (found["status"], found["last_heartbeat_at"]) == ("draining", write_instant(beat))
    clock.advance(MINUTE)
    assert [each["status"] for each in await items(api, "/workers")] == ["lost"]
    await sweep(api.database)
    [found] = await items(api, "/workers")
    assert (found["id"], found["status"], found["last_heartbeat_at"]) == (
        str(worker),
        "lost",
        write_instant(beat),
    )
    clock.advance(timedelta(days=2))
    assert await overview.forget_lost(api.database) == 1
    assert await items(api, "/workers") == []


async def test_what_a_worker_runs_is_counted_for_the_workspace_that_asks(
    api: ApiHarness, clock: ManualClock
) -> None:
    for who in ("acme", "acme", "globex"):
        await api.create_job(who)
    clock.advance(timedelta(minutes=10))
    worker = await workers.register(api.database, "host/1", ["default"], ["http"], 10)
    await tick(api.database)
    assert len(await claim(api.database, worker, "default", ["http"], 10, Turns())) == 3
    for who, running in (("acme", 2), ("globex", 1), ("outsider", 0)):
        assert [each["running"] for each in await items(api, "/workers", who=who)] == [running]


async def test_a_worker_of_one_workspace_is_not_there_for_another(api: ApiHarness) -> None:
    await workers.register(api.database, "of globex", ["default"], ["http"], 1, api.ids["globex"])
    assert [each["name"] for each in await items(api, "/workers", who="globex")] == ["of globex"]
    assert await items(api, "/workers") == []


async def test_a_queue_tells_what_stands_in_it_and_what_nobody_could_take(
    api: ApiHarness, clock: ManualClock
) -> None:
    await workers.register(api.database, "host/1", ["default"], ["http"], 10)
    await api.create_job()
    await api.create_job(name="letters", queue="mail")
    await api.create_job("globex", queue="theirs")
    due = clock.advance(timedelta(minutes=10))
    await tick(api.database)
    clock.advance(timedelta(seconds=10))
    found = await items(api, "/queues")
    assert [each["name"] for each in found] == ["default", "mail"]
    mail = found[1]
    assert (mail["ready"], mail["waiting"], mail["running"], mail["workers"]) == (1, 0, 0, 0)
    assert mail["oldest_ready_at"] == write_instant(due)
    assert mail["warnings"] == ['No live worker serves type "http" on queue "mail".']


async def test_a_worker_for_all_queues_serves_each_of_them(api: ApiHarness) -> None:
    await workers.register(api.database, "host/1", ["*"], ["http"], 10)
    await workers.register(api.database, "host/2", ["mail"], ["http"], 10)
    await api.create_job()
    await api.create_job(name="letters", queue="mail")
    found = await items(api, "/queues")
    assert {each["name"]: each["workers"] for each in found} == {"*": 1, "default": 1, "mail": 2}


async def test_to_an_agent_only_its_own_runs_stand_in_line(api: ApiHarness, clock: ManualClock) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    await api.create_job(queue="secret-project")
    await api.create_job()
    await api.request("POST", "/jobs", role="agent", json=job())
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    found = await items(api, "/queues", role="agent")
    assert [(each["name"], each["ready"]) for each in found] == [("default", 1)]


async def test_types_are_known_to_the_server_to_workers_or_to_both(api: ApiHarness) -> None:
    await workers.register(api.database, "host/1", ["default"], ["http", "alert_check"], 10)
    found = {each["name"]: each for each in await items(api, "/job-types")}
    assert found["http"]["known_to"] == ["server", "workers"]
    assert found["http"]["config_schema"]["required"] == ["url"]
    assert (found["python"]["active"], found["python"]["known_to"]) == (False, ["server"])
    alert = found["alert_check"]
    assert (alert["active"], alert["known_to"], alert["config_schema"]) == (True, ["workers"], None)
