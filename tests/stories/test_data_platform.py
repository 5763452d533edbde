"""Story A2, a data platform: two schedulers, a holder that is killed, the three modes of overlap, and the six actions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import httpx2 as httpx
import pytest
from pydantic import BaseModel

from foliot.engine.scheduler import Scheduler
from foliot.handlers.registry import Assignment, Handler, HandlerResult, failed, succeeded
from foliot.sdk import AsyncClient
from foliot.storage.tx import Database
from tests.polling import wait_until
from tests.stories.execution_log import ExecutionLog
from tests.stories.virtual_server import FunctionHandler, VirtualServer

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ROUNDS = 100


@dataclass
class Platform:
    """The platform's calls of /actions, and the names of what its handlers ran."""

    server: VirtualServer
    http: httpx.AsyncClient
    client: AsyncClient
    ran: list[str]
    gate: asyncio.Event

    async def act(self, name: str, **params: Any) -> dict[str, Any]:
        body = {"Params": [{"Name": each, "Value": value} for each, value in params.items()]}
        answer = await self.http.post(f"/actions/{name}", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def create(self, name: str, cron: str = "*/5 * * * *", action: str = "count", **params: Any) -> str:
        config = {"ActionName": action, "Parameters": [{"Name": "Label", "Value": name}]}
        given = {
            "Name": name,
            "JobTypeID": "Action",
            "CronExpression": cron,
            "Configuration": config,
            **params,
        }
        done = await self.act("Create Scheduled Job", **given)
        assert done["ResultCode"] == "SUCCESS", done
        return str(output(done)["JobID"])

    async def statuses(self, job_id: str) -> list[str]:
        return [each.status for each in reversed((await self.client.runs.list(job=job_id)).items)]


def output(answer: dict[str, Any]) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in answer["Params"]}


class VectorizeConfig(BaseModel):
    entity: str


class Vectorize:
    """A driver of the platform's own, registered under its name."""

    description: ClassVar = "Vectorize an entity."
    config_shape: ClassVar = VectorizeConfig

    async def run(self, assignment: Assignment) -> HandlerResult:
        ctx = assignment.ctx
        return succeeded(f"{ctx.job} run {ctx.number} vectorized {assignment.config['entity']}")

    async def close(self) -> None:
        pass


@pytest.fixture
async def platform(virtual_server: VirtualServer) -> AsyncIterator[Platform]:
    ran: list[str] = []
    gate = asyncio.Event()

    async def count(assignment: Assignment) -> HandlerResult:
        ran.append(str(assignment.config["Label"]))
        return succeeded()

    async def hang(assignment: Assignment) -> HandlerResult:
        ran.append(str(assignment.config["Label"]))
        await gate.wait()
        return succeeded()

    async def fail_twice(assignment: Assignment) -> HandlerResult:
        ran.append(str(assignment.config["Label"]))
        return failed("source_down", "No data.") if len(ran) in {5, 17} else succeeded()

    headers = {"Authorization": f"Bearer {virtual_server.key}"}
    types: dict[str, Handler] = {
        "count": FunctionHandler(count), "hang": FunctionHandler(hang), "sometimes": FunctionHandler(fail_twice),
        "Vectorize": Vectorize(),
    }  # fmt: skip
    async with (
        virtual_server.worker(types),
        virtual_server.client() as client,
        httpx.AsyncClient(base_url=f"{virtual_server.url}/api/v1", headers=headers) as http,
    ):
        yield Platform(virtual_server, http, client, ran, gate)
        gate.set()


