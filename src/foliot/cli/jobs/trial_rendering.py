"""How a dry run looks: the sentence, the next times, and what would change in the runs ahead."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.rendering import next_times
from foliot.cli.output import pluralize
from foliot.cli.tables import BAD, GOOD, SOON, STRONG, cell, columns, stacked
from foliot.cli.times import local_time, local_times, relative
from foliot.wire.dry_run import DryRunOut

MOST = 5  # of each kind of difference


def trial(what: str, tried: DryRunOut, now: datetime, *, is_new: bool = False) -> RenderableType:
    """`what` says what would be done, without a full stop."""
    zone = tried.job.schedule.timezone if tried.job is not None else "UTC"
    words = Text("") if tried.words is None else Text.assemble(": ", cell(tried.words))
    return stacked(
        Text.assemble((cell(what).plain, STRONG), words, "."),
        next_times(tried.items, zone, now) if tried.items else None,
        None if is_new else difference(tried, zone, now),
        *(cell(f"Note: {each}", SOON) for each in tried.warnings),
        Text("Nothing was done."),
    )


def difference(tried: DryRunOut, zone: str, now: datetime) -> RenderableType | None:
    """The runs ahead that would come, go or move; None where all stay."""
    told = tried.difference
    if not (told.added or told.removed or told.moved):
        return Text(
            f"The {pluralize(told.unchanged, 'run')} ahead stay{'s' if told.unchanged == 1 else ''} as before."
            if told.unchanged
            else "No run ahead changes."
        )
    removed, added, moved = told.removed[:MOST], told.added[:MOST], told.moved[:MOST]
    at = iter(
        local_times([*removed, *added, *(each for move in moved for each in (move.before, move.after))], zone)
    )
    rows = [_row("-", BAD, next(at), relative(each - now)) for each in removed]
    rows += [_row("+", GOOD, next(at), relative(each - now)) for each in added]
    rows += [_row("~", SOON, next(at), f"-> {next(at)}") for _ in moved]
    counts = (
        (len(told.removed), "removed"),
        (len(told.added), "added"),
        (len(told.moved), "moved"),
        (told.unchanged, "as before"),
    )
    summed = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    table = columns(("", "when", "how"), rows, indent=2, headed=False)
    return stacked(Text(f"Runs ahead, up to {local_time(told.until, zone)}: {summed}."), table)


def _row(sign: str, style: str, at: str, how: str) -> tuple[Text, ...]:
    return Text(sign, style=style), cell(at, style), cell(how)
