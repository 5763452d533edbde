"""How skipped and backfilled planned times look."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.rendering import next_times
from foliot.cli.looks import STRONG, cell, stacked
from foliot.cli.times import wall, when
from foliot.wire.jobs import BackfillOut, SkipNextOut

SHOWN = 10


def skipping(told: SkipNextOut, name: str, zone: str, now: datetime) -> RenderableType:
    several = "1 planned time" if told.count == 1 else f"{told.count} planned times"
    after = (
        f"Then it runs {when(told.next_run_at, zone, now)}."
        if told.next_run_at
        else "None is known to run after."
    )
    more = f"and {told.count - SHOWN} more" if told.count > SHOWN else None
    return stacked(
        Text.assemble(("Will skip", STRONG), f" {several} of {cell(name).plain}:"),
        next_times(told.skipped[:SHOWN], zone, now),
        None if more is None else Text(more),
        Text(after),
    )


def filled(told: BackfillOut, name: str, zone: str, now: datetime) -> RenderableType:
    if told.first is None or told.last is None:
        return Text(f"There is nothing to fill in for {cell(name).plain}.")
    several = "1 run" if told.count == 1 else f"{told.count} runs"
    span = f"from {wall(told.first, zone)} to {wall(told.last, zone)}"
    if told.dry_run:
        return Text(f"Would make {several} of {cell(name).plain}, {span}. Nothing was done.")
    return Text.assemble(("Made", STRONG), f" {several} of {cell(name).plain}, {span}.")
