"""The judge: what must hold of the ledger at every instant, asked in SQL as the owner of the database, and what of each job at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from foliot.domain.policy import OverlapRule
from foliot.domain.run import Trigger
from foliot.storage.queue.run_queue import Claimed
from tools.simulation.command_log import CommandLog, JobHistory
from tools.simulation.expectation import TimerState, find_violations, may_begin, records_of

DAY = timedelta(days=1)
EVER = datetime(1970, 1, 1, tzinfo=UTC)
_PROMPT = frozenset({Trigger.SCHEDULE, Trigger.DEPENDENCY})  # bound by the job's start deadline
_SPELLS = """
    SELECT runs.job_id, attempts.run_id, attempts.leased_at AS since, attempts.ended_at AS until, attempts.fence
      FROM attempts JOIN runs ON runs.id = attempts.run_id
     WHERE attempts.ended_at >= %(since)s
    UNION ALL
    SELECT job_id, id, started_at, finished_at, fence FROM runs
     WHERE attempt_count = 1 AND finished_at >= %(since)s AND NOT EXISTS (SELECT FROM attempts WHERE run_id = runs.id)
    UNION ALL
    SELECT job_id, run_id, leased_at, '9999-01-01Z', fence FROM leases
"""
_PLACES = """
    SELECT run_id, job_id, NULL AS waits_for FROM ready
    UNION ALL SELECT run_id, job_id, NULL FROM leases
    UNION ALL SELECT run_id, job_id, waits_for FROM waiting
"""
_MATCHING = """
    CASE dependencies."on" WHEN 'success' THEN ARRAY['succeeded'] WHEN 'failure' THEN ARRAY['failed', 'timed_out', 'interrupted']
                           ELSE ARRAY['succeeded', 'failed', 'timed_out', 'interrupted', 'cancelled'] END
