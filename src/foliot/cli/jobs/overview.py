"""`foliot jobs status`: the whole workspace in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from foliot.cli.freeze import format_scope
from foliot.cli.jobs.views import covering_freeze, format_counts, freeze_line, job_list
from foliot.cli.output import pluralize
from foliot.cli.session import Session, view_command
from foliot.cli.tables import BOLD, GREEN, RED, YELLOW, Block, StyledLine, facts, stack, styled
from foliot.cli.times import format_milliseconds, local_zone, relative

if TYPE_CHECKING:
    from foliot.wire.fleet import WorkerOut
    from foliot.wire.freezes import FreezeOut
    from foliot.wire.jobs import JobOut
    from foliot.wire.reports import StatsOut

FAILING = "failures:>0 status:active,paused,failed"
MAX_FAILING = 20  # jobs that are listed


@view_command
def status(session: Session) -> None:
    """Show the state of the workspace: is all well, which jobs fail, what is held, what runs next."""
    stats = session.client.stats()
    if not session.is_table:
        session.show(stats, stack)
        return
    failing = session.client.jobs.list(q=FAILING, limit=MAX_FAILING, count=True)
    session.draw(
        overview_page(
            stats,
            failing.items,
            session.client.workers().items,
            session.client.freezes.list().items,
            session.now,
            failing_total=getattr(failing, "total", len(failing.items)),
        )
    )


def overview_page(
    stats: StatsOut,
    failing: Sequence[JobOut],
    workers: Sequence[WorkerOut],
    freezes: Sequence[FreezeOut],
    now: datetime,
    *,
    failing_total: int,
) -> Block:
    """Show a verdict, the figures behind it, and the jobs that need attention."""
    alive = sum(each.status == "alive" for each in workers)
    held = [each for each in freezes if each.status == "in_force"]
    totals, current = stats.totals, stats.now
    by_status = Counter(
        {name: count for name, count in stats.jobs.model_dump().items() if name != "archived"}
    )
    rate = "" if totals.success_rate is None else f", {totals.success_rate} % succeeded"
    runs = f"{pluralize(totals.runs, 'run')}{rate}, {totals.failures:,} failed, {totals.skips:,} skipped"
    lag = stats.newest.lag_ms
    return stack(
        _verdict(stats, failing_total, alive, held),
        facts(
            (
                ("jobs", ", ".join(format_counts(by_status)) or "none"),
                (
                    "now",
                    f"{current.running:,} running, {current.ready:,} ready, {current.waiting:,} waiting",
                ),
                ("late", pluralize(current.late, "job") if current.late else None),
                ("next", _next_start(current.next_due_at, freezes, now)),
                ("last 7 days", runs),
                ("start lag", None if lag is None else f"p95 {format_milliseconds(lag.p95)}"),
                ("workers", f"{alive} alive"),
                *(("held", f"{format_scope(each.scope)}: {each.reason}") for each in held),
            )
        ),
        job_list(failing, now, total=failing_total, freezes=freezes) if failing else None,
    )


def _next_start(at: datetime | None, freezes: Sequence[FreezeOut], now: datetime) -> str:
    if at is None:
        return "nothing is planned"
    freeze = covering_freeze(freezes, at)
    return relative(at - now) if freeze is None else freeze_line(freeze, local_zone(), now)


def _verdict(stats: StatsOut, failing: int, alive: int, held: Sequence[FreezeOut]) -> StyledLine:
    if not alive and sum(stats.jobs.model_dump().values()):
        return styled("Nothing runs: no worker is alive.", f"{RED} {BOLD}")
    if stats.now.late:
        late = pluralize(stats.now.late, "job is", "jobs are")
        return styled(f"{late} late: the scheduler is behind or down.", f"{RED} {BOLD}")
    if failing:
        return styled(f"{pluralize(failing, 'job needs', 'jobs need')} attention.", f"{RED} {BOLD}")
    if held:
        return styled("Held by a freeze.", f"{YELLOW} {BOLD}")
    return styled("All is well.", f"{GREEN} {BOLD}")
