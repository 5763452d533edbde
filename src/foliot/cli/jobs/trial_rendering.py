"""How a dry run looks: the sentence, the next times, and what would change in the runs ahead."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.jobs.rendering import next_times
from foliot.cli.looks import BAD, GOOD, SOON, STRONG, cell, columns, stacked
from foliot.cli.times import relative, wall
from foliot.wire.trying import DryRunOut

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
            f"The {told.unchanged} runs ahead stay as they are."
            if told.unchanged
            else "No run ahead changes."
        )
    rows = [_row("-", BAD, wall(each, zone), relative(each - now)) for each in told.removed[:MOST]]
    rows += [_row("+", GOOD, wall(each, zone), relative(each - now)) for each in told.added[:MOST]]
    rows += [
        _row("~", SOON, wall(each.before, zone), f"-> {wall(each.after, zone)}") for each in told.moved[:MOST]
    ]
    counts = (
        (len(told.removed), "removed"),
        (len(told.added), "added"),
        (len(told.moved), "moved"),
        (told.unchanged, "as before"),
    )
    summed = ", ".join(f"{count} {what}" for count, what in counts if count)
    table = columns(("", "when", "how"), rows, indent=2, headed=False)
    return stacked(Text(f"Runs ahead, up to {wall(told.until, zone)}: {summed}."), table)


def _row(sign: str, style: str, at: str, how: str) -> tuple[Text, ...]:
    return Text(sign, style=style), cell(at, style), cell(how)
