"""Every state that keeps a planned time from running: what why, next and the agenda say before is what then happens.

Run with `-s` to see the table: state, what was said, what happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.explain.records import Explanation, Verdict
from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import JobId, PrincipalId
from foliot.domain.outcomes import Succeeded
from foliot.domain.policy import Backoff, Breaker, BreakerAction, Retry
from foliot.domain.run import Target, TargetKind
from foliot.domain.schedule import Calendar, CalendarKind, Cron, Manual, Otherwise, Weekly, Window
from foliot.domain.usage import Budget
from foliot.services.identity import installation, workspaces
from foliot.services.identity.workspaces import WorkspaceChanges
from foliot.services.jobs import agenda, calendars, job_search, job_status, job_types
from foliot.services.runs import run_control, usage
from foliot.services.runs.explain import explain_instant, explain_run
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.scheduling.tick import note_tick
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import limits
from foliot.testing.fixtures import ADA
from tests.services.builders import insert_worker
from tests.services.remote_hosts import register_host, worker_principal
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = Cron("0 * * * *")
Build = Callable[["Scene"], Awaitable[JobId]]


@dataclass
class Scene:
    """A harness at a quarter to the hour; `at` is the planned time that everybody asks about."""

    harness: WorkspaceHarness
    at: datetime

    @property
    def scope(self) -> Scope:
        return Scope(self.harness.workspace, ADA)

    async def freeze(self, after: FreezePolicy, end: timedelta | None) -> JobId:
        job = await self.harness.job("frozen", HOURLY)
        until = None if end is None else self.at + end
        new = NewFreeze("release day", everything=True, end_at=until, after=after)
        await freezes.turn_on(self.harness.database, self.scope, new)
        return job

    async def calendar(self, otherwise: Otherwise) -> JobId:
        rules = (Weekly((self.at - MINUTE).time(), (self.at + 30 * MINUTE).time()),)
        made = await calendars.create(
            self.harness.database,
            self.scope,
            Calendar("closing", CalendarKind.BLACKOUT, rules, "UTC", otherwise),
        )
        return await self.harness.job("closed", HOURLY, calendars=(made,))

    async def window(self, otherwise: Otherwise) -> JobId:
        opens = (self.at + 30 * MINUTE).time()
        return await self.harness.job(
            "windowed", HOURLY, window=Window(opens, time(23, 59), otherwise=otherwise)
        )

    async def paused(self, until: timedelta | None, reason: str = "maintenance") -> JobId:
        job = await self.harness.job("paused", HOURLY)
        end = None if until is None else self.at + until
        await job_status.pause(self.harness.database, self.scope, job, reason=reason, until=end)
        return job

    async def silent(self) -> JobId:
        job = await self.harness.job("plain", HOURLY)
        await note_tick(self.harness.database)
        self.harness.clock.advance(MINUTE)
        return job


async def plain(scene: Scene) -> JobId:
    return await scene.harness.job("plain", HOURLY)


async def disabled(scene: Scene) -> JobId:
    job = await plain(scene)
    await job_status.disable(scene.harness.database, scene.scope, job, reason="broken upstream")
    return job


async def held(scene: Scene) -> JobId:
    job = await plain(scene)
    await installation.hold_after_restore(scene.harness.database, "A backup was restored.")
    return job


async def type_off(scene: Scene) -> JobId:
    job = await plain(scene)
    await job_types.set_type_enabled(
        scene.harness.database, scene.scope, "python", enabled=False, reason="unsafe"
    )
    return job


async def unserved(scene: Scene) -> JobId:
    job = await plain(scene)
    scene.harness.owner.execute("UPDATE foliot.workers SET types = '{http}' WHERE name = 'serving'")
    return job


async def nobody(scene: Scene) -> JobId:
    job = await plain(scene)
    scene.harness.owner.execute("DELETE FROM foliot.workers")
    return job


async def host_away(scene: Scene) -> JobId:
    harness = scene.harness
    await register_host(harness.database, worker_principal(harness.workspace), "edge")
    harness.clock.advance(MINUTE)
    return await harness.job("bound", HOURLY, target=Target(TargetKind.HOST, "edge"))


async def skipped_by_operator(scene: Scene) -> JobId:
    job = await plain(scene)
    await run_control.skip_next(scene.harness.database, scene.scope, job, reason="not today")
    return job


async def in_shadow(scene: Scene) -> JobId:
    return await scene.harness.job("shadow", HOURLY, shadow=True)


async def used_up(scene: Scene) -> JobId:
    job = await scene.harness.job("counted", HOURLY, max_runs=1)
    scene.harness.owner.execute("UPDATE foliot.timers SET runs_created = 1 WHERE job_id = %s", [job])
    return job


async def behind_a_run(scene: Scene) -> JobId:
    job = await plain(scene)
    await scene.harness.run_manually(job)
    return job


async def gated(scene: Scene) -> JobId:
    upstream = await scene.harness.job("upstream", Manual())
    return await scene.harness.job("gated", HOURLY, [Edge(upstream, mode=EdgeMode.GATE)])


async def at_limit(scene: Scene) -> JobId:
    await limits.set_limit(scene.harness.database, scene.scope, "db", 1)
    await scene.harness.job("holder", Cron("50 * * * *"), concurrency_key="db")
    job = await scene.harness.job("limited", HOURLY, concurrency_key="db")
    scene.harness.clock.advance(5 * MINUTE)
    await scene.harness.tick()
    assert len(await scene.harness.claim()) == 1
    return job


async def full_worker(scene: Scene) -> JobId:
    """The only worker has one place, and a run that is not over yet holds it."""
    harness = scene.harness
    harness.owner.execute("DELETE FROM foliot.workers WHERE name = 'serving'")
    harness.worker = insert_worker(harness.owner, harness.clock, "single", ["default"], ["python"], 1)
    await harness.job("holder", Cron("50 * * * *"))
    job = await plain(scene)
    harness.clock.advance(5 * MINUTE)
    await harness.tick()
    assert len(await harness.claim(1)) == 1
    harness.owner.execute("UPDATE foliot.workers SET running_count = 1 WHERE name = 'single'")
    return job


async def budget_used_up(scene: Scene) -> JobId:
    """One dollar a month, which another job spends ten minutes before."""
    harness = scene.harness
    await usage.set_budgets(harness.database, scene.scope, [Budget("usd", Decimal(1), warn_at=None)])
    await harness.job("spender", Cron("50 * * * *"))
    job = await plain(scene)
    harness.clock.advance(5 * MINUTE)
    await harness.tick()
    [run] = await harness.claim()
    done = Report(run.run_id, run.job_id, run.fence, harness.worker, Succeeded(), None, {"usd": Decimal(1)})
    await report(harness.database, [done])
    return job


async def quota_used_up(scene: Scene) -> JobId:
    """One fire a day, which another job spends ten minutes before."""
    await workspaces.change(
        scene.harness.database,
        ADA,
        scene.harness.workspace,
        WorkspaceChanges(None, None, {"fires_per_day": 1}),
    )
    await scene.harness.job("spender", Cron("50 * * * *"))
    job = await plain(scene)
    scene.harness.clock.advance(5 * MINUTE)
    await scene.harness.tick()
    return job


async def broken(scene: Scene) -> JobId:
    breaker = Breaker(after=1, action=BreakerAction.PAUSE)
    job = await scene.harness.job("breaking", HOURLY, breaker=breaker, retry=Retry(max=0))
    await scene.harness.run_manually(job)
    assert await scene.harness.run_once(BROKE) == [job]
    return job


# state, how it is made, the verdict, a piece of what is said, what is recorded at that time (None: nothing)
STATES: tuple[tuple[str, Build, Verdict, str, str | None], ...] = (
    ("plain", plain, Verdict.WILL_RUN, "It will run", "started"),
    ("paused", lambda s: s.paused(None), Verdict.WILL_NOT_RUN, "paused by ada (maintenance)", None),
    ("paused until then", lambda s: s.paused(timedelta(0)), Verdict.WILL_NOT_RUN, "paused until", "skipped paused"),
    ("paused until a minute before", lambda s: s.paused(-MINUTE), Verdict.WILL_RUN, "It will run", "started"),
    ("disabled", disabled, Verdict.WILL_NOT_RUN, "disabled by ada (broken upstream)", None),
    ("freeze: skip", lambda s: s.freeze(FreezePolicy.SKIP, HOUR), Verdict.WILL_NOT_RUN, "a freeze by ada", "skipped frozen"),
    ("freeze: latest, the last", lambda s: s.freeze(FreezePolicy.LATEST, 30 * MINUTE), Verdict.WILL_WAIT, "only the newest", None),
    ("freeze: latest, not the last", lambda s: s.freeze(FreezePolicy.LATEST, 2 * HOUR), Verdict.WILL_NOT_RUN, "only the newest", None),
    ("freeze: all", lambda s: s.freeze(FreezePolicy.ALL, 2 * HOUR), Verdict.WILL_WAIT, "all of them run", None),
    ("freeze: all, without an end", lambda s: s.freeze(FreezePolicy.ALL, None), Verdict.WILL_WAIT, "until it is lifted", None),
    ("held after a restore", held, Verdict.WILL_WAIT, "firing is held: A backup was restored", None),
    ("calendar: skip", lambda s: s.calendar(Otherwise.SKIP), Verdict.WILL_NOT_RUN, 'the calendar "closing" is closed', "skipped blackout"),
    ("calendar: defer", lambda s: s.calendar(Otherwise.DEFER), Verdict.WILL_RUN, "It will run", None),
    ("window: skip", lambda s: s.window(Otherwise.SKIP), Verdict.WILL_NOT_RUN, "outside the job's window", "skipped window"),
    ("window: defer", lambda s: s.window(Otherwise.DEFER), Verdict.WILL_RUN, "It will run", None),
    ("type off", type_off, Verdict.WILL_NOT_RUN, "switched off (unsafe)", "skipped type_disabled"),
    ("type that no worker knows", unserved, Verdict.WILL_WAIT, "no worker serves queue default for type python", "ready"),
    ("no worker", nobody, Verdict.WILL_WAIT, "no worker is alive", "ready"),
    ("host away", host_away, Verdict.WILL_WAIT, "host edge has been offline since", "ready"),
    ("skip next", skipped_by_operator, Verdict.WILL_NOT_RUN, "asked to skip it", "skipped operator"),
    ("shadow mode", in_shadow, Verdict.WILL_NOT_RUN, "the job is in shadow mode", "skipped shadow"),
    ("max_runs used up", used_up, Verdict.WILL_NOT_RUN, "max_runs (1) is reached", None),
    ("behind a live run", behind_a_run, Verdict.WILL_RUN, "if run 1, which is live now, has ended by then", "skipped overlap"),
    ("gate", gated, Verdict.WILL_RUN, "if the job upstream has delivered", "skipped dependency_missing"),
    ("limit", at_limit, Verdict.WILL_RUN, "if a place under its limit is free (concurrency key db: 1 of 1 in use now)", "waiting limit"),
    ("full worker", full_worker, Verdict.WILL_RUN, "if a worker has a free place by then; now the only place of the workers that serve it is taken", "ready"),
    ("quota used up", quota_used_up, Verdict.WILL_NOT_RUN, "the quota of fires per day is used up for today", "skipped quota"),
    ("budget used up", budget_used_up, Verdict.WILL_NOT_RUN, "a budget of the workspace is used up until its day or month ends", "skipped budget"),
    ("paused by the breaker", broken, Verdict.WILL_NOT_RUN, "the job is paused", None),
    ("scheduler down", lambda s: s.silent(), Verdict.WILL_WAIT, "No scheduler of Foliot has run since", "down"),
)  # fmt: skip
# Said as a fact beside "It will run".
CONDITIONS = {
    "calendar: defer": "It goes off at",
    "window: defer": "It goes off at",
    "full worker": "Taken by run 1 of holder (worker single, since",
}
# Said by `next` and by the agenda beside a time that is planned, but whose run would not start.
WAITS = {
    "type that no worker knows": "no worker serves queue default for type python now",
    "no worker": "no worker serves queue default for type python now (no worker is alive)",
    "host away": "host edge has been offline since",
    "limit": "its limit is full now (concurrency key db: 1 of 1 in use)",
    "full worker": "now the only place of the workers that serve it is taken",
}


@pytest.fixture(scope="module")
def table() -> Iterator[list[tuple[str, str, str]]]:
    rows: list[tuple[str, str, str]] = []
    yield rows
    print()
    for state, said, happened in rows:
        print(f"{state:30} | {happened:28} | {said}")


@pytest.mark.parametrize(
    ("state", "build", "verdict", "words", "record"), STATES, ids=[each[0] for each in STATES]
)
async def test_what_is_said_before_is_what_happens(
    harness: WorkspaceHarness,
    table: list[tuple[str, str, str]],
    state: str,
    build: Build,
    verdict: Verdict,
    words: str,
    record: str | None,
) -> None:
    harness.clock.set(harness.clock.now().replace(minute=45, second=0, microsecond=0))
    insert_worker(harness.owner, harness.clock, "serving", ["default"], ["python"])
    scene = Scene(harness, harness.clock.now() + 15 * MINUTE)
    job = await build(scene)
    said = await why(scene, job, scene.at)
    assert (said.verdict, words in said.sentence) == (verdict, True), said
    assert CONDITIONS.get(state, "") in " ".join(said.facts), said
    ahead = await job_search.ahead(harness.database, scene.scope, job, 3)
    listed = await agenda.load_agenda(harness.database, scene.scope, end=scene.at + MINUTE)
    if state != "scheduler down":
        harness.clock.set(scene.at)
        await job_status.resume_due(harness.database)
        await harness.tick()
        await advance_waiting_runs(harness.database)
        is_taken = (verdict is Verdict.WILL_RUN and record != "ready") or record == "waiting limit"
        claimed = await harness.claim() if is_taken else []
    else:
        claimed = []
    happened = what_happened(harness, job, scene.at, {each.run_id for each in claimed})
    table.append((state, said.sentence, happened or "nothing is recorded"))
    expected = None if record == "down" else record
    assert happened == expected
    check_lists(state, verdict, scene, job, ahead, listed)
    if happened is not None:  # and afterwards the same cause is named
        reported = await why(scene, job, scene.at)
        assert reported.verdict is {"s": Verdict.SKIPPED, "r": Verdict.WAITING, "w": Verdict.WAITING}.get(
            "-" if happened == "started" else happened[0], Verdict.RUNNING
        )


def check_lists(
    state: str,
    verdict: Verdict,
    scene: Scene,
    job: JobId,
    ahead: job_search.UpcomingTimes,
    listed: agenda.AgendaPage,
) -> None:
    """`next` and the agenda do not list a time as free that why says is not."""
    items = [item for item in listed.items if item.job_id == job]
    times = [each.planned_for for each in ahead.times]
    for notes in (ahead.notes, *(item.notes for item in items if item.line.fate is agenda.Fate.RUNS)):
        waits = [each for each in notes if each.startswith("Its run would wait: ")]
        assert len(waits) == (state in WAITS), notes
        assert WAITS.get(state, "") in "".join(waits)
    if state.startswith("freeze"):
        assert ahead.freezes
        assert [item.line.fate.value for item in items] == ["skipped" if "skip" in state else "held"]
    elif state in (
        "held after a restore",
        "scheduler down",
        "shadow mode",
        "quota used up",
        "budget used up",
        "type off",
    ):
        assert len(ahead.notes) == 1
        if state in ("held after a restore", "scheduler down"):
            assert listed.notes == ahead.notes
        else:
            assert [item.line.fate for item in items] == [agenda.Fate.SKIPPED]
    elif verdict is Verdict.WILL_NOT_RUN and state != "skip next":
        assert scene.at not in times
        assert not [item for item in items if item.line.fate is agenda.Fate.RUNS]
    elif state == "plain":
        assert times[0] == scene.at
        assert [item.line.fate for item in items] == [agenda.Fate.RUNS]


async def why(scene: Scene, job: JobId, at: datetime) -> Explanation:
    return (await explain_instant(scene.harness.database, scene.scope, job, at)).explanation


def what_happened(harness: WorkspaceHarness, job: JobId, at: datetime, claimed: set[object]) -> str | None:
    found = harness.owner.execute(
        "SELECT runs.id, runs.status, skip_reason, waiting.waits_for FROM foliot.runs"
        " LEFT JOIN foliot.waiting ON waiting.run_id = runs.id"
        " WHERE runs.job_id = %s AND runs.planned_for = %s AND runs.trigger = 'schedule'",
        [job, at],
    ).fetchone()
    if found is None:
        return None
    run_id, status, reason, waits_for = found
    if status is not None:
        return f"{status} {reason}"
    if run_id in claimed:
        return "started"
    return "ready" if waits_for is None else f"waiting {waits_for}"


async def test_a_held_time_is_reported_as_held_when_it_is_due_and_runs_at_the_end(
    harness: WorkspaceHarness,
) -> None:
    scene = Scene(harness, harness.clock.now().replace(minute=0, second=0, microsecond=0) + HOUR)
    job = await scene.freeze(FreezePolicy.LATEST, 30 * MINUTE)
    harness.clock.set(scene.at + timedelta(seconds=5))
    await harness.tick()
    said = await why(scene, job, scene.at)
    assert (said.verdict, "is held: a freeze by ada" in said.sentence) == (Verdict.WAITING, True)
    harness.clock.set(scene.at + 30 * MINUTE)
    await harness.tick()
    assert [each.job_id for each in await harness.claim()] == [job]


async def test_due_times_under_a_hold_and_without_a_scheduler_are_not_about_to_be_recorded(
    harness: WorkspaceHarness,
) -> None:
    scene = Scene(harness, harness.clock.now().replace(minute=0, second=0, microsecond=0) + HOUR)
    job = await harness.job("plain", HOURLY)
    await note_tick(harness.database)
    harness.clock.set(scene.at + timedelta(seconds=20))
    said = await why(scene, job, scene.at)
    assert (said.verdict, "nothing fires" in said.sentence) == (Verdict.UNRECORDED, True)
    await installation.hold_after_restore(harness.database, "A backup was restored.")
    said = await why(scene, job, scene.at)
    assert (said.verdict, "firing is held" in said.sentence) == (Verdict.WAITING, True)
    assert said.next_step is not None
    assert "foliot db release" in said.next_step


async def test_an_outage_is_a_fact_of_the_times_within_it(harness: WorkspaceHarness) -> None:
    scene = Scene(harness, harness.clock.now().replace(minute=0, second=0, microsecond=0) + HOUR)
    job = await harness.job("plain", Cron("*/10 * * * *"))
    harness.clock.set(scene.at - MINUTE)
    await note_tick(harness.database)
    harness.clock.set(scene.at + 40 * MINUTE)
    await note_tick(harness.database)
    await harness.tick()
    for minutes in (0, 20, 40):
        said = await why(scene, job, scene.at + minutes * MINUTE)
        reported = [fact for fact in said.facts if fact.startswith("No scheduler of Foliot ran from")]
        assert len(reported) == (minutes < 40), said
    await note_tick(harness.database)
    assert harness.owner.execute("SELECT count(*) FROM foliot.outages").fetchone() == (1,)


async def test_a_run_behind_a_full_worker_names_who_holds_the_place_and_starts_when_it_is_free(
    harness: WorkspaceHarness,
) -> None:
    harness.clock.set(harness.clock.now().replace(minute=45, second=0, microsecond=0))
    scene = Scene(harness, harness.clock.now() + 15 * MINUTE)
    job = await full_worker(scene)
    ahead = await why(scene, job, scene.at)
    assert "start another one" in str(ahead.next_step)
    harness.clock.set(scene.at)
    await harness.tick()
    said = await why(scene, job, scene.at)
    assert said.verdict is Verdict.WAITING
    assert "is ready, but the only place of the workers that serve it is taken" in said.sentence
    assert said.facts == ahead.facts
    assert "since" in said.facts[0]
    assert said.next_step == ahead.next_step
    agent = PrincipalId(uuid4())
    harness.owner.execute("UPDATE foliot.jobs SET owner_id = %s WHERE id = %s", [agent, job])
    to_agent = await explain_instant(
        harness.database, replace(scene.scope, visible_owner=agent), job, scene.at
    )
    assert to_agent.explanation.facts == ("Taken by 1 run of others.",)
    assert [each.job_id for each in await harness.claim(1)] == [job]


async def test_a_worker_that_keeps_its_last_places_for_other_workspaces_is_full(
    harness: WorkspaceHarness,
) -> None:
    """A worker with one permit and a reserve of one gives this workspace one place: src/foliot/worker/places.py."""
    harness.worker = insert_worker(harness.owner, harness.clock, "default", ["default"], ["python"], 2)
    await harness.run_manually(await harness.job("holder", Manual()))
    assert len(await harness.claim(1)) == 1
    waits = await harness.run_manually(await harness.job("waiter", Manual()))
    scope = Scope(harness.workspace, ADA)
    said = (await explain_run(harness.database, scope, waits)).explanation
    assert "has all the places that it gets from the workers that serve it (1 of 2 are taken" in said.sentence
    assert said.facts[0].startswith("Taken by run 1 of holder (worker default, since")
    assert said.facts[0].endswith("UTC).")
    harness.owner.execute("UPDATE foliot.workers SET capacity = 4 WHERE name = 'default'")  # a permit is free
    said = (await explain_run(harness.database, scope, waits)).explanation
    assert "waits for a worker" in said.sentence


async def test_times_skipped_behind_a_run_that_no_worker_took_name_the_missing_worker(
    harness: WorkspaceHarness,
) -> None:
    job = await harness.job("plain", Cron("*/10 * * * *"))
    for _ in range(3):
        harness.clock.advance(10 * MINUTE)
        await harness.tick()
    said = await why(
        Scene(harness, harness.clock.now()), job, harness.clock.now().replace(second=0, microsecond=0)
    )
    assert "run 1 of this job was still waiting to start" in said.sentence
    assert "no worker serves queue default for type python" in " ".join(said.facts)
    assert said.next_step == "Start a worker that serves queue default and has a handler for python."


async def test_a_time_skipped_behind_a_lost_worker_names_the_worker(harness: WorkspaceHarness) -> None:
    job = await harness.job("plain", Cron("* * * * *"))
    harness.clock.advance(MINUTE)
    await harness.tick()
    assert len(await harness.claim()) == 1
    harness.clock.advance(MINUTE)
    await harness.tick()
    scene = Scene(harness, harness.clock.now().replace(second=0, microsecond=0))
    harness.owner.execute("UPDATE foliot.workers SET alive_until = %s", [harness.clock.now() - MINUTE / 60])
    said = await why(scene, job, scene.at)
    assert "run 1 of this job was held by worker" in said.sentence
    assert said.facts[-1] == "Its lease has passed: the next sweep takes the run back."
    await sweep(harness.database)
    swept = await why(scene, job, scene.at)
    assert swept.sentence == said.sentence
    assert "The run was taken back at" in swept.facts[-1]
    assert "worker_lease" in str(swept.next_step)
    assert "faster" not in str(swept.next_step)


async def test_a_time_skipped_behind_a_retry_says_so(harness: WorkspaceHarness) -> None:
    retry = Retry(1, Backoff.FIXED, base=HOUR, past_next=True)
    job = await harness.job("flaky", Cron("*/10 * * * *"), retry=retry)
    harness.clock.advance(10 * MINUTE)
    await harness.tick()
    [taken] = await harness.claim()
    await harness.report(taken, BROKE)
    harness.clock.advance(10 * MINUTE)
    await harness.tick()
    scene = Scene(harness, harness.clock.now().replace(second=0, microsecond=0))
    said = await why(scene, job, scene.at)
    assert "run 1 of this job was waiting for attempt 2" in said.sentence
    assert any(fact.startswith("Attempt 1 failed") for fact in said.facts)
    assert "retries" in str(said.next_step)


async def test_the_latest_answer_says_that_the_job_is_stopped_now(harness: WorkspaceHarness) -> None:
    job = await harness.job("plain", HOURLY)
    harness.clock.advance(HOUR)
    await harness.tick()
    await harness.run_once()
    scene = Scene(harness, harness.clock.now())
    await job_status.pause(harness.database, scene.scope, job, reason="lunch", until=scene.at + HOUR)
    said = (await explain_instant(harness.database, scene.scope, job)).explanation
    assert said.verdict is Verdict.RAN
    assert any(fact.startswith("Now the job is paused until") and "(lunch)" in fact for fact in said.facts)
    assert said.next_step == "Resume it."


async def test_a_run_that_may_not_start_yet_is_not_called_a_retry(harness: WorkspaceHarness) -> None:
    scene = Scene(harness, harness.clock.now())
    job = await scene.calendar(Otherwise.DEFER)
    run_id = await harness.run_manually(job)
    harness.owner.execute("UPDATE foliot.ready SET available_at = %s", [harness.clock.now() + 30 * MINUTE])
    said = (await explain_run(harness.database, scene.scope, run_id)).explanation
    assert "may start at" in said.sentence
    assert 'the calendar "closing" is closed' in said.sentence
    assert "attempt" not in said.sentence


async def test_a_run_that_waits_for_its_next_attempt_says_so(harness: WorkspaceHarness) -> None:
    job = await harness.job("flaky", Cron("*/10 * * * *"))
    harness.clock.advance(10 * MINUTE)
    await harness.tick()
    assert await harness.run_once(BROKE) == [job]
    [(run_id,)] = harness.runs(job, "id")
    said = (await explain_run(harness.database, Scope(harness.workspace, ADA), run_id)).explanation
    assert "waits for attempt 2 at" in said.sentence


async def test_a_time_after_a_pause_runs_although_the_resume_comes_a_little_later(
    harness: WorkspaceHarness,
) -> None:
    scene = Scene(harness, harness.clock.now().replace(minute=0, second=0, microsecond=0) + HOUR)
    job = await scene.paused(timedelta(seconds=-1))
    harness.clock.set(scene.at + timedelta(seconds=2))
    await job_status.resume_due(harness.database)
    await harness.tick()
    assert [each.job_id for each in await harness.claim()] == [job]
