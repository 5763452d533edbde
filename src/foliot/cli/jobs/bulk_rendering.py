"""How it looks when one thing is done to many jobs."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import BAD, QUIET, STRONG, cell, columns, stacked
from foliot.wire.bulk import BulkOut

DONE = {
    "pause": "Paused",
    "resume": "Resumed",
    "disable": "Disabled",
    "archive": "Archived",
    "run": "Asked for a run of",
    "tag": "Tagged",
    "untag": "Untagged",
}
MOST = 20  # of those it was not done to


def question(seen: BulkOut, q: str) -> str:
    found = f"{pluralize(seen.found, 'job')} {'matches' if seen.found == 1 else 'match'} {q or 'everything'}"
    rest = [f"{seen.already:,} so already"] * bool(seen.already) + [f"{seen.failed:,} cannot"] * bool(
        seen.failed
    )
    but = f" ({', '.join(rest)})" if rest else ""
    return f"{found}. {seen.action.capitalize()} {seen.done:,}{but}?"


def bulk_done(told: BulkOut) -> RenderableType:
    """What was done, or would be; then those that could not, and why."""
    if not told.found:
        return Text("No job matches. Nothing was done.")
    if told.already == told.found:
        return Text(f"{pluralize(told.found, 'job is', 'jobs are')} so already. Nothing was done.")
    verb = f"Would {told.action}" if told.dry_run else DONE.get(told.action, told.action)
    head = Text.assemble((verb, STRONG), f" {pluralize(told.done, 'job')}.")
    if told.already:
        head.append(f" {pluralize(told.already, 'was', 'were')} so already.")
    if told.failed:
        head.append(f" {pluralize(told.failed, 'job')} cannot:", BAD)
    failed = [each for each in told.results if each.outcome in {"failed", "not_found"}]
    rows = [(cell(str(each.id), QUIET), cell(each.message)) for each in failed[:MOST]]
    more = f"  and {len(failed) - MOST:,} more; -o json has them all" if len(failed) > MOST else None
    return stacked(
        head,
        columns(("id", "why"), rows, wraps=("why",), indent=2, headed=False) if rows else None,
        None if more is None else Text(more),
        Text("Nothing was done.") if told.dry_run else None,
    )
