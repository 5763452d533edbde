"""Turns the JSON of a job into a definition, or reports everything that is wrong with it at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NoReturn, TypeVar, assert_never

from foliot.domain.defaults import INHERITABLE, JobDefaults
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeCondition, EdgeMode, JoinRule
from foliot.domain.errors import FoliotError, Invalid, ScheduleInvalid
from foliot.domain.ids import CalendarId, JobId, PrincipalId
from foliot.domain.policy import (
    Backoff,
    Breaker,
    BreakerAction,
    Limits,
    Misfire,
    MisfireRule,
    NotifyPolicy,
    OnLost,
    Overlap,
    OverlapRule,
    Retention,
    RetentionMode,
    Retry,
)
from foliot.domain.run import Target, TargetKind
from foliot.domain.schedule import (
    Cron,
    DayMatch,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    Otherwise,
    OverlapTime,
    Schedule,
    Window,
    load_zone,
)
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.parse import ParseOptions, read_schedule, settled
from foliot.handlers.dependencies import DEFAULT_EGRESS_POLICY, EgressPolicy
from foliot.web.errors import summarize_errors
from foliot.web.mapping.handler_config import check_config
from foliot.web.mapping.usage import budget_from, check_budgets
from foliot.wire import jobs as wire
from foliot.wire.schedules import CronIn, IntervalIn, ManualIn, OnceIn, ScheduleIn, WordsIn

LARGEST_OBJECT = 256 * 1024  # bytes of JSON, for payload and config each
# Fields that mean the same on the wire and in the domain are copied by name; the others are converted one by one.
_CONVERTED = {
    "name",
    "tags",
    "window",
    "calendars",
    "depends_on",
    "depends_when",
    "target",
    "retry",
    "overlap",
    "misfire",
    "breaker",
    "retention",
    "notify",
    "budgets",
}
_COPIED = wire.JobFields.model_fields.keys() - _CONVERTED
SAME_IN_SPEC = tuple(each.name for each in fields(Spec) if each.name in _COPIED)
SAME_IN_DEFINITION = tuple(each.name for each in fields(Definition) if each.name in _COPIED)
FLAT = {"/misfire/grace": "/grace", "/misfire/max_catch_up": "/max_catch_up"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DefinitionContext:
    """The facts that a definition depends on beside its JSON."""

    now: datetime
    timezone: str
    owner_id: PrincipalId | None
    before: Definition | None = None
    keeps_schedule: bool = False  # the schedule is unchanged: times that have passed since are no error
    schema: Mapping[str, Any] | None = None  # of the config, if only workers know the type
    reach: EgressPolicy = DEFAULT_EGRESS_POLICY  # addresses beside the public internet
    workspace: str = ""  # its slug
    defaults: JobDefaults = JobDefaults()  # of fields that the job leaves out


def definition_from(job: wire.JobIn, context: DefinitionContext) -> Definition:
    now, before = context.now, context.before
    faults = FieldErrors()
    schedule = faults.take(lambda: _schedule(job.schedule, context))
    defaults = context.defaults
    inherited = {
        name: defaults.origin(name).value for name in INHERITABLE if name not in job.model_fields_set
    }
    retry = defaults.retry if "retry" in inherited else faults.take(lambda: retry_from(job.retry))
    overlap = faults.take(lambda: Overlap(OverlapRule(job.overlap), job.max_queued))
    misfire = faults.take(lambda: Misfire(MisfireRule(job.misfire), job.grace, job.max_catch_up))
    breaker = faults.take(lambda: Breaker(job.breaker.after, BreakerAction(job.breaker.action)))
    timeout = defaults.timeout if "timeout" in inherited else job.timeout
    limits = faults.take(lambda: Limits(timeout, job.start_deadline, OnLost(job.on_lost)))
    retention = (
        defaults.retention if "retention" in inherited else faults.take(lambda: retention_from(job.retention))
    )
    if before is None or (before.spec.start_at, before.spec.end_at) != (job.start_at, job.end_at):
        faults.take(lambda: _check_span(job, now))
    # A host applies its own egress policy.
    reach = context.reach if job.target is None else None
    faults.found += check_config(job.type, job.config, context.schema, reach, context.workspace)
    faults.take(lambda: check_budgets(job.budgets))
    faults.take(lambda: _check_size("config", job.config))
    faults.take(lambda: _check_size("payload", job.payload))
    faults.take(lambda: _check_size("external_ref", job.external_ref))
    if (
        schedule is None
        or retry is None
        or overlap is None
        or misfire is None
        or breaker is None
        or limits is None
        or retention is None
        or faults.found
    ):
        faults.tell()
    if isinstance(schedule, Interval) and schedule.anchor == now:
        schedule = replace(schedule, anchor=None)  # the transaction that creates the job sets it
    spec = Spec(
        **{name: getattr(job, name) for name in SAME_IN_SPEC},
        schedule=schedule,
        tags=tuple(dict.fromkeys(job.tags)),
        window=_window(job.window),
        calendars=tuple(CalendarId(each) for each in job.calendars),
        depends_when=JoinRule(job.depends_when),
        target=_target(job.target),
        retry=retry,
        overlap=overlap,
        misfire=misfire,
        breaker=breaker,
        limits=limits,
        budgets=tuple(budget_from(each) for each in job.budgets),
    )
    return Definition(
        **{name: getattr(job, name) for name in SAME_IN_DEFINITION},
        name=job.name.strip(),
        spec=spec,
        retention=retention,
        notify=_notify(job.notify),
        depends_on=tuple(_edge(each) for each in job.depends_on),
        owner_id=context.owner_id,
        inherited=inherited,
    )


def _schedule(given: ScheduleIn, context: DefinitionContext) -> Schedule:
    if context.keeps_schedule and context.before is not None:
        return context.before.spec.schedule
    return schedule_from(given, context.now, context.timezone)


def schedule_from(given: ScheduleIn, now: datetime, timezone: str) -> Schedule:
    """Return the schedule, checked, anchored at `now`, with at least one time ahead."""
    zone = given.timezone or timezone
    match given:
        case WordsIn():
            return _read(given, zone, now)
        case CronIn():
            schedule: Schedule = Cron(
                given.expr.strip(),
                zone,
                given.seconds,
                DayMatch(given.day_match),
                given.every_n_weeks,
                given.anchor,
                Gap(given.gap),
                OverlapTime(given.overlap_time),
                given.spread,
            )
        case IntervalIn():
            schedule = Interval(given.every, given.anchor, IntervalMode(given.mode), zone, given.spread)
        case OnceIn():
            schedule = Once(given.at, zone)
        case ManualIn():
            schedule = Manual(zone)
        case _:
            assert_never(given)
    schedule = settled(schedule, now)
    _check_sentence(given.words, schedule)
    return schedule


class FieldErrors:
    """Collects errors instead of stopping at the first."""

    def __init__(self) -> None:
        self.found: list[FoliotError] = []

    def take(self, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except Invalid as error:
            error.pointer = FLAT.get(error.pointer or "", error.pointer)
            self.found.append(error)
            return None

    def tell(self) -> NoReturn:
        if len(self.found) == 1:
            raise self.found[0]
        raise Invalid(summarize_errors(len(self.found)), parts=tuple(self.found))


def _read(given: WordsIn, zone: str, now: datetime) -> Schedule:
    reading = ParseOptions(
        zone, given.seconds, DayMatch(given.day_match), Gap(given.gap), OverlapTime(given.overlap_time)
    )
    try:
        return read_schedule(given.words, now, reading)
    except Invalid as error:
        if error.pointer != "/schedule/timezone":  # every other error is in the words
            error.pointer = "/schedule/words"
        raise


def _check_sentence(words: str | None, schedule: Schedule) -> None:
    """Accept the sentence of an answer beside its fields. Other words would contradict the fields."""
    if words is not None and words != say(schedule, load_zone(schedule.timezone)):
        raise ScheduleInvalid(
            "These words say something else than the fields beside them.",
            pointer="/schedule/words",
            hint="Send words alone, or the fields alone.",
        )


def _check_span(job: wire.JobIn, now: datetime) -> None:
    if job.end_at is not None and job.end_at <= max(now, job.start_at or now):
        raise Invalid(
            "end_at has passed." if job.end_at <= now else "end_at lies before start_at.",
            pointer="/end_at",
            hint="A job ends after it starts, and in the future.",
        )


def _check_size(name: str, value: Any) -> None:
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > LARGEST_OBJECT:
        raise Invalid(
            f"{name} has {size:,} bytes as JSON; the most is {LARGEST_OBJECT:,}.",
            pointer=f"/{name}",
            hint="Keep large data elsewhere and send its address.",
        )


def retry_from(given: wire.Retry) -> Retry:
    return Retry(
        given.max,
        Backoff(given.strategy),
        tuple(given.delays),
        given.base,
        given.cap,
        given.jitter,
        given.past_next,
    )


def retention_from(given: wire.Retention) -> Retention:
    return Retention(given.keep, given.keep_last, RetentionMode(given.mode))


def _notify(given: wire.Notify | None) -> NotifyPolicy | None:
    if given is None:
        return None
    return NotifyPolicy(given.email, given.slack, given.whatsapp, tuple(dict.fromkeys(given.recipients)))


def _edge(given: wire.Dependency) -> Edge:
    return Edge(JobId(given.job), EdgeCondition(given.on), EdgeMode(given.mode), given.delay, given.max_age)


def _target(given: wire.Target | None) -> Target | None:
    if given is None:
        return None
    if isinstance(given, wire.HostTarget):
        return Target(TargetKind.HOST, given.host)
    return Target(TargetKind.SERVER, given.server)


def _window(given: wire.Window | None) -> Window | None:
    if given is None:
        return None
    days = frozenset(wire.WEEK.index(day) for day in given.days)
    return Window(given.start, given.end, days, Otherwise(given.otherwise))
