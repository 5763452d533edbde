"""How a whole workspace looks, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.holding_rendering import scope_in_short
from foliot.cli.jobs.rendering import counts, job_list
from foliot.cli.output import pluralize
from foliot.cli.tables import BAD, GOOD, SOON, STRONG, facts, stacked
from foliot.cli.times import format_duration, relative
from foliot.wire.fleet import WorkerOut
from foliot.wire.freezes import FreezeOut
from foliot.wire.jobs import JobOut
from foliot.wire.stats import StatsOut


def overview(
    stats: StatsOut,
    ill: Sequence[JobOut],
    workers: Sequence[WorkerOut],
    freezes: Sequence[FreezeOut],
    now: datetime,
    *,
    more_ill: int = 0,
) -> RenderableType:
    """One sentence first: is it well? Then the figures behind it, and the jobs that need somebody."""
    alive = sum(each.status == "alive" for each in workers)
    held = [each for each in freezes if each.status == "in_force"]
    totals, open_now = stats.totals, stats.now
    by_status = Counter(
        {name: count for name, count in stats.jobs.model_dump().items() if name != "archived"}
    )
    rate = "" if totals.success_rate is None else f", {totals.success_rate} % succeeded"
    p95 = stats.newest.lag_ms
    return stacked(
        _verdict(stats, len(ill) + more_ill, alive, held),
        facts(
            (
                ("jobs", ", ".join(counts(by_status)) or "none"),
                (
                    "now",
                    f"{open_now.running:,} running, {open_now.ready:,} ready, {open_now.waiting:,} waiting",
                ),
                ("late", pluralize(open_now.late, "job") if open_now.late else None),
                (
                    "next",
                    relative(open_now.next_due_at - now) if open_now.next_due_at else "nothing is planned",
                ),
                (
                    "last 7 days",
                    f"{pluralize(totals.runs, 'run')}{rate}, {totals.failures:,} failed, {totals.skips:,} skipped",
                ),
                (
                    "start lag",
                    None if p95 is None else f"p95 {format_duration(timedelta(milliseconds=p95.p95))}",
                ),
                ("workers", f"{alive} alive"),
                *(("held", f"{scope_in_short(each.scope)}: {each.reason}") for each in held),
            )
        ),
        job_list(ill, now, total=len(ill) + more_ill) if ill else None,
    )


def _verdict(stats: StatsOut, ill: int, alive: int, held: Sequence[FreezeOut]) -> Text:
    if not alive and sum(stats.jobs.model_dump().values()):
        return Text("Nothing runs: no worker is alive.", style=f"{BAD} {STRONG}")
    if stats.now.late:
        return Text(
            f"Behind: {pluralize(stats.now.late, 'job')} late. No scheduler keeps up.",
            style=f"{BAD} {STRONG}",
        )
    if ill:
        return Text(f"{pluralize(ill, 'job needs', 'jobs need')} a look.", style=f"{BAD} {STRONG}")
    if held:
        return Text("Held by a freeze.", style=f"{SOON} {STRONG}")
    return Text("All is well.", style=f"{GOOD} {STRONG}")