@pytest.mark.requirement("S2-1", "S2-3", "S2-10", "S2-11")
async def test_two_schedulers_run_each_occurrence_once(platform: Platform, login_url: str) -> None:
    server = platform.server
    made = await platform.create("count")
    job = await platform.client.jobs.get(made)
    assert (job.overlap, job.type, job.config["action"]) == ("skip", "action", "count")
    async with Database(login_url, clock=server.clock) as second:
        server.schedulers.append(Scheduler(second, server.announce))
        async with server.worker({"count": FunctionHandler(_unused)}, permits=1):
            pass  # a second worker comes and goes in good order
        await server.advance(ROUNDS * 5 * MINUTE)
        server.schedulers.pop()
    assert platform.ran == ["count"] * ROUNDS
    planned = server.sql("SELECT planned_for, status FROM foliot.runs ORDER BY planned_for")
    assert len({at for at, _ in planned}) == len(planned) == ROUNDS
    assert {status for _, status in planned} == {"succeeded"}
    assert (await platform.client.jobs.get(made)).next_run_at == server.now() + 5 * MINUTE


async def _unused(assignment: Assignment) -> HandlerResult:
    return failed("unused", "Nobody calls it.")


@pytest.mark.requirement("S2-4", "S2-5", "S2-6", "S2-7", "S2-35", "S1-E3")
async def test_the_lock_of_a_killed_holder_is_named_and_taken_back(platform: Platform) -> None:
    server, client, log = platform.server, platform.client, ExecutionLog(platform.server.folder)
    member = await client.members.create("second", kind="service", role="viewer")
    key = (await client.keys.create("second", principal=member.id, scopes=["worker"])).secret
    holder = server.start("worker", "--queue", "far", key=key)
    await asyncio.to_thread(holder.wait_for, r'"worker.registered"')
    job = await client.jobs.create(
        {
            "name": "sync", "type": "python", "config": {"call": "job_functions:gated"}, "payload": log.payload,
            "schedule": {"kind": "cron", "expr": "0 13 * * *", "timezone": "UTC"}, "queue": "far", "timeout": "4m",
        }
    )  # fmt: skip
    server.held.add("sync")
    await server.advance_to(server.now().replace(hour=13))
    await wait_until(lambda: log.executions("began"))
    [lease] = (await client.leases()).items
    assert (lease.job, lease.fence, lease.since, lease.overdue) == ("sync", 1, server.now(), False)
    assert lease.deadline_at == server.now() + 4 * MINUTE
    name = lease.worker_name
    assert name is not None
    assert name.endswith(f"/{holder.process.pid}")
    holder.process.kill()
    holder.process.wait()

    # The lease runs out. Until the next cycle an operator sees whose it is, and for how long it is overdue.
    assert (await client.leases(overdue=True)).items == []
    server.clock.advance(7 * MINUTE)
    [stale] = (await client.leases(overdue=True)).items
    assert (stale.worker_name, stale.overdue_ms) == (name, 3 * 60_000)
    report = await client.jobs.explain(job.id)
    assert report.facts == [
        f"Worker {name} holds it and is overdue by 3 min: the next sweep takes the run back."
    ]

    # The next cycle takes it back by itself, and another worker repeats the run.
    await server.sweeper.step()
    assert (await client.leases()).items == []
    [run] = (await client.runs.list(job=str(job.id))).items
    assert [each.status for each in (await client.runs.attempts(run.id)).items] == ["lost"]
    log.open_gate()
    again = server.start("worker", "--queue", "far", key=key)
    await asyncio.to_thread(again.wait_for, r'"worker.registered"')
    server.held.clear()
    await server.advance(MINUTE)
    assert (await client.runs.get(run.id)).status == "succeeded"
    assert [fence for _, _, fence in log.executions("began")] == [1, 2]


