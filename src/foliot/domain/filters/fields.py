"""The filter fields of each resource: name, kind of value, meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import Trigger
from foliot.domain.schedule import SkipReason


class Kind(StrEnum):
    WORD = "word"  # one of a few
    TEXT = "text"  # exactly this
    NAME = "name"  # this somewhere in it, in capitals or not
    ID = "id"
    PERSON = "person"  # an id, a name, or `me`
    NUMBER = "number"  # 3, >3, <=10
    INSTANT = "instant"  # 24h, 2026-11-01, 2026-11-01T09:00:00Z, today; with <, <=, >, >=


class Side(StrEnum):
    """Where a bare duration lies: `created:<24h` is less than a day ago, `next:<1h` less than an hour ahead."""

    PAST = "past"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    says: str
    words: tuple[str, ...] = ()
    side: Side = Side.PAST
    comparing: str = ""  # a field such as `since` compares another by itself: `>=`
    of: str = ""  # ... and this is the other

    @property
    def target(self) -> str:
        """The field whose values it speaks of; a query names these alone."""
        return self.of or self.name


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one resource. Words without a field are searched in `free`."""

    noun: str
    fields: tuple[Field, ...]
    free: str = "name"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(field.target for field in self.fields)

    def get(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


def times_of(target: str, says: str) -> tuple[Field, ...]:
    """The instant itself and the four ways to bound it: `since`, `until` include their day, `after`, `before` do not."""
    itself = Field(target, Kind.INSTANT, f"When it was {says}.")
    bounds = (("since", ">="), ("after", ">"), ("until", "<="), ("before", "<"))
    return (
        itself,
        *(
            replace(itself, name=name, says=f"{name.title()} it was {says}.", comparing=sign, of=target)
            for name, sign in bounds
        ),
    )


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