"""

# Each finds what is wrong; no rows is right. %(exclusive)s, %(jobs)s and %(most_tries)s come from the command_log.
CHECKS = {
    "I2 unique: one record per planned time": """
        SELECT job_id, planned_key, fold, schedule_rev, count(*) FROM runs WHERE trigger = 'schedule' AND created_at >= %(since)s
         GROUP BY job_id, planned_key, fold, schedule_rev HAVING count(*) > 1""",
    "I3 never early: nothing is made or started before its planned time": """
        SELECT id, planned_for, created_at, started_at FROM runs
         WHERE trigger = 'schedule' AND created_at >= %(since)s AND (created_at < planned_for OR started_at < planned_for OR started_at < created_at)
        UNION ALL
        SELECT run_id, planned_for, available_at, leased_at FROM leases WHERE leased_at < available_at""",
    "I5 no overlap: exclusive jobs hold one lease at a time": f"""
        SELECT * FROM (SELECT job_id, run_id, since, until, max(until) OVER earlier AS busy_until FROM ({_SPELLS}) AS spells
                        WHERE job_id = ANY (%(exclusive)s)
                       WINDOW earlier AS (PARTITION BY job_id ORDER BY since, until
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS followed
         WHERE busy_until > since""",
    "I6 fences rise: attempts of a run follow each other": f"""
        SELECT * FROM (SELECT run_id, since, fence, lag(fence) OVER steps AS fence_before, lag(until) OVER steps AS until_before
                         FROM ({_SPELLS}) AS spells WINDOW steps AS (PARTITION BY run_id ORDER BY since, fence)) AS followed
         WHERE fence <= fence_before OR since < until_before""",
    "I7 dependency order: a triggered run comes after the end that triggered it": f"""
        SELECT downstream.id, downstream.created_at, upstream.status, upstream.finished_at
          FROM runs AS downstream LEFT JOIN runs AS upstream ON upstream.id = downstream.upstream_run_id
          LEFT JOIN dependencies ON dependencies.job_id = downstream.job_id AND dependencies.upstream_id = upstream.job_id
         WHERE downstream.trigger = 'dependency' AND downstream.created_at >= %(since)s
           AND (upstream.id IS NULL OR upstream.finished_at IS NULL OR upstream.finished_at > downstream.created_at
                OR upstream.status <> ALL ({_MATCHING}))""",
    "I7 dependency order: each end triggers once": f"""
        SELECT dependencies.job_id, upstream.id, upstream.status FROM dependencies
          JOIN jobs ON jobs.id = dependencies.job_id AND jobs.status = 'active' AND jobs.status_at = jobs.created_at
          JOIN runs AS upstream ON upstream.job_id = dependencies.upstream_id AND upstream.status = ANY ({_MATCHING})
         WHERE dependencies.mode = 'trigger' AND upstream.finished_at >= %(since)s
           AND NOT EXISTS (SELECT FROM runs WHERE runs.job_id = dependencies.job_id AND runs.upstream_run_id = upstream.id)""",
    "I7 dependency order: one run for each success at a gate": """
        SELECT dependencies.job_id, count(*) AS ran, successes FROM dependencies
          JOIN runs ON runs.job_id = dependencies.job_id AND runs.trigger = 'schedule' AND runs.started_at IS NOT NULL
          JOIN LATERAL (SELECT count(*) AS successes FROM runs AS upstream
                         WHERE upstream.job_id = dependencies.upstream_id AND upstream.status = 'succeeded') AS counted ON true
         WHERE dependencies.mode = 'gate' GROUP BY dependencies.job_id, successes HAVING count(*) > successes""",
    "I9 attempts bounded: retries within max, losses within three": """
        SELECT runs.id, tries, losses, bound.most FROM runs
          JOIN unnest(%(jobs)s::uuid[], %(most_tries)s::int[]) AS bound (job_id, most) ON bound.job_id = runs.job_id
          JOIN LATERAL (SELECT count(*) FILTER (WHERE status IN ('failed', 'timed_out')) AS tries,
                               count(*) FILTER (WHERE status = 'lost') AS losses
                          FROM attempts WHERE run_id = runs.id) AS counted ON true
         WHERE runs.attempt_count > 1 AND runs.finished_at >= %(since)s AND (tries > bound.most OR losses > 3)""",
    "open runs stand in exactly one place": f"""
        SELECT runs.id, runs.status, count(places.run_id) FROM runs FULL JOIN ({_PLACES}) AS places ON places.run_id = runs.id
         WHERE runs.status IS NULL OR places.run_id IS NOT NULL
         GROUP BY runs.id, runs.status HAVING runs.id IS NULL OR runs.status IS NOT NULL OR count(places.run_id) <> 1""",
    "timers count their live and waiting runs": f"""
        SELECT timers.job_id, timers.live, timers.waiting, found.live, found.waiting FROM timers
          LEFT JOIN (SELECT job_id, count(*) FILTER (WHERE waits_for IS DISTINCT FROM 'turn') AS live,
                            count(*) FILTER (WHERE waits_for = 'turn') AS waiting
                       FROM ({_PLACES}) AS places GROUP BY job_id) AS found USING (job_id)
         WHERE (timers.live, timers.waiting) <> (COALESCE(found.live, 0), COALESCE(found.waiting, 0))""",
    "counters of timers are counts of runs": """
        SELECT timers.job_id, fire_count, run_count, success_count, failure_count, skip_count, found.* FROM timers
          JOIN (SELECT job_id,
                       count(*) FILTER (WHERE trigger = 'schedule' AND NOT (status IS NOT DISTINCT FROM 'skipped' AND fence IS NULL)) AS fires,
                       count(*) FILTER (WHERE status <> 'skipped' AND attempt_count > 0) AS runs,
                       count(*) FILTER (WHERE status = 'succeeded') AS successes,
                       count(*) FILTER (WHERE status IN ('failed', 'timed_out', 'interrupted') AND attempt_count > 0) AS failures,
                       sum(CASE WHEN status = 'skipped' THEN CASE WHEN planned_until IS NULL THEN 1 ELSE COALESCE(count, 10000) END
                                ELSE 0 END) AS skips
                  FROM runs GROUP BY job_id) AS found USING (job_id)
         WHERE (fire_count, run_count, success_count, failure_count, skip_count)
            <> (found.fires, found.runs, found.successes, found.failures, found.skips) OR runs_created <> fire_count""",
    "nothing due is left behind by a tick": """
        SELECT job_id, status, due_at FROM timers WHERE due_at <= %(ticked_at)s AND status IN ('active', 'pending')""",
}
CHECKS["caps are kept, and counted right"] = """
    SELECT limits.workspace_id, key, cap, in_use, found FROM limits
      JOIN LATERAL (SELECT count(*) AS found FROM leases WHERE leases.workspace_id = limits.workspace_id
                       AND (limits.key = '' OR leases.concurrency_key = limits.key)) AS counted ON true
     WHERE in_use <> found OR in_use > cap"""
_OF_HOSTS = "definition -> 'spec' ? 'target'"
CHECKS["I5 hosts: one change at a time"] = f"""
    SELECT * FROM (SELECT spells.job_id, run_id, since, until, max(until) OVER earlier AS busy_until FROM ({_SPELLS}) AS spells
                     JOIN jobs ON jobs.id = spells.job_id AND {_OF_HOSTS}
                          AND NOT COALESCE((definition -> 'spec' -> 'read_only')::boolean, false)
                   WINDOW earlier AS (PARTITION BY jobs.workspace_id ORDER BY since, until
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS followed
     WHERE busy_until > since"""
CHECKS["hosts have the runs that are meant for them, and no others"] = f"""
    SELECT leases.run_id, leases.host_id FROM leases JOIN jobs ON jobs.id = leases.job_id
     WHERE ({_OF_HOSTS}) <> (leases.host_id IS NOT NULL)
        OR leases.host_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM hosts WHERE hosts.id = leases.host_id AND hosts.workspace_id = leases.workspace_id)"""
CHECKS["statistics: days are sums of the records behind the roll-up"] = """
    WITH found AS (
        SELECT job_id, day, count(*) AS records, sum(runs) AS runs, sum(successes) AS successes, sum(failures) AS failures, sum(skips) AS skips
          FROM run_counts
         WHERE id <= (SELECT position FROM scans WHERE name = 'roll_up')
           AND NOT EXISTS (SELECT FROM uncounted_runs WHERE run_id = run_counts.id)
         GROUP BY job_id, day)
    SELECT job_id, day, job_days.records, found.records FROM job_days FULL JOIN found USING (job_id, day)
     WHERE (job_days.records, job_days.runs, job_days.successes, job_days.failures, job_days.skips)
           IS DISTINCT FROM (found.records, found.runs, found.successes, found.failures, found.skips)"""
# These go through all records there are, whenever they were made: for the looks at everything.
WHOLE = frozenset({
    "statistics: days are sums of the records behind the roll-up",
    "I7 dependency order: one run for each success at a gate",
    "open runs stand in exactly one place",
    "counters of timers are counts of runs",
})  # fmt: skip
_STILL_OPEN = f"""
    SELECT places.run_id, jobs.name, jobs.status, places.waits_for FROM ({_PLACES}) AS places
      JOIN jobs ON jobs.id = places.job_id LEFT JOIN waiting USING (run_id)
     WHERE NOT (places.waits_for IS NOT DISTINCT FROM 'turn' AND jobs.status NOT IN ('active', 'pending'))
       AND NOT (places.waits_for IS NOT DISTINCT FROM 'window' AND waiting.available_at > %s)
"""


class InvariantBroken(AssertionError):
    """An invariant does not hold. The seed in the message reproduces it."""


class Judge:
    def __init__(self, owner: psycopg.Connection[Any], command_log: CommandLog) -> None:
        self._owner = owner
        self._command_log = command_log
        self._ended: dict[int, Any] = {}  # final records at the end of each day
        self.checked = 0

    def check(self, now: datetime, since: datetime = EVER) -> None:
        """Check, at the end of a simulated day, everything that one statement can verify of the records since then."""
        _refuse(self.statements(now, since))

    def check_everything(self, now: datetime) -> None:
        """Check, at the end of the world, the history of every job as well, and that no work is left."""
        _refuse(self.violations(now))

    def violations(self, now: datetime) -> Iterator[str]:
        yield from self.statements(now)
        yield from self._drained(now)
        for history in self._command_log.histories.values():
            self.checked += 1
            for message in self._check_history(history):
                yield f"{message} ({history.name})"

    def statements(self, now: datetime, since: datetime = EVER) -> Iterator[str]:
        histories, ticks = self._command_log.histories, self._command_log.ticks
        given = {
            "exclusive": [history.id for history in histories.values() if _is_exclusive(history)],
            "jobs": list(histories),
            "most_tries": [history.spec.retry.max + 1 for history in histories.values()],
            "since": since,
            "ticked_at": ticks[-1] if ticks else now - DAY,
        }
        self._owner.execute("SET search_path TO foliot")
        for name, query in CHECKS.items():
            if since > EVER and name in WHOLE:
                continue
            self.checked += 1
            wrong = self._owner.execute(query, given).fetchmany(3)
            if wrong:
                yield f"{name}: {wrong}"
        yield from self._finals(now, since)

    def check_claims(self, claimed: Sequence[Claimed], now: datetime) -> None:
        """Check I3 and I8 for attempts: available by now, windows open when it became so, and open now."""
        if not claimed:
            return
        rows = self._owner.execute(
            "SELECT run_id, available_at, expires_at FROM foliot.leases WHERE run_id = ANY (%s)",
            [[each.run_id for each in claimed]],
        ).fetchall()
        since = {run_id: (available_at, expires_at) for run_id, available_at, expires_at in rows}
        for each in claimed:
            self.checked += 1
            history = self._command_log.histories[each.job_id]
            available_at, expires_at = since[each.run_id]
            if expires_at is not None and expires_at <= now:
                raise InvariantBroken(
                    f"I8 deadlines: {history.name} started at {now}, expired at {expires_at}"
                )
            deadline = history.spec.limits.start_deadline
            is_prompt = each.attempt == 1 and each.trigger in _PROMPT and not history.is_guarded
            if is_prompt and deadline is not None and now >= available_at + deadline:
                raise InvariantBroken(
                    f"I8 deadlines: {history.name} started at {now}, available since {available_at}, after {deadline}"
                )
            if available_at > now:
                raise InvariantBroken(
                    f"I3 never early: {history.name} started at {now}, available from {available_at} on"
                )
            if each.trigger is not Trigger.MANUAL and history.is_frozen(now):
                raise InvariantBroken(f"I8 freezes: {history.name} started at {now}, in a freeze")
            is_bound = history.is_guarded and each.trigger is not Trigger.MANUAL
            if is_bound and not may_begin(history, available_at, now):
                raise InvariantBroken(
                    f"I8 windows: {history.name} started at {now}, available since {available_at}, while its window or calendar was closed"
                )

    def _drained(self, now: datetime) -> Iterator[str]:
        """I14: with faults over and nothing new planned, only what waits for its window or for a resume is still open."""
        self.checked += 1
        wrong = self._owner.execute(_STILL_OPEN, [now]).fetchmany(3)
        if wrong:
            yield f"I14 liveness: still open after all this time: {wrong}"

    def _check_history(self, history: JobHistory) -> Iterator[str]:
        row = self._owner.execute(
            """SELECT jobs.status, jobs.status_at, cursor_at, NULLIF(due_at, 'infinity'), ending, runs_created, live, waiting
                 FROM foliot.timers JOIN foliot.jobs ON jobs.id = timers.job_id WHERE job_id = %s""",
            [history.id],
        ).fetchone()
        if row is None:
            yield "I1: its timer is gone"
            return
        rows = self._owner.execute(
            """SELECT schedule_rev, planned_for, planned_key, fold, planned_until, count, created_at, started_at, finished_at
                 FROM foliot.runs WHERE job_id = %s AND trigger = 'schedule' ORDER BY planned_for, number""",
            [history.id],
        ).fetchall()
        ends = self._owner.execute(
            "SELECT finished_at FROM foliot.runs WHERE job_id = %s", [history.id]
        ).fetchall()
        yield from find_violations(
            history, TimerState(*row), records_of(rows), {at for (at,) in ends}, self._command_log.ticks
        )

    def _finals(self, now: datetime, since: datetime) -> Iterator[str]:
        """I10: what had ended by the end of a day has not changed since; days that are over now are remembered."""
        today = (now - EVER) // DAY
        rows = self._owner.execute(
            """SELECT (extract(epoch FROM finished_at)::bigint / 86400)::int, count(*), sum(hashtextextended(runs::text, 0))
                 FROM foliot.runs WHERE finished_at >= %s AND finished_at < %s GROUP BY 1""",
            [EVER + DAY * ((since - EVER) // DAY), EVER + DAY * today],
        ).fetchall()
        found = {day: (count, total) for day, count, total in rows}
        for day in sorted({*found, *(day for day in self._ended if EVER + day * DAY >= since)}):
            self.checked += 1
            known = self._ended.setdefault(day, found.get(day))
            if known != found.get(day):
                yield f"I10 final: runs that had ended on {EVER + day * DAY:%Y-%m-%d} have changed: {known} -> {found.get(day)}"


def _refuse(violations: Iterator[str]) -> None:
    for message in violations:
        raise InvariantBroken(message)


def _is_exclusive(history: JobHistory) -> bool:
    return history.spec.overlap.rule is not OverlapRule.CONCURRENT