@pytest.mark.requirement("S2-8", "X-8")
async def test_skip_queue_and_concurrent_and_a_hung_handler_delays_nobody(platform: Platform) -> None:
    server = platform.server
    server.held |= {"skips", "queues", "both"}
    skips, queues, both = [
        await platform.create(name, action="hang", ConcurrencyMode=mode)
        for name, mode in (("skips", "Skip"), ("queues", "Queue"), ("both", "Concurrent"))
    ]
    await platform.create("quick", "* * * * *")
    await server.advance(10 * MINUTE)
    await wait_until(lambda: Counter(platform.ran)["both"] == 2)
    assert await platform.statuses(skips) == ["running", "skipped"]
    assert await platform.statuses(queues) == ["running", "waiting"]
    assert await platform.statuses(both) == ["running", "running"]
    # Three handlers have hung for minutes; the fourth job ran each minute, at its minute.
    starts = server.sql(
        "SELECT r.started_at - r.planned_for FROM foliot.runs r JOIN foliot.jobs j ON j.id = r.job_id WHERE j.name = 'quick'"
    )
    assert [late for (late,) in starts] == [timedelta(0)] * 10
    platform.gate.set()
    server.held.clear()
    await server.settle()
    assert await platform.statuses(skips) == ["succeeded", "skipped"]
    assert await platform.statuses(queues) == ["succeeded", "succeeded"]
    assert await platform.statuses(both) == ["succeeded", "succeeded"]
    assert Counter(platform.ran) == {"skips": 1, "queues": 2, "both": 2, "quick": 10}


@pytest.mark.requirement("S2-25", "S2-26", "S2-27", "S2-28", "S2-29")
async def test_the_six_actions_answer_in_their_own_words(platform: Platform) -> None:
    server = platform.server
    bad = await platform.act(
        "Create Scheduled Job", Name="bad", JobTypeID="Action", CronExpression="61 * * * *"
    )
    assert (bad["Success"], bad["ResultCode"]) == (False, "VALIDATION_ERROR")
    made = await platform.create("nightly", "0 2 * * *", action="sometimes")
    await platform.client.jobs.patch(made, {"retry": {"max": 0}})
    same = await platform.act("Update Scheduled Job", JobID=made, Name="nightly", Status="Active")
    assert (same["Success"], same["ResultCode"]) == (True, "NO_CHANGES")
    await platform.act("Update Scheduled Job", JobID=made, Status="Paused")
    refused = await platform.act("Execute Scheduled Job Now", JobID=made)
    assert (refused["Success"], refused["ResultCode"]) == (False, "VALIDATION_ERROR")
    await platform.act("Update Scheduled Job", JobID=made, Status="Active")

    await server.advance(29 * DAY)
    started = output(await platform.act("Execute Scheduled Job Now", JobID=made))["RunID"]
    await server.settle()
    assert (await platform.client.runs.get(started)).status == "succeeded"
    asked = await platform.act("Get Scheduled Job Statistics", JobID=made, DaysBack="30")
    [figures] = output(asked)["Statistics"]
    assert (figures["TotalRuns"], figures["SuccessfulRuns"], figures["FailedRuns"]) == (30, 28, 2)
    assert (figures["SuccessRate"], figures["LastRunStatus"], figures["JobName"]) == (
        93,
        "Completed",
        "nightly",
    )
    kept = await platform.act("Delete Scheduled Job", JobID=made)
    assert (kept["Success"], kept["ResultCode"]) == (False, "REFERENCE_CONSTRAINT")
    assert (await platform.client.jobs.get(made)).status == "active"


@pytest.mark.requirement("S2-12", "S2-20", "S2-21")
async def test_a_job_past_its_end_is_expired_and_a_registered_class_runs(platform: Platform) -> None:
    server = platform.server
    end = server.now() + 90 * MINUTE
    made = await platform.act(
        "Create Scheduled Job", Name="vectors", JobTypeID="Vectorize", CronExpression="0 * * * *",
        Configuration={"entity": "Contacts"}, EndAt=end.isoformat(),
    )  # fmt: skip
    job_id = output(made)["JobID"]
    await server.advance(2 * HOUR)
    [run] = (await platform.client.runs.list(job=job_id)).items
    assert (run.status, run.output) == ("succeeded", "vectors run 1 vectorized Contacts")
    [job] = output(await platform.act("Query Scheduled Jobs", Status="Expired"))["Jobs"]
    assert (job["ID"], job["Status"], job["NextRunAt"]) == (job_id, "Expired", None)
    assert (await platform.client.jobs.get(job_id)).status == "expired"
