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
from tests.services.hosting import H1, PVP, Machine, machine, somebody
from tests.services.staging import Stage

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


async def names(stage: Stage) -> list[str]:
    return [host.row.name for host in (await hosts.page(stage.database, stage.workspace)).items]


async def forget(stage: Stage) -> int:
    return await hosts.forget_unseen(stage.database, 90 * DAY)


async def test_a_host_that_nobody_has_heard_of_is_forgotten_with_its_servers_and_the_audit_says_so(
    stage: Stage,
) -> None:
    speaker = somebody(stage.workspace)
    await machine(stage.database, speaker, "old", "pve")
    stage.clock.advance(90 * DAY - timedelta(minutes=1))
    assert await forget(stage) == 0
    await machine(stage.database, speaker, "young", "pvp")
    stage.clock.advance(timedelta(minutes=2))
    assert await forget(stage) == 1
    assert await names(stage) == ["young"]
    [(actor, before)] = stage.owner.execute(
        "SELECT actor, before FROM foliot.audit WHERE action = 'host.forgotten'"
    ).fetchall()
    assert (actor, before["name"], before["servers"]) == ("engine", "old", ["pve"])


@pytest.mark.parametrize("target", [H1, PVP])
async def test_a_host_that_a_job_is_bound_to_stays_however_long_it_is_away(
    stage: Stage, target: Target
) -> None:
    await machine(stage.database, somebody(stage.workspace), "h1", "pvp")
    job = await stage.job("restart", Manual(), target=target)
    run = await run_control.run_now(stage.database, Scope(stage.workspace, TEST), job)
    stage.clock.advance(400 * DAY)
    assert await forget(stage) == 0
    told = await explain.explain_run(stage.database, Scope(stage.workspace), run)
    assert "host h1 has been offline since" in told.told.sentence


async def test_a_host_that_a_ready_run_waits_for_stays_though_its_job_goes_elsewhere_now(
    stage: Stage,
) -> None:
    speaker = somebody(stage.workspace)
    await machine(stage.database, speaker, "h1", "pvp")
    job = await stage.job("restart", Manual(), target=PVP)
    stage.owner.execute(
        "UPDATE foliot.jobs SET definition = definition #- '{spec,target}' WHERE id = %s", (job,)
    )
    await run_control.run_now(stage.database, Scope(stage.workspace, TEST), job)
    stage.owner.execute("UPDATE foliot.ready SET target = 'server/pvp'")
    stage.clock.advance(400 * DAY)
    assert await forget(stage) == 0
    assert await names(stage) == ["h1"]


async def test_what_a_host_was_called_is_known_of_its_runs_when_it_is_long_gone(stage: Stage) -> None:
    h1 = await machine(stage.database, somebody(stage.workspace), "h1", "pvp")
    run_id = await done_by(stage, h1)
    await h1.leave()
    stage.clock.advance(399 * DAY)
    await overview.forget_lost(stage.database)
    shown = await history.run(stage.database, Scope(stage.workspace), run_id)
    assert shown.called is not None
    assert (shown.called.name, shown.called.host) == ("h1/1", "h1")
    stage.clock.advance(2 * DAY)
    await overview.forget_lost(stage.database)
    assert (await history.run(stage.database, Scope(stage.workspace), run_id)).called is None


async def test_names_of_one_workspace_s_workers_are_bounded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_register, "MOST_NAMES", 2)
    speaker = somebody(stage.workspace)
    for _ in range(4):
        await machine(stage.database, speaker, "h1")
        stage.clock.advance(timedelta(seconds=1))
    assert stage.owner.execute("SELECT count(*) FROM foliot.worker_names").fetchone() == (2,)


async def test_a_run_that_is_tried_again_says_when_and_why(stage: Stage) -> None:
    h1 = await machine(stage.database, somebody(stage.workspace), "h1", "pvp")
    retry = Retry(max=2, strategy=Backoff.FIXED, base=timedelta(seconds=30))
    job = await stage.job("restart", Manual(), target=PVP, retry=retry)
    run_id = await run_control.run_now(stage.database, Scope(stage.workspace, TEST), job)
    [work] = await h1.claim()
    await h1.report(work, Failed(RunError("boom", "It broke.")))
    shown = await history.run(stage.database, Scope(stage.workspace), run_id)
    assert shown.next_try is not None
    assert (shown.next_try.number, shown.next_try.why) == (2, "Attempt 1 failed: boom: It broke.")
    assert shown.next_try.at - stage.clock.now() <= timedelta(seconds=30)
    assert shown.attempts is not None
    assert [each.called and each.called.host for each in shown.attempts] == ["h1"]
    assert (shown.triggered_by_name, shown.artifacts) == ("test", ())


async def done_by(stage: Stage, host: Machine) -> RunId:
    job = await stage.job("restart", Manual(), target=PVP)
    run_id = await run_control.run_now(stage.database, Scope(stage.workspace, TEST), job)
    [work] = await host.claim()
    assert await host.report(work)
    return run_id
