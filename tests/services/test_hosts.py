"""Hosts: runs go where their target is at that moment, one change at a time, and say why they wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import count
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Conflict, Invalid, WorkerGone
from foliot.domain.hosts import HostStatus
from foliot.domain.ids import HostId, JobId, RunId
from foliot.domain.logs import LogLine, LogStream
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.policy import Backoff, Limits, Retry
from foliot.domain.run import RunError, Target, TargetKind, Trigger
from foliot.domain.schedule import Cron, Interval, Manual
from foliot.domain.schedule.window import Window
from foliot.services.jobs import job_edits, jobs
from foliot.services.runs import explain, run_control
from foliot.services.runs.logs import LogChunk
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import expire_runs
from foliot.services.workers import hosts, remote, remote_register
from foliot.services.workers.limits import set_limit
from foliot.services.workers.overview import unserved
from foliot.services.workers.remote import RemoteReport
from foliot.services.workers.remote_register import RemoteWorkerHello
from foliot.testing.fixtures import TEST
from tests.services.remote_hosts import H1, PVP, RemoteHost, ids, register_host, worker_principal
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
HOURLY = Interval(HOUR)


async def run_manually(harness: WorkspaceHarness, job_id: JobId) -> RunId:
    return await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job_id)


async def why(harness: WorkspaceHarness, run_id: RunId) -> str:
    return (
        await explain.explain_run(harness.database, Scope(harness.workspace), run_id)
    ).explanation.sentence


@pytest.fixture
async def h1(harness: WorkspaceHarness) -> RemoteHost:
    return await register_host(harness.database, worker_principal(harness.workspace), "h1", "pvp")


async def test_the_clock_starts_the_run_of_two_in_the_morning_and_its_third_attempt_restarts_the_server(
    harness: WorkspaceHarness,
) -> None:
    """Story A0, by virtual time: nobody starts the run."""
    speaker = worker_principal(harness.workspace)
    await register_host(harness.database, speaker, "h1", "pvp")
    job = await harness.job(
        "restart",
        Cron("0 2 * * *"),
        target=PVP,
        window=Window(time(2), time(6)),
        retry=Retry(2, Backoff.EXPONENTIAL, base=SECOND),
    )
    two = datetime.combine((harness.clock.now() + 24 * HOUR).date(), time(2), UTC)
    harness.clock.set(two - SECOND)
    h1 = await register_host(harness.database, speaker, "h1", "pvp")
    assert (await harness.tick(), await h1.claim()) == (0, [])
    harness.clock.set(two)
    assert await harness.tick() == 1
    for number in (1, 2, 3):
        [work] = await h1.claim()
        claimed = work.claimed
        assert (claimed.attempt, claimed.trigger, claimed.planned_for) == (number, Trigger.SCHEDULE, two)
        outcome = Succeeded() if number == 3 else Failed(RunError("boom", "The server did not come up."))
        assert await h1.report(work, outcome)
        harness.clock.advance(3 * SECOND)
    assert harness.runs(job, "status, attempt_count, planned_for") == [("succeeded", 3, two)]
    assert harness.timer(job, "next_at") == (two + 24 * HOUR,)


async def test_a_run_for_a_server_goes_to_the_host_that_has_it_and_to_no_other_worker(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await harness.job("restart", HOURLY, target=PVP)
    harness.clock.advance(HOUR)
    assert await harness.tick() == 1
    assert await harness.claim() == []
    h2 = await register_host(harness.database, h1.speaker, "h2")
    assert await h2.claim() == []
    fresh = await register_host(harness.database, h1.speaker, "h1", "pvp")
    [work] = await fresh.claim()
    assert work.job == "restart"
    assert await fresh.report(work)
    assert harness.owner.execute("SELECT status FROM foliot.runs").fetchall() == [("succeeded",)]


@pytest.mark.requirement("S0-2")
async def test_an_instance_that_moves_takes_the_runs_that_wait_for_it_along(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    h2 = await register_host(harness.database, h1.speaker, "h2")
    job = await harness.job("restart", Manual(), target=PVP)
    await run_manually(harness, job)
    [instance] = (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).instances
    await hosts.change_instance(
        harness.database, Scope(harness.workspace, TEST), h1.id, instance.id, to=h2.id
    )
    assert await h1.claim() == []
    assert len(await h2.claim()) == 1


async def test_a_host_that_registers_an_instance_has_it_from_then_on(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    job = await harness.job("restart", Manual(), target=PVP)
    await run_manually(harness, job)
    h2 = await register_host(harness.database, h1.speaker, "h2", "pvp")
    assert await h1.claim() == []
    assert len(await h2.claim()) == 1
    moved = harness.owner.execute(
        "SELECT action FROM foliot.audit WHERE object_kind = 'instance' ORDER BY at, xmin::text::bigint"
    )
    assert [row[0] for row in moved.fetchall()] == ["instance.registered", "instance.moved"]


async def test_an_instance_of_a_living_host_is_not_taken_by_a_key_of_somebody_else(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    job = await harness.job("restart", Manual(), target=PVP)
    await run_manually(harness, job)
    stranger = worker_principal(harness.workspace)
    with pytest.raises(Conflict, match="online with the key of another member"):
        await register_host(harness.database, stranger, "h2", "pvp")
    assert len(await h1.claim()) == 1
    await h1.leave()
    h2 = await register_host(harness.database, stranger, "h2", "pvp")
    assert len(await h2.claim()) == 1


async def test_one_change_at_a_time_and_several_reads_beside_it(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    for n in range(3):
        await run_manually(harness, await harness.job(f"change {n}", Manual(), target=PVP))
    for n in range(10):
        await run_manually(harness, await harness.job(f"read {n}", Manual(), target=H1, read_only=True))
    taken = await h1.claim(permits=100)
    assert sorted(work.job.split()[0] for work in taken) == ["change", *["read"] * 8]
    assert await h1.claim(permits=100) == []
    change = next(work for work in taken if work.job.startswith("change"))
    assert await h1.report(change)
    [following] = await h1.claim(permits=100)
    assert following.job == "change 1"


async def test_people_may_let_more_changes_go_at_once(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    for n in range(3):
        await run_manually(harness, await harness.job(f"change {n}", Manual(), target=PVP))
    await hosts.change(harness.database, Scope(harness.workspace, TEST), h1.id, {"max_mutations": 2})
    assert len(await h1.claim()) == 2


async def test_caps_of_the_workspace_bind_hosts_too(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "db", 1)
    for n in range(3):
        job = await harness.job(f"read {n}", Manual(), target=H1, read_only=True, concurrency_key="db")
        await run_manually(harness, job)
    [first] = await h1.claim()
    assert await h1.claim() == []
    assert await h1.report(first)
    assert len(await h1.claim()) == 1


async def test_a_target_that_nobody_has_is_refused_with_what_was_meant(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    wrong = Target(TargetKind.SERVER, "pvpp")
    with pytest.raises(Invalid) as refused:
        await harness.job("restart", HOURLY, target=wrong)
    assert (refused.value.pointer, refused.value.hint) == ("/target/server", 'Did you mean "pvp"?')


async def test_an_edit_of_the_target_redirects_what_waits(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    job = await harness.job("restart", Manual(), target=PVP)
    await run_manually(harness, job)
    definition = (await jobs.get(harness.database, harness.workspace, job)).definition
    free = replace(definition, spec=replace(definition.spec, target=None))
    await job_edits.edit(harness.database, Scope(harness.workspace, TEST), job, free)
    assert await h1.claim() == []
    assert len(await harness.claim()) == 1


@pytest.mark.requirement("S0-2")
async def test_a_retry_goes_to_the_host_that_has_the_server_by_then(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    retry = Retry(2, Backoff.EXPONENTIAL, base=SECOND)
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP, retry=retry))
    [work] = await h1.claim()
    assert await h1.report(work, Failed(RunError("boom", "It broke.")))
    h2 = await register_host(harness.database, h1.speaker, "h2", "pvp")
    harness.clock.advance(2 * SECOND)
    assert await h1.claim() == []
    [again] = await h2.claim()
    assert (again.claimed.attempt, again.claimed.fence) == (2, 2)


async def test_a_host_that_stays_away_loses_its_run_which_is_repeated_and_its_late_result_refused(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [work] = await h1.claim()
    harness.clock.advance(31 * SECOND)
    await sweep(harness.database)
    harness.clock.advance(SECOND)
    again = await register_host(harness.database, h1.speaker, "h1", "pvp")
    [repeated] = await again.claim()
    assert (repeated.claimed.run_id, repeated.claimed.fence) == (work.claimed.run_id, 2)
    assert not await h1.report(work)
    refused = "SELECT object_id, after ->> 'fence', after ->> 'outcome' FROM foliot.audit WHERE action = 'report.refused'"
    assert harness.owner.execute(refused).fetchall() == [(str(work.claimed.run_id), "1", "succeeded")]
    assert await again.report(repeated)


async def test_a_report_that_was_taken_before_is_taken_again_and_changes_nothing(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    retry = Retry(1, Backoff.FIXED, base=HOUR)
    first, second = (
        await harness.job("a", Manual(), target=PVP, retry=retry),
        await harness.job("b", Manual(), target=H1, read_only=True),
    )
    await run_manually(harness, first)
    await run_manually(harness, second)
    works = await h1.claim()
    failure = Failed(RunError("boom", "It broke."))
    reported = [
        RemoteReport(each.claimed.run_id, each.claimed.fence, failure if each.job == "a" else Succeeded())
        for each in works
    ]
    for _ in range(2):
        accepted = await remote.report(harness.database, h1.speaker, h1.worker, reported)
        assert accepted == set(ids(works))
    assert harness.owner.execute("SELECT FROM foliot.audit WHERE action = 'report.refused'").fetchall() == []


async def test_a_claim_whose_answer_was_lost_is_given_back_when_a_heartbeat_does_not_name_it(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [lost] = await h1.claim()
    assert await h1.beat()
    assert await h1.claim() == []
    harness.clock.advance(16 * SECOND)
    assert await h1.beat()
    [again] = await h1.claim()
    assert (again.claimed.run_id, again.claimed.fence) == (lost.claimed.run_id, 2)
    harness.clock.advance(16 * SECOND)
    assert await h1.beat(again)
    assert await h1.report(again)


async def test_a_host_that_leaves_hands_back_what_it_has_and_is_offline_at_once(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [work] = await h1.claim()
    await h1.leave()
    assert (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).status is HostStatus.OFFLINE
    with pytest.raises(WorkerGone):
        await h1.claim()
    again = await register_host(harness.database, h1.speaker, "h1")
    [repeated] = await again.claim()
    assert repeated.claimed.run_id == work.claimed.run_id
    losses = "SELECT attempts, losses, retries FROM foliot.leases"
    assert harness.owner.execute(losses).fetchall() == [(2, 0, 0)]


async def test_a_host_is_online_then_stale_then_offline(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    async def status() -> HostStatus:
        return (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).status

    assert await status() is HostStatus.ONLINE
    harness.clock.advance(31 * SECOND)
    assert await status() is HostStatus.STALE
    harness.clock.advance(2 * MINUTE)
    assert await status() is HostStatus.OFFLINE
    await register_host(harness.database, h1.speaker, "h1")
    assert await status() is HostStatus.ONLINE


async def test_a_waiting_run_says_that_its_host_is_offline_and_since_when(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    run = await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    assert await why(harness, run) == 'Run 1 waits for server "pvp" and is about to be fetched by host h1.'
    seen = harness.clock.now()
    harness.clock.advance(HOUR)
    reported = await why(harness, run)
    assert (
        reported
        == f'Run 1 waits for server "pvp": host h1 has been offline since {seen:%Y-%m-%d %H:%M:%S} UTC.'
    )
    [group] = await unserved(harness.database, harness.workspace)
    assert group.sentence == 'No host is online that does type "python" for server "pvp".'


async def test_a_waiting_run_says_that_its_host_is_busy_or_does_not_do_its_type(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    for name in ("first", "second"):
        run = await run_manually(harness, await harness.job(name, Manual(), target=PVP))
    await h1.claim()
    assert await why(harness, run) == 'Run 1 waits for server "pvp": host h1 has 1 of 1 under way.'
    other = await register_host(harness.database, h1.speaker, "h2", "pve", types=("http",))
    run = await run_manually(
        harness, await harness.job("third", Manual(), target=Target(TargetKind.HOST, "h2"))
    )
    assert await other.claim(types=("http",)) == []
    assert (
        await why(harness, run)
        == 'Run 1 waits for host "h2": host h2 is online, but runs no jobs of type python.'
    )


async def test_who_writes_a_job_for_a_host_is_warned_by_what_that_host_does_and_not_by_what_workers_do(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    async def warning(kind: str, target: Target | None) -> str | None:
        definition = Definition(f"sync {next(numbers)}", Spec(Manual(), kind, target=target))
        scope = Scope(harness.workspace, TEST)
        made = await jobs.create(harness.database, scope, definition, with_warnings=True)
        return next(iter(made.warnings), None)

    numbers = count()  # a name that another job has is warned of, too

    await register_host(harness.database, h1.speaker, "h2", "pve", types=("http", "command"))
    h2 = Target(TargetKind.HOST, "h2")
    assert await warning("command", h2) is None
    assert await warning("command", None) is not None
    reported = await warning("python", h2)
    assert reported is not None
    assert reported.startswith(
        'Host h2 runs no jobs of type "python". Start `foliot host` there with --allow-python'
    )
    harness.clock.advance(HOUR)
    assert await warning("python", h2) is None, "of a host that is away, nobody knows what it will do"


async def test_past_its_start_deadline_a_run_is_skipped_because_its_host_was_offline(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    job = await harness.job("restart", HOURLY, target=PVP, limits=Limits(start_deadline=MINUTE))
    harness.clock.advance(HOUR)
    await harness.tick()
    harness.clock.advance(2 * MINUTE)
    assert await expire_runs(harness.database) == 1
    [(status, reason, note)] = harness.runs(job)
    assert (status, reason) == ("skipped", "host_offline")
    assert note.startswith("Host h1 has been offline since ")


async def test_with_its_host_online_the_reason_is_the_deadline(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    job = await harness.job("restart", HOURLY, target=PVP, limits=Limits(start_deadline=MINUTE))
    harness.clock.advance(HOUR)
    await harness.tick()
    harness.clock.advance(2 * MINUTE)
    await register_host(harness.database, h1.speaker, "h1")
    assert await expire_runs(harness.database) == 1
    assert [row[:2] for row in harness.runs(job)] == [("skipped", "deadline")]


async def test_the_name_of_a_host_belongs_to_who_registered_it_first(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    with pytest.raises(Conflict):
        await register_host(harness.database, worker_principal(harness.workspace), "h1")


async def test_what_somebody_else_registered_is_not_there(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [work] = await h1.claim()
    thief = replace(h1, speaker=worker_principal(harness.workspace))
    assert not await thief.beat(work)
    assert not await thief.report(work)
    with pytest.raises(WorkerGone):
        await thief.claim()
    await thief.leave()
    assert await h1.report(work)


async def test_a_worker_elsewhere_serves_the_queues_of_its_workspace_and_nothing_meant_for_a_host(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("bound", Manual(), target=PVP))
    await run_manually(harness, await harness.job("free", Manual()))
    await run_manually(harness, await harness.job("mail", Manual(), queue="mail"))
    for queues, expected in ((("mail",), ["mail"]), (("*",), ["free"])):
        hello = RemoteWorkerHello("elsewhere/1", ("python",), 4, queues=queues)
        made = await remote_register.register(harness.database, h1.speaker, hello)
        offer = await remote.claim(harness.database, h1.speaker, made.worker_id, ("python",), 4)
        assert [work.job for work in offer.work] == expected


async def test_a_host_with_jobs_bound_to_it_is_deleted_only_by_force_and_never_while_it_is_online(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await harness.job("restart", HOURLY, target=PVP)
    with pytest.raises(Conflict, match="is online"):
        await hosts.delete(harness.database, Scope(harness.workspace, TEST), h1.id, force=True)
    await h1.leave()
    with pytest.raises(Conflict, match='target of "restart"'):
        await hosts.delete(harness.database, Scope(harness.workspace, TEST), h1.id)
    await hosts.delete(harness.database, Scope(harness.workspace, TEST), h1.id, force=True)
    harness.clock.advance(HOUR)
    await harness.tick()
    [(run_id,)] = harness.owner.execute("SELECT run_id FROM foliot.ready").fetchall()
    assert await why(harness, run_id) == 'Run 1 waits for server "pvp", and there is none of that name.'


async def test_a_host_stays_online_while_one_of_its_two_processes_is_alive(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    async def status() -> HostStatus:
        return (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).status

    other = await register_host(harness.database, h1.speaker, "h1")
    await h1.leave()
    assert await status() is HostStatus.ONLINE
    harness.clock.advance(20 * SECOND)
    assert await other.beat()
    harness.clock.advance(20 * SECOND)
    assert await status() is HostStatus.ONLINE
    await other.leave()
    assert await status() is HostStatus.OFFLINE


async def test_a_heartbeat_with_a_shorter_lease_takes_no_time_from_its_host(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    """Two processes of one host may have leases of different length."""
    long = await register_host(harness.database, h1.speaker, "h1", lease=HOUR)
    assert long.id == h1.id
    assert await h1.beat()
    harness.clock.advance(MINUTE)
    assert (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).status is HostStatus.ONLINE


async def test_a_lease_as_old_as_the_wait_for_its_answer_is_not_given_back_yet(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [lost] = await h1.claim()
    harness.clock.advance(remote.UNHEARD)
    assert await h1.beat()
    assert await h1.claim() == []
    harness.clock.advance(timedelta(microseconds=1))
    assert await h1.beat()
    [again] = await h1.claim()
    assert again.claimed.run_id == lost.claimed.run_id


async def test_a_host_past_its_lease_claims_reports_and_writes_nothing(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [work] = await h1.claim()
    await run_manually(harness, await harness.job("look", Manual(), target=H1, read_only=True))
    harness.clock.advance(30 * SECOND)
    assert len(await h1.claim()) == 1, "in the last instant of its lease it is alive"
    harness.clock.advance(timedelta(microseconds=1))
    with pytest.raises(WorkerGone):
        await h1.claim()
    assert not await h1.report(work)
    assert not await h1.beat(work)
    line = LogLine(harness.clock.now(), LogStream.STDOUT, "late")
    chunk = LogChunk(work.claimed.run_id, 1, work.claimed.fence, 1, [line])
    assert await remote.write(harness.database, h1.speaker, h1.worker, [chunk]) == 0


async def test_a_host_writes_log_lines_of_its_own_runs_alone(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    h2 = await register_host(harness.database, h1.speaker, "h2")
    await run_manually(harness, await harness.job("restart", Manual(), target=PVP))
    [work] = await h1.claim()

    async def written(host: RemoteHost, fence: int) -> int:
        line = LogLine(harness.clock.now(), LogStream.STDOUT, "a line")
        chunk = LogChunk(work.claimed.run_id, 1, fence, 1, [line])
        return await remote.write(harness.database, host.speaker, host.worker, [chunk])

    assert await written(h2, work.claimed.fence) == 0
    assert await written(h1, work.claimed.fence - 1) == 0
    assert await written(h1, work.claimed.fence) == 1


async def test_a_server_moves_to_no_host_that_is_not_there(harness: WorkspaceHarness, h1: RemoteHost) -> None:
    [instance] = (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).instances
    with pytest.raises(Invalid, match="no such host"):
        await hosts.change_instance(
            harness.database, Scope(harness.workspace, TEST), h1.id, instance.id, to=HostId(uuid4())
        )
