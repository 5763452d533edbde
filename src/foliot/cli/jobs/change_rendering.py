"""How changes of a job look: field by field, old and new."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.rendering import warned
from foliot.cli.jobs.trial_rendering import trial
from foliot.cli.tables import BAD, GOOD, QUIET, STRONG, cell, columns, stacked
from foliot.cli.times import local_time_relative, relative
from foliot.sdk.sync.plan import Change, differences
from foliot.wire.dry_run import DryRunOut
from foliot.wire.jobs import JobFields, JobOut
from foliot.wire.revisions import RevisionOut


def changed(before: JobOut, after: JobOut, now: datetime) -> RenderableType:
    """What a change did: the fields, old and new, and the next time."""
    if before.revision == after.revision:
        return Text(f"{cell(after.name).plain} is as it was.")
    head = Text.assemble(("Changed", STRONG), f" {cell(after.name).plain}: revision {after.revision}.")
    if after.next_run_at is not None:
        head.append(f" Next: {local_time_relative(after.next_run_at, after.schedule.timezone, now)}.")
    return stacked(head, change_list(differences(_fields(before), _fields(after))), *warned(after))


def would_change(job: JobOut, tried: DryRunOut, now: datetime) -> RenderableType:
    """What a dry run of an edit says: the fields first, then the runs ahead."""
    lines = None if tried.job is None else change_list(differences(_fields(job), _fields(tried.job)))
    return stacked(lines, trial(f"Would change {job.name}", tried, now))


def change_list(changes: Iterable[Change]) -> RenderableType:
    """Without what follows from the rest: the sentence, and the anchor of a new pace."""
    changes = list(changes)
    paced = any(each.pointer == "/schedule/every" for each in changes)
    follow = {"/schedule/words", "/schedule/anchor"} if paced else {"/schedule/words"}
    rows = [
        (
            cell(each.pointer),
            cell(_short(each.before), BAD),
            Text("->", style=QUIET),
            cell(_short(each.after), GOOD),
        )
        for each in changes
        if each.pointer not in follow
    ]
    return columns(("field", "before", "", "after"), rows, wraps=("before", "after"), indent=2, headed=False)


def revision_list(
    revisions: Sequence[RevisionOut], job: JobOut, who: Mapping[str, str], now: datetime
) -> RenderableType:
    parts: list[RenderableType] = []
    for each in revisions:
        head = Text.assemble(
            (f"revision {each.revision}", STRONG),
            "  (in force)" if each.revision == job.revision else "",
            (f"  {relative(each.at - now)} by {cell(who.get(each.actor, each.actor)).plain}", QUIET),
            f"  {cell(each.note).plain}" if each.note else "",
        )
        parts += [head, change_list(Change(one.path, one.before, one.after) for one in each.changes)]
    return stacked(*parts)


def _fields(job: JobOut) -> dict[str, Any]:
    return job.model_dump(mode="json", include={*JobFields.model_fields, "schedule"})


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
