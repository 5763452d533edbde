"""Hosts that nobody has heard of for long are forgotten, but for those that something waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import RunId
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError, Target
from foliot.domain.schedule import Manual
from foliot.services.runs import explain, history, run_control
from foliot.services.workers import hosts, overview, remote_register
from foliot.testing.fixtures import TEST
from tests.services.remote_hosts import H1, PVP, RemoteHost, register_host, worker_principal
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


async def names(harness: WorkspaceHarness) -> list[str]:
    return [host.row.name for host in (await hosts.page(harness.database, harness.workspace)).items]


async def forget(harness: WorkspaceHarness) -> int:
    return await hosts.forget_unseen(harness.database, 90 * DAY)


async def test_a_host_that_nobody_has_heard_of_is_forgotten_with_its_servers_and_the_audit_says_so(
    harness: WorkspaceHarness,
) -> None:
    speaker = worker_principal(harness.workspace)
    await register_host(harness.database, speaker, "old", "pve")
    harness.clock.advance(90 * DAY - timedelta(minutes=1))
    assert await forget(harness) == 0
    await register_host(harness.database, speaker, "young", "pvp")
    harness.clock.advance(timedelta(minutes=2))
    assert await forget(harness) == 1
    assert await names(harness) == ["young"]
    [(actor, before)] = harness.owner.execute(
        "SELECT actor, before FROM foliot.audit WHERE action = 'host.forgotten'"
    ).fetchall()
    assert (actor, before["name"], before["servers"]) == ("engine", "old", ["pve"])


@pytest.mark.parametrize("target", [H1, PVP])
async def test_a_host_that_a_job_is_bound_to_stays_however_long_it_is_away(
    harness: WorkspaceHarness, target: Target
) -> None:
    await register_host(harness.database, worker_principal(harness.workspace), "h1", "pvp")
    job = await harness.job("restart", Manual(), target=target)
    run = await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job)
    harness.clock.advance(400 * DAY)
    assert await forget(harness) == 0
    reported = await explain.explain_run(harness.database, Scope(harness.workspace), run)
    assert "host h1 has been offline since" in reported.explanation.sentence


async def test_a_host_that_a_ready_run_waits_for_stays_though_its_job_goes_elsewhere_now(
    harness: WorkspaceHarness,
) -> None:
    speaker = worker_principal(harness.workspace)
    await register_host(harness.database, speaker, "h1", "pvp")
    job = await harness.job("restart", Manual(), target=PVP)
    harness.owner.execute(
        "UPDATE foliot.jobs SET definition = definition #- '{spec,target}' WHERE id = %s", (job,)
    )
    await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job)
    harness.owner.execute("UPDATE foliot.ready SET target = 'server/pvp'")
    harness.clock.advance(400 * DAY)
    assert await forget(harness) == 0
    assert await names(harness) == ["h1"]


async def test_what_a_host_was_called_is_known_of_its_runs_when_it_is_long_gone(
    harness: WorkspaceHarness,
) -> None:
    h1 = await register_host(harness.database, worker_principal(harness.workspace), "h1", "pvp")
    run_id = await done_by(harness, h1)
    await h1.leave()
    harness.clock.advance(399 * DAY)
    await overview.forget_lost(harness.database)
    shown = await history.run(harness.database, Scope(harness.workspace), run_id)
    assert shown.called is not None
    assert (shown.called.name, shown.called.host) == ("h1/1", "h1")
    harness.clock.advance(2 * DAY)
    await overview.forget_lost(harness.database)
    assert (await history.run(harness.database, Scope(harness.workspace), run_id)).called is None


async def test_names_of_one_workspace_s_workers_are_bounded(
    harness: WorkspaceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_register, "MOST_NAMES", 2)
    speaker = worker_principal(harness.workspace)
    for _ in range(4):
        await register_host(harness.database, speaker, "h1")
        harness.clock.advance(timedelta(seconds=1))
    assert harness.owner.execute("SELECT count(*) FROM foliot.worker_names").fetchone() == (2,)


async def test_a_run_that_is_tried_again_says_when_and_why(harness: WorkspaceHarness) -> None:
    h1 = await register_host(harness.database, worker_principal(harness.workspace), "h1", "pvp")
    retry = Retry(max=2, strategy=Backoff.FIXED, base=timedelta(seconds=30))
    job = await harness.job("restart", Manual(), target=PVP, retry=retry)
    run_id = await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job)
    [work] = await h1.claim()
    await h1.report(work, Failed(RunError("boom", "It broke.")))
    shown = await history.run(harness.database, Scope(harness.workspace), run_id)
    assert shown.next_try is not None
    assert (shown.next_try.number, shown.next_try.why) == (2, "Attempt 1 failed: boom: It broke.")
    assert shown.next_try.at - harness.clock.now() <= timedelta(seconds=30)
    assert shown.attempts is not None
    assert [each.called and each.called.host for each in shown.attempts] == ["h1"]
    assert (shown.triggered_by_name, shown.artifacts) == ("test", ())


async def done_by(harness: WorkspaceHarness, host: RemoteHost) -> RunId:
    job = await harness.job("restart", Manual(), target=PVP)
    run_id = await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job)
    [work] = await host.claim()
    assert await host.report(work)
    return run_id
