"""Story A0, a fleet of game servers: a nightly restart by the clock, three attempts, a window, a broken queue, and another organisation."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from foliot.engine.scheduler import Scheduler
from foliot.sdk import AsyncClient, NotFound
from tests.stories.execution_log import ExecutionLog
from tests.stories.server_process import LoggedProcess
from tests.stories.virtual_server import VirtualServer

pytestmark = pytest.mark.anyio
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
# PostgreSQL takes no run of this job by its schedule.
BREAK = """
    CREATE OR REPLACE FUNCTION foliot.refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '22000'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON foliot.runs FOR EACH ROW
        WHEN (NEW.trigger = 'schedule' AND NEW.status IS NULL) EXECUTE FUNCTION foliot.refuse()"""


async def add_organisation(server: VirtualServer, slug: str) -> str:
    """Return the key of its administrator."""
    async with server.client() as system:
        await system.workspaces.create(slug)
    async with server.client(workspace=slug) as system:
        member = await system.members.create("chief", kind="user", role="admin")
        return (await system.keys.create("chief", principal=member.id)).secret


async def worker_key(admin: AsyncClient) -> str:
    member = await admin.members.create("hosts", kind="service", role="viewer")
    return (await admin.keys.create("hosts", principal=member.id, scopes=["worker"])).secret


async def start_host(server: VirtualServer, key: str) -> LoggedProcess:
    host = server.start("host", "--name", "h1", "--instance", "pvp", "--allow-python", key=key)
    await asyncio.to_thread(host.wait_for, r'"worker.registered"')
    return host


def restart(log: ExecutionLog) -> dict[str, Any]:
    """The schedule, in the words of the fleet's own system."""
    return {
        "name": "restart", "jobType": "python", "cronExpression": "0 2 * * *", "timezone": "UTC",
        "executionWindowStart": "02:00", "executionWindowEnd": "06:00", "payload": log.payload,
        "retryPolicy": {"maxRetries": 2, "backoffMs": 1000, "backoffType": "exponential"},
        "config": {"call": "job_functions:third_time_lucky"}, "target": {"server": "pvp"},
    }  # fmt: skip


@pytest.mark.requirement("S0-1", "S0-9", "S0-15", "S0-19", "S0-20", "S0-22", "S0-24", "S0-25", "S0-26")
async def test_a_server_is_restarted_at_two_by_the_clock_at_the_third_attempt(
    virtual_server: VirtualServer,
) -> None:
    server, log = virtual_server, ExecutionLog(virtual_server.folder)
    alpha, beta = [await add_organisation(server, slug) for slug in ("alpha", "beta")]
    async with server.client(alpha) as admin:
        key = await worker_key(admin)
        paired = await start_host(server, key)
        await asyncio.to_thread(paired.stop)
        job = await admin.jobs.create(restart(log))
        two = (server.now() + DAY).replace(hour=2, minute=0, second=0, microsecond=0)
        assert job.next_run_at == two

        # The clock starts it, and not a second earlier. It waits for its host, which is away.
        server.held.add("restart")
        await server.advance_to(two - SECOND)
        assert (await admin.runs.list(job=str(job.id))).items == []
        await server.advance(SECOND)
        [pending] = (await admin.runs.list(job=str(job.id))).items
        assert (pending.status, pending.trigger, pending.planned_for) == ("ready", "schedule", two)
        assert 'waits for server "pvp": host h1' in (await admin.runs.explain(pending.id)).sentence
        assert (await admin.jobs.get(job.id)).last_fire_status == "queued"

        # Its agent comes, takes it, and reports two failures and a success. The waits are exact.
        await start_host(server, key)
        server.held.clear()
        for attempt, wait in ((1, 1), (2, 2)):
            while len(log.executions("tried")) < attempt:
                await server.settle()
            assert (await admin.runs.get(pending.id)).attempt_count == attempt
            await server.advance(wait * SECOND - timedelta(milliseconds=1))
            assert len(log.executions("tried")) == attempt
            await server.advance(timedelta(milliseconds=1))
        done = await admin.runs.get(pending.id)
        assert (done.status, done.attempt_count) == ("succeeded", 3)
        attempts = (await admin.runs.attempts(pending.id)).items
        assert [each.status for each in attempts] == ["failed", "failed", "succeeded"]
        waits = [(later.started_at - _end(earlier)) / SECOND for earlier, later in pairwise(attempts)]
        assert waits == [1, 2]
        lines = [line.text for line in (await admin.runs.logs(done.id)).items]
        assert lines == ["attempt 1", "attempt 2", "attempt 3"]
        after = await admin.jobs.get(job.id)
        assert (after.last_fire_status, after.last_run_status) == ("queued", "succeeded")
        assert (after.next_run_at, after.run_count, after.failure_count) == (two + DAY, 1, 0)

        # An earlier cron is put off until the window opens.
        earlier = await admin.jobs.patch(job.id, {"schedule": {"expr": "0 1 * * *"}})
        assert earlier.next_run_at == two + DAY

        # The queue is broken once, and a row beside it cannot be read: each costs its own planned time, counted once.
        bad = await admin.jobs.create({**restart(log), "name": "bad"})
        server.owner.execute(
            "UPDATE foliot.timers SET spec = replace(spec, '0 2 * * *', '61 25 * * *') WHERE job_id = %s",
            [bad.id],
        )
        server.owner.execute(
            "UPDATE foliot.jobs SET definition = replace(definition::text, '0 2 * * *', '61 25 * * *')::jsonb WHERE id = %s",
            [bad.id],
        )
        server.owner.execute(BREAK)
        server.schedulers = [Scheduler(server.database, server.announce)]  # the server starts again
        await server.advance_to(two + DAY)
        server.owner.execute("DROP TRIGGER refuse ON foliot.runs; DROP FUNCTION foliot.refuse()")
        broken = await admin.jobs.get(job.id)
        assert (broken.status, broken.last_fire_status) == ("active", "scheduler_failed")
        assert (broken.schedule_error_count, broken.failure_count) == (1, 0)
        await server.advance(timedelta(minutes=1))  # when it plans again
        again = await admin.jobs.get(job.id)
        assert (again.next_run_at, again.schedule_error_count, again.fire_count) == (two + 2 * DAY, 1, 1)

        # The next night is as if nothing had happened.
        await server.advance_to(two + 2 * DAY + 4 * SECOND)
        healed = await admin.jobs.get(job.id)
        assert (healed.last_fire_status, healed.last_run_status, healed.run_count) == (
            "queued",
            "succeeded",
            2,
        )
        assert healed.next_run_at == two + 3 * DAY
        [host] = (await admin.hosts.list()).items
    async with server.client(beta) as stranger:
        for ask in (stranger.jobs.get(job.id), stranger.runs.get(done.id), stranger.hosts.get(host.id)):
            with pytest.raises(NotFound):
                await ask
        assert (await stranger.jobs.list()).items == []


def _end(attempt: Any) -> datetime:
    assert isinstance(attempt.finished_at, datetime)
    return attempt.finished_at
