"""How skipped and backfilled planned times look."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.rendering import next_times
from foliot.cli.output import pluralize
from foliot.cli.tables import STRONG, cell, stacked
from foliot.cli.times import local_time_relative, local_times
from foliot.wire.jobs import BackfillOut, SkipNextOut

SHOWN = 10


def skipping(told: SkipNextOut, name: str, zone: str, now: datetime) -> RenderableType:
    several = pluralize(told.count, "planned time")
    after = (
        f"Then it runs {local_time_relative(told.next_run_at, zone, now)}."
        if told.next_run_at
        else "None is known to run after."
    )
    more = f"and {told.count - SHOWN:,} more" if told.count > SHOWN else None
    return stacked(
        Text.assemble(
            ("Would skip" if told.dry_run else "Will skip", STRONG), f" {several} of {cell(name).plain}:"
        ),
        next_times(told.skipped[:SHOWN], zone, now),
        None if more is None else Text(more),
        Text(after),
        Text("Nothing was done.") if told.dry_run else None,
    )


def filled(told: BackfillOut, name: str, zone: str, now: datetime) -> RenderableType:
    if told.first is None or told.last is None:
        return Text(f"There is nothing to fill in for {cell(name).plain}.")
    several = pluralize(told.count, "run")
    first, last = local_times((told.first, told.last), zone)
    span = f"from {first} to {last}"
    if told.dry_run:
        return Text(f"Would make {several} of {cell(name).plain}, {span}. Nothing was done.")
    return Text.assemble(("Made", STRONG), f" {several} of {cell(name).plain}, {span}.")
