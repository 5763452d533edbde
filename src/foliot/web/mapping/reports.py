"""Explanations, statistics and the agenda on the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from itertools import chain

from foliot.domain.explain.records import QueuePosition
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import PlannedTime, Schedule
from foliot.services.jobs.agenda import AgendaDensity, AgendaItem, AgendaLine, AgendaPage, Closure, Fate
from foliot.services.runs.explain import RunExplanation
from foliot.services.runs.history import RunBucket, RunSummary
from foliot.services.runs.statistics import (
    DayPercentiles,
    DayTotals,
    JobStats,
    OpenRunCounts,
    Percentiles,
    RunTimings,
    Totals,
    WorkspaceNow,
    WorkspaceStats,
    totals,
)
from foliot.web.mapping.jobs import freeze_note, local_of, milliseconds, notes_of, run_out, times_out
from foliot.wire.reports import (
    AgendaItemOut,
    AgendaOut,
    ClosureOut,
    DayOut,
    DensityOut,
    ExplanationOut,
    JobCountsOut,
    JobStatsOut,
    NearestOut,
    NewestOut,
    NowOut,
    PercentilesOut,
    PlaceOut,
    StatsNowOut,
    StatsOut,
    TotalsOut,
)
from foliot.wire.runs import ErrorGroupOut, RunBucketOut, RunOut, RunSummaryOut
from foliot.wire.schedules import PlannedOut

API = "/api/v1"
OPEN = frozenset({"ready", "waiting", "running"})
OUTCOMES = {
    RunStatus.SUCCEEDED: "succeeded",
    RunStatus.FAILED: "failed",
    RunStatus.TIMED_OUT: "failed",
    RunStatus.INTERRUPTED: "failed",
    RunStatus.SKIPPED: "skipped",
    RunStatus.CANCELLED: "cancelled",
}
AWAKE = frozenset({"pending", "active", "completed", "expired", "archived"})


def explanation_out(answer: RunExplanation) -> ExplanationOut:
    explanation, run = answer.explanation, None if answer.run is None else run_out(answer.run)
    nearest = None
    if answer.at is not None:
        nearest = NearestOut(
            before=_time(answer.schedule, answer.before), after=_time(answer.schedule, answer.after)
        )
    return ExplanationOut(
        verdict=explanation.verdict.value,
        sentence=explanation.sentence,
        facts=list(explanation.facts),
        what_next=[] if explanation.next_step is None else [explanation.next_step],
        job_id=answer.job_id,
        job_status=answer.status.value,
        at=answer.at,
        run=run,
        place=None if explanation.place is None else _place(explanation.place, run),
        nearest=nearest,
        links=_links(answer, run),
    )


def job_stats_out(stats: JobStats) -> JobStatsOut:
    return JobStatsOut(
        days=[_day(day, stats.p95.get(day.day)) for day in stats.days],
        totals=_totals(stats.totals),
        newest=_newest(stats.newest),
        last_run_at=stats.last_run_at,
        last_run_status=None if stats.last_run_status is None else stats.last_run_status.value,
    )


def stats_now_out(stats: WorkspaceNow) -> StatsNowOut:
    return StatsNowOut(
        as_of=stats.as_of,
        now=_now(stats.now),
        newest=_newest(stats.newest),
        jobs=None if stats.jobs is None else _job_counts(stats.jobs),
        totals=None if stats.totals is None else _totals(stats.totals),
    )


def _now(now: OpenRunCounts) -> NowOut:
    return NowOut.from_value(now)


def _job_counts(jobs: Mapping[JobStatus, int]) -> JobCountsOut:
    return JobCountsOut(**{status.value: count for status, count in jobs.items()})


def stats_out(stats: WorkspaceStats) -> StatsOut:
    return StatsOut(
        as_of=stats.as_of,
        jobs=_job_counts(stats.jobs),
        now=_now(stats.now),
        days=[_day(day, stats.p95.get(day.day)) for day in stats.days],
        totals=_totals(stats.totals),
        newest=_newest(stats.newest),
    )


def run_summary_out(summary: RunSummary) -> RunSummaryOut:
    return RunSummaryOut.from_value(
        summary,
        bucket_seconds=int(summary.width.total_seconds()),
        buckets=[_bucket(each) for each in summary.buckets],
        by_status={status.value: runs for status, runs in summary.by_status.items()},
        errors=[
            ErrorGroupOut.from_value(
                each,
                code=each.newest.code,
                message=each.newest.message,
                run_id=each.newest.id,
                job_id=each.newest.job_id,
                job_name=each.newest.job_name,
            )
            for each in summary.errors
        ],
        complete=summary.counted_since is None,
    )


def _bucket(bucket: RunBucket) -> RunBucketOut:
    counts: Counter[str] = Counter()
    for status, runs in bucket.runs.items():
        counts[OUTCOMES.get(status, "open")] += runs
    return RunBucketOut(at=bucket.at, **counts)


def agenda_out(plans: AgendaPage) -> AgendaOut:
    return AgendaOut.from_value(
        plans,
        items=[_item(each) for each in plans.items],
        closures=_closures_out(plans.closures),
        notes=list(plans.notes),
    )


def _closures_out(closures: tuple[Closure, ...]) -> list[ClosureOut]:
    return [ClosureOut.from_value(each) for each in closures]


def density_out(found: AgendaDensity) -> DensityOut:
    counts = [round(each) for each in found.counts]
    return DensityOut.from_value(
        found,
        bucket_seconds=(found.end - found.start).total_seconds() / len(counts),
        counts=counts,
        runs=round(sum(found.counts)),
        counted_jobs=found.counted,
        estimated=found.counted < found.jobs,
        closures=_closures_out(found.closures),
    )


def _item(planned: AgendaItem) -> AgendaItemOut:
    line, expected = planned.line, planned.expected
    first = line.first
    ends = line.fate is Fate.RUNS and line.last is None and expected is not None
    return AgendaItemOut(
        job_id=planned.job_id,
        job_name=planned.name,
        planned_for=first.planned_for,
        planned_local=local_of(planned.schedule, first),
        starts_at=first.due_at,
        count=line.count,
        last_for=None if line.last is None else line.last.planned_for,
        fate=line.fate.value,
        reason=line.reason and line.reason.value,
        expected_duration_ms=None if expected is None else milliseconds(expected),
        expected_end_at=first.due_at + (expected or timedelta(0)) if ends else None,
        notes=list(dict.fromkeys(chain(notes_of(planned.schedule, first), _held(line), planned.notes))),
    )


def _held(line: AgendaLine) -> list[str]:
    return [] if line.freeze is None else [freeze_note(line.freeze)]


def _time(schedule: Schedule, time: PlannedTime | None) -> PlannedOut | None:
    return None if time is None else times_out(schedule, [time])[0]


def _place(place: QueuePosition, run: RunOut | None) -> PlaceOut:
    # A ready run waits only for a worker.
    is_ready = run is not None and run.status == "ready" and place.waits_for is WaitsFor.TURN
    return PlaceOut.from_value(place, waits_for="worker" if is_ready else place.waits_for.value)


def _links(answer: RunExplanation, run: RunOut | None) -> dict[str, str]:
    job = f"{API}/jobs/{answer.job_id}"
    links = {"job": job, "next": f"{job}/next", "runs": f"{job}/runs"}
    if answer.status.value not in AWAKE:
        links["resume"] = f"{job}/resume"
    if run is not None:
        own = f"{API}/runs/{run.id}"
        links |= {"run": own, "attempts": f"{own}/attempts"}
        if run.status in OPEN:
            links["cancel"] = f"{own}/cancel"
        elif run.status != "succeeded" and run.planned_until is None:
            links["retry"] = f"{own}/retry"
    return links


def _totals(sums: Totals) -> TotalsOut:
    return TotalsOut.from_value(
        sums, average_duration_ms=_average(sums.average_duration), average_lag_ms=_average(sums.average_lag)
    )


def _day(day: DayTotals, p95: DayPercentiles | None) -> DayOut:
    return DayOut(
        day=day.day,
        **_totals(totals([day])).model_dump(),
        p95_duration_ms=None if p95 is None else _seconds(p95.seconds),
        p95_lag_ms=None if p95 is None else _seconds(p95.lag_seconds),
    )


def _seconds(value: float | None) -> int | None:
    return None if value is None else milliseconds(timedelta(seconds=value))


def _newest(spread: RunTimings) -> NewestOut:
    return NewestOut(
        runs=spread.runs, duration_ms=_percentiles(spread.duration), lag_ms=_percentiles(spread.lag)
    )


def _percentiles(found: Percentiles | None) -> PercentilesOut | None:
    if found is None:
        return None
    return PercentilesOut(
        p50=milliseconds(found.p50), p95=milliseconds(found.p95), p99=milliseconds(found.p99)
    )


def _average(length: timedelta | None) -> int | None:
    return None if length is None else milliseconds(length)
