"""How a plan looks, to people and to programs."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.change_rendering import change_list
from foliot.cli.tables import BAD, GOOD, QUIET, SOON, STRONG, cell, stacked
from foliot.sdk.sync.plan import Plan

MOST_NAMED = 10


def plan_page(plan: Plan, *, prune: bool, applied: bool) -> RenderableType:
    """What is new, what changes and how, what goes, what is left alone."""
    parts: list[RenderableType | None] = []
    for entry in plan.create:
        schedule = entry.schedule
        said = (
            schedule.get("words")
            or schedule.get("expr")
            or schedule.get("every")
            or schedule.get("at")
            or "by hand"
        )
        parts.append(Text.assemble(("+ ", GOOD), (cell(entry.name).plain, STRONG), f"  {cell(said).plain}"))
    for update in plan.update:
        app = update.job.managed_by
        managed = "" if app is None or applied else f'  managed by the app "{cell(app).plain}": needs --force'
        parts.append(Text.assemble(("~ ", SOON), (cell(update.entry.name).plain, STRONG), managed))
        parts.append(change_list(update.changes))
    for job in plan.gone:
        what = "  no longer in the file" if prune else "  no longer in the file: --prune archives it"
        parts.append(Text.assemble(("- " if prune else "? ", BAD), (cell(job.name).plain, STRONG), what))
    if plan.same:
        parts.append(Text(f"= {len(plan.same)} as they are", style=QUIET))
    if plan.untouched:
        named = ", ".join(cell(job.name).plain for job in plan.untouched[:MOST_NAMED])
        more = f" and {len(plan.untouched) - MOST_NAMED} more" if len(plan.untouched) > MOST_NAMED else ""
        parts.append(Text(f"Not in the file, not touched: {named}{more}", style=QUIET))
    parts.append(Text(_sum(plan, prune=prune, applied=applied), style=STRONG))
    return stacked(*parts)


def as_json(plan: Plan, *, prune: bool, applied: bool) -> dict[str, Any]:
    return {
        "applied": applied,
        "create": [{"name": entry.name} for entry in plan.create],
        "change": [
            {
                "id": str(update.job.id),
                "name": update.entry.name,
                "managed_by": update.job.managed_by,
                "changes": [
                    {"path": each.pointer, "before": each.before, "after": each.after}
                    for each in update.changes
                ],
            }
            for update in plan.update
        ],
        "archive": [{"id": str(job.id), "name": job.name} for job in (plan.gone if prune else ())],
        "same": [{"id": str(job.id), "name": job.name} for job in plan.same],
        "untouched": [
            {"id": str(job.id), "name": job.name} for job in (*plan.untouched, *(() if prune else plan.gone))
        ],
    }


def _sum(plan: Plan, *, prune: bool, applied: bool) -> str:
    gone = len(plan.gone) if prune else 0
    if plan.changes_nothing and not gone:
        return "No changes."
    did = ("created", "changed", "archived") if applied else ("to create", "to change", "to archive")
    counts = zip((len(plan.create), len(plan.update), gone), did, strict=True)
    told = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{told}." if applied else f"{told}. Nothing was done."
