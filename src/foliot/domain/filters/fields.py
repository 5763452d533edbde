"""The filter fields of each resource: name, kind of value, meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import Trigger
from foliot.domain.schedule import SkipReason


class FieldKind(StrEnum):
    WORD = "word"  # one of a fixed set
    TEXT = "text"  # exactly this
    NAME = "name"  # contains this, in any case
    ID = "id"
    PERSON = "person"  # an id, a name, or `me`
    NUMBER = "number"  # 3, >3, <=10
    INSTANT = "instant"  # 24h, 2026-11-01, 2026-11-01T09:00:00Z, today; with <, <=, >, >=


class TimeDirection(StrEnum):
    """The direction of a bare duration: `created:<24h` is less than a day ago, `next:<1h` less than an hour ahead."""

    PAST = "past"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class FilterField:
    name: str
    kind: FieldKind
    says: str
    words: tuple[str, ...] = ()
    side: TimeDirection = TimeDirection.PAST
    comparing: str = ""  # a field such as `since` compares another field with `>=`
    of: str = ""  # the other field

    @property
    def target(self) -> str:
        """The field that this one compares; a query contains only that one."""
        return self.of or self.name


@dataclass(frozen=True, slots=True)
class FilterFields:
    """The fields of one resource. Words without a field are searched in `free`."""

    noun: str
    fields: tuple[FilterField, ...]
    free: str = "name"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def get(self, name: str) -> FilterField | None:
        return next((field for field in self.fields if field.name == name), None)


def times_of(target: str, says: str) -> tuple[FilterField, ...]:
    """Return the instant field and its four bounds: `since` and `until` include their day, `after` and `before` do not."""
    itself = FilterField(target, FieldKind.INSTANT, f"When it was {says}.")
    bounds = (("since", ">="), ("after", ">"), ("until", "<="), ("before", "<"))
    return (
        itself,
        *(
            replace(itself, name=name, says=f"{name.title()} it was {says}.", comparing=sign, of=target)
            for name, sign in bounds
        ),
    )


SCHEDULE_KINDS = ("cron", "interval", "once", "manual")

JOBS = FilterFields(
    "jobs",
    (
        FilterField("status", FieldKind.WORD, "Where it stands.", tuple(JobStatus)),
        FilterField("tag", FieldKind.TEXT, "One of its tags."),
        FilterField("type", FieldKind.TEXT, "Which handler does the work."),
        FilterField("queue", FieldKind.TEXT, "Where its runs wait for a worker."),
        FilterField("name", FieldKind.NAME, "Something in its name."),
        FilterField("owner", FieldKind.PERSON, "Whose it is: a name, an id, or me."),
        FilterField("schedule", FieldKind.WORD, "The kind of its schedule.", SCHEDULE_KINDS),
        FilterField("upstream", FieldKind.ID, "A job that it depends on."),
        FilterField("id", FieldKind.ID, "Its id."),
        *times_of("created", "created"),
        FilterField("updated", FieldKind.INSTANT, "When it was edited last."),
        FilterField("next", FieldKind.INSTANT, "When it runs next.", side=TimeDirection.AHEAD),
        FilterField("last", FieldKind.INSTANT, "When its last run ended."),
        FilterField("result", FieldKind.WORD, "How its last run ended.", tuple(RunStatus)),
        FilterField("failures", FieldKind.NUMBER, "How many runs in a row have failed."),
        FilterField("runs", FieldKind.NUMBER, "How many runs it has had."),
    ),
)

RUNS = FilterFields(
    "runs",
    (
        FilterField("status", FieldKind.WORD, "Where it stands, or how it ended.", tuple(RunStatus)),
        FilterField("reason", FieldKind.WORD, "Why it was skipped.", tuple(SkipReason)),
        FilterField("trigger", FieldKind.WORD, "What brought it about.", tuple(Trigger)),
        FilterField("job", FieldKind.ID, "Of which job."),
        FilterField("tag", FieldKind.TEXT, "One of its job's tags."),
        FilterField("type", FieldKind.TEXT, "Which handler does the work."),
        FilterField("queue", FieldKind.TEXT, "Where it waited for a worker."),
        FilterField("name", FieldKind.NAME, "Something in its job's name."),
        FilterField("id", FieldKind.ID, "Its id."),
        FilterField("worker", FieldKind.TEXT, "Who did it."),
        FilterField("error", FieldKind.TEXT, "How it failed: an error code, or the fingerprint of an error."),
        *times_of("planned", "planned for"),
        FilterField("number", FieldKind.NUMBER, "Its number within its job."),
        FilterField("attempts", FieldKind.NUMBER, "How many attempts it took."),
    ),
)
