"""A sentence for every skip reason: the cause and the next step."""

from __future__ import annotations

from datetime import datetime

from foliot.domain.schedule import SkipReason, Timetable
from foliot.domain.schedule.calendar import calendar_closed_until
from foliot.domain.schedule.zone import naive_utc

SENTENCES: dict[SkipReason, tuple[str, str]] = {
    SkipReason.OVERLAP: (
        "an earlier run of this job had not ended",
        "Make the job faster or less frequent, or set overlap to queue or concurrent.",
    ),
    SkipReason.BLACKOUT: (
        "a calendar of this job forbids running at that time",
        "Look at the job's calendars; a calendar can defer instead of skip.",
    ),
    SkipReason.WINDOW: (
        "it fell outside the job's window, or gave way to a newer planned time deferred to the same opening",
        "Widen the window, or move the schedule into it.",
    ),
    SkipReason.FROZEN: ("a freeze was in force", "List the freezes to see who made it. A freeze can also run such times later: --after."),
    SkipReason.DEPENDENCY_FAILED: (
        "an upstream job had no recent success",
        "Look at the last runs of the upstream job; run this job manually if its data is there.",
    ),
    SkipReason.DEPENDENCY_MISSING: (
        "an upstream job has never run",
        "Run the upstream job once, or remove the dependency.",
    ),
    SkipReason.MISFIRE: (
        "Foliot was not running when it was due",
        "A backfill runs it now. To run more of such times, set misfire to all, or overlap to queue or concurrent.",
    ),
    SkipReason.PAUSED: ("the job was paused or disabled", "Resume with catch_up to run what was missed, or backfill."),
    SkipReason.OPERATOR: ("a person asked to skip it", "The audit shows who. Run the job manually if it is needed after all."),
    SkipReason.DEADLINE: (
        "it could not start before its start deadline",
        "Add workers, raise the job's priority, or allow a later start.",
    ),
    SkipReason.HOST_OFFLINE: ("the host it must run on was offline", "Bring the host back, or let another host serve the job."),
    SkipReason.QUOTA: (
        "the quota of fires per day was used up, that of the workspace or of the job's owner",
        "Let jobs fire less often, or ask an administrator for a higher fires_per_day. The count starts again at midnight UTC.",
    ),
    SkipReason.BUDGET: (
        "a budget of the workspace was used up",
        "See `foliot usage`. An administrator can raise the budget; otherwise jobs run again when its day or month (UTC) ends.",
    ),
    SkipReason.DST_GAP: (
        "its local time did not exist: the clocks jumped over it",
        "Set the schedule's gap to next_valid or shift to run it on such days.",
    ),
    SkipReason.TYPE_DISABLED: ("its job type is switched off", "Ask an administrator to switch the job type on."),
    SkipReason.SCHEDULER_ERROR: (
        "Foliot could not plan this job",
        "Check the job's schedule with preview; the error is in the server's log under this job's id.",
    ),
    SkipReason.SHADOW: (
        "the job is in shadow mode: its planned times are recorded and do not run",
        "Set shadow to false when the other scheduler has let go of it: foliot cutover.",
    ),
    SkipReason.IMPORTED: (
        "the scheduler that the job was imported from skipped it",
        "The record comes from that scheduler's own history; its note holds the reason given there.",
    ),
}  # fmt: skip

# The same for a planned time in the future.
AHEAD: dict[SkipReason, str] = {
    SkipReason.WINDOW: "it falls outside the job's window, or gives way to a newer planned time put off to the same opening",
    SkipReason.BLACKOUT: "a calendar of this job forbids running then",
    SkipReason.DST_GAP: "its local time does not exist on that day: the clocks jump over it",
    SkipReason.QUOTA: "the quota of fires per day is used up for today, that of the workspace or of the job's owner",
    SkipReason.BUDGET: "a budget of the workspace is used up until its day or month ends",
}


def name_closed_calendars(timetable: Timetable, at: datetime) -> str | None:
    """Return which calendars are closed at `at`, such as `the calendar "office" is closed`; None if none of them is any more."""
    instant = naive_utc(at)
    closed = [each.title for each in timetable.calendars if calendar_closed_until(each, instant) is not None]
    return f"{' and '.join(closed)} {'is' if len(closed) == 1 else 'are'} closed" if closed else None


BY_ITSELF = (
    "its own code asked for that once it ran",
    "The run's log may say more.",
)  # shown for `raise Skip`
