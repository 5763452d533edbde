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
from tests.web.conftest import Town, job

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def items(town: Town, path: str, **more: Any) -> list[dict[str, Any]]:
    answer = await town.ask("GET", path, **{"role": "viewer", **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_a_worker_is_alive_then_draining_then_lost_and_then_forgotten(
    town: Town, clock: ManualClock
) -> None:
    began = clock.now()
    worker = await workers.register(town.database, "host/1", ["default"], ["http"], 10)
    [found] = await items(town, "/workers")
    assert (found["id"], found["name"], found["status"]) == (str(worker), "host/1", "alive")
    assert (found["queues"], found["types"], found["capacity"]) == (["default"], ["http"], 10)
    assert found["since"] == found["last_heartbeat_at"] == write_instant(began)
    beat = clock.advance(timedelta(seconds=10))
    await workers.beat(town.database, worker, draining=True)
    [found] = await items(town, "/workers")
    assert (found["status"], found["last_heartbeat_at"]) == ("draining", write_instant(beat))
    clock.advance(MINUTE)
    assert [each["status"] for each in await items(town, "/workers")] == ["lost"]
    await sweep(town.database)
    [found] = await items(town, "/workers")
    assert (found["id"], found["status"], found["last_heartbeat_at"]) == (
        str(worker),
        "lost",
        write_instant(beat),
    )
    clock.advance(timedelta(days=2))
    assert await overview.forget_lost(town.database) == 1
    assert await items(town, "/workers") == []


async def test_what_a_worker_runs_is_counted_for_the_workspace_that_asks(
    town: Town, clock: ManualClock
) -> None:
    for who in ("acme", "acme", "globex"):
        await town.make(who)
    clock.advance(timedelta(minutes=10))
    worker = await workers.register(town.database, "host/1", ["default"], ["http"], 10)
    await tick(town.database)
    assert len(await claim(town.database, worker, "default", ["http"], 10, Turns())) == 3
    for who, running in (("acme", 2), ("globex", 1), ("outsider", 0)):
        assert [each["running"] for each in await items(town, "/workers", who=who)] == [running]


async def test_a_worker_of_one_workspace_is_not_there_for_another(town: Town) -> None:
    await workers.register(town.database, "of globex", ["default"], ["http"], 1, town.ids["globex"])
    assert [each["name"] for each in await items(town, "/workers", who="globex")] == ["of globex"]
    assert await items(town, "/workers") == []


async def test_a_queue_tells_what_stands_in_it_and_what_nobody_could_take(
    town: Town, clock: ManualClock
) -> None:
    await workers.register(town.database, "host/1", ["default"], ["http"], 10)
    await town.make()
    await town.make(name="letters", queue="mail")
    await town.make("globex", queue="theirs")
    due = clock.advance(timedelta(minutes=10))
    await tick(town.database)
    clock.advance(timedelta(seconds=10))
    found = await items(town, "/queues")
    assert [each["name"] for each in found] == ["default", "mail"]
    mail = found[1]
    assert (mail["ready"], mail["waiting"], mail["running"], mail["workers"]) == (1, 0, 0, 0)
    assert mail["oldest_ready_at"] == write_instant(due)
    assert mail["warnings"] == ['No live worker serves type "http" on queue "mail".']


async def test_to_an_agent_only_its_own_runs_stand_in_line(town: Town, clock: ManualClock) -> None:
    town.keys["acme", "agent"] = await town.enrol("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    await town.make(queue="secret-project")
    await town.make()
    await town.ask("POST", "/jobs", role="agent", json=job())
    clock.advance(timedelta(minutes=10))
    await tick(town.database)
    found = await items(town, "/queues", role="agent")
    assert [(each["name"], each["ready"]) for each in found] == [("default", 1)]


async def test_types_are_known_to_the_server_to_workers_or_to_both(town: Town) -> None:
    await workers.register(town.database, "host/1", ["default"], ["http", "alert_check"], 10)
    found = {each["name"]: each for each in await items(town, "/job-types")}
    assert found["http"]["known_to"] == ["server", "workers"]
    assert found["http"]["config_schema"]["required"] == ["url"]
    assert (found["python"]["active"], found["python"]["known_to"]) == (False, ["server"])
    alert = found["alert_check"]
    assert (alert["active"], alert["known_to"], alert["config_schema"]) == (True, ["workers"], None)
