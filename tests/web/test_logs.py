"""/runs/{id}/logs: a page at a time, or line by line until the run ends."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.logs import LogLine, LogStream
from foliot.domain.outcomes import Succeeded
from foliot.services.runs import logs
from foliot.services.runs.logs import LogChunk
from foliot.services.runs.retention import prune
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness
from tests.web.event_streams import serve_streams

pytestmark = pytest.mark.anyio
WORKER = WorkerId(uuid4())
FENCES = count(1)  # each delivery is a holder's first


async def running(api: ApiHarness, clock: ManualClock, **fields: Any) -> Claimed:
    await api.create_job(**fields)
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    [claimed] = await claim(api.database, await api.register_worker(WORKER), "default", ["http"], 1, Turns())
    return claimed


async def write(api: ApiHarness, clock: ManualClock, run_id: UUID, *texts: str, attempt: int = 1) -> None:
    lines = [LogLine(clock.now(), LogStream.LOG, text) for text in texts]
    await logs.append(api.database, [LogChunk(RunId(run_id), attempt, next(FENCES), 1, lines)])


async def ended(api: ApiHarness, run: Claimed) -> None:
    await report(api.database, [Report(run.run_id, run.job_id, run.fence, WORKER, Succeeded())])


async def test_lines_are_read_a_page_at_a_time(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    path = f"/runs/{run.run_id}/logs"
    nothing: dict[str, Any] = {"items": [], "next_cursor": None, "truncated": False}
    assert (await api.request("GET", path, role="viewer")).json() == nothing
    await write(api, clock, run.run_id, "one", "two")
    await write(api, clock, run.run_id, "three", attempt=2)
    first = (await api.request("GET", path, params={"limit": 2})).json()
    assert [(each["seq"], each["text"]) for each in first["items"]] == [(1, "one"), (2, "two")]
    rest = (await api.request("GET", path, params={"cursor": first["next_cursor"]})).json()
    [line] = rest["items"]
    assert (line["seq"], line["attempt"], line["stream"], rest["next_cursor"]) == (3, 2, "log", None)
    last = (await api.request("GET", path, params={"tail": 2})).json()
    assert [each["text"] for each in last["items"]] == ["two", "three"]
    assert len((await api.request("GET", path, params={"tail": 1000})).json()["items"]) == 3
    for wrong in ("x", "-1", "9999999999"):
        assert (await api.request("GET", path, params={"cursor": wrong})).status_code == 422


async def test_who_follows_a_run_gets_each_line_once_and_its_end(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    path = f"/runs/{run.run_id}/logs"
    await write(api, clock, run.run_id, "one")
    async with serve_streams(api) as edge:
        async with edge.stream(f"{path}?follow=true") as reader:
            first = await reader.event()
            assert first is not None
            assert (first.event, first.id, first.data["text"]) == ("line", "1", "one")
            await write(api, clock, run.run_id, "two")
            second = await reader.event()
            assert second is not None
            assert second.data["text"] == "two"
        await write(api, clock, run.run_id, "three")
        await ended(api, run)
        async with edge.stream(path, Accept="text/event-stream", Last_Event_ID="2") as reader:
            third, end, over = await reader.event(), await reader.event(), await reader.event()
        assert third is not None
        assert end is not None
        assert third.data["text"] == "three"
        assert (end.event, end.data) == ("end", {"status": "succeeded", "truncated": False})
        assert over is None


async def test_lines_are_for_those_who_may_see_the_run(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    await write(api, clock, run.run_id, "canary")
    path = f"/runs/{run.run_id}/logs"
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    for who, role in (("globex", "admin"), ("acme", "agent")):
        there = await api.request("GET", path, who=who, role=role)
        nowhere = await api.request("GET", f"/runs/{uuid4()}/logs", who=who, role=role)
        assert there.status_code == 404
        assert there.json() | {"request_id": 0} == nowhere.json() | {"request_id": 0}


async def test_lines_go_with_their_run(api: ApiHarness, clock: ManualClock, owner: Any) -> None:
    run = await running(api, clock, retention={"keep": "1s", "keep_last": 1, "mode": "any"})
    await write(api, clock, run.run_id, "old")
    await ended(api, run)
    owner.execute(
        "UPDATE foliot.scans SET position = 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE name = 'roll_up'"
    )
    clock.advance(timedelta(days=2))
    assert (await prune(api.database)).runs == 1
    for table in ("logs", "log_chunks"):
        assert owner.execute(f"SELECT count(*) FROM foliot.{table}").fetchone() == (0,)
