"""The tables: what jobs and runs can be filtered by."""

from __future__ import annotations

from foliot.domain.finding.fields import Field, Fields, Kind, Side, times_of
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import Trigger
from foliot.domain.schedule import SkipReason

SCHEDULE_KINDS = ("cron", "interval", "once", "manual")

JOBS = Fields(
    "jobs",
    (
        Field("status", Kind.WORD, "Where it stands.", tuple(JobStatus)),
        Field("tag", Kind.TEXT, "One of its tags."),
        Field("type", Kind.TEXT, "Which handler does the work."),
        Field("queue", Kind.TEXT, "Where its runs wait for a worker."),
        Field("name", Kind.NAME, "Something in its name."),
        Field("owner", Kind.PERSON, "Whose it is: a name, an id, or me."),
        Field("schedule", Kind.WORD, "The kind of its schedule.", SCHEDULE_KINDS),
        Field("id", Kind.ID, "Its id."),
        *times_of("created", "created"),
        Field("updated", Kind.INSTANT, "When it was edited last."),
        Field("next", Kind.INSTANT, "When it runs next.", side=Side.AHEAD),
        Field("last", Kind.INSTANT, "When its last run ended."),
        Field("result", Kind.WORD, "How its last run ended.", tuple(RunStatus)),
        Field("failures", Kind.NUMBER, "How many runs in a row have failed."),
        Field("runs", Kind.NUMBER, "How many runs it has had."),
    ),
)

RUNS = Fields(
    "runs",
    (
        Field("status", Kind.WORD, "Where it stands, or how it ended.", tuple(RunStatus)),
        Field("reason", Kind.WORD, "Why it was skipped.", tuple(SkipReason)),
        Field("trigger", Kind.WORD, "What brought it about.", tuple(Trigger)),
        Field("job", Kind.ID, "Of which job."),
        Field("tag", Kind.TEXT, "One of its job's tags."),
        Field("type", Kind.TEXT, "Which handler does the work."),
        Field("queue", Kind.TEXT, "Where it waited for a worker."),
        Field("name", Kind.NAME, "Something in its job's name."),
        Field("id", Kind.ID, "Its id."),
        Field("worker", Kind.TEXT, "Who did it."),
        *times_of("planned", "planned for"),
        Field("number", Kind.NUMBER, "Its number within its job."),
        Field("attempts", Kind.NUMBER, "How many attempts it took."),
    ),
)
