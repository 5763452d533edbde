"""Describe the days and months of a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from foliot.domain.schedule.describe.cron_shape import LAST, DescribedField, DescribedFields
from foliot.domain.schedule.describe.english import (
    ORDINAL_WORDS,
    full_date,
    listed,
    month_names,
    ordinal,
    runs,
    weekday_names,
)
from foliot.domain.schedule.kinds import Cron, DayMatch
from foliot.domain.schedule.words.vocabulary import DAY_NAMES

WORKDAYS = (1, 2, 3, 4, 5)
CHOSEN = "chosen per job"


@dataclass(frozen=True, slots=True)
class DaysOfYear:
    before: str  # leads a clock time: "every weekday"
    after: str  # follows a pace: "on weekdays"; empty on any day
    tail: str  # what restricts both: ", in January"
    weeks: str = ""  # which weeks count, where `before` has not said it yet
    weeks_after: str = ""  # and where `after` has not

    @property
    def is_any(self) -> bool:
        return not (self.after or self.tail or self.weeks_after)


def days_of_year(fields: DescribedFields, schedule: Cron) -> DaysOfYear:
    dom, month, dow = fields.dom, fields.month, fields.dow
    months = f"a month {CHOSEN}" if month.hashed else listed(month_names(month.values))
    tail = "" if month.is_full else f", in {months}"
    weeks = _weeks(schedule)
    if _is_free(dom, dow) and _is_free(dow, dom):
        return DaysOfYear("every day", "", tail, weeks, weeks)
    if _is_free(dom, dow):
        return _of_week(dow, schedule, tail, weeks)
    on = f"on {_of_month(dom)}"
    if _is_free(dow, dom):
        if len(dom.values) == len(month.values) == 1 and not (dom.last_day or dom.last_weekday or weeks):
            return DaysOfYear(f"every year on {dom.values[0]} {months}", f"{on}{tail}", "")
    elif schedule.day_match is DayMatch.AND or dom.is_open or dow.is_open:
        tail = f", only when that is {_of_week_one(dow)}{tail}"
    else:
        on += f" or on {_of_week_many(dow)}"
    return DaysOfYear(on, on, tail, weeks, weeks)


def _is_free(field: DescribedField, other: DescribedField) -> bool:
    """A full field without a star still counts as a choice beside another one: 13 or any day is any day."""
    return field.is_full and (field.is_open or other.is_open)


def _weeks(schedule: Cron) -> str:
    if schedule.every_n_weeks == 1:
        return ""
    return f", only in every {ordinal(schedule.every_n_weeks)} week{_since(schedule)}"


def _since(schedule: Cron) -> str:
    return f", counting from {full_date(schedule.anchor)}" if schedule.anchor else ""


def _of_week(dow: DescribedField, schedule: Cron, tail: str, weeks: str) -> DaysOfYear:
    after = f"on {_of_week_many(dow)}"
    if dow.nth or dow.hashed:
        return DaysOfYear(after, after, tail, weeks, weeks)
    names = listed(weekday_names(dow.values))
    is_workdays = dow.values == WORKDAYS
    if not weeks:
        return DaysOfYear("every weekday" if is_workdays else f"every {names}", after, tail)
    if is_workdays or schedule.every_n_weeks > 2:
        before = f"every {schedule.every_n_weeks} weeks on {'weekdays' if is_workdays else names}"
    else:
        before = f"every other {names}"
    return DaysOfYear(before, after, tail, _since(schedule), weeks)


def _of_month(dom: DescribedField) -> str:
    """the 1st and 15th of the month."""
    if dom.hashed:
        return f"a day of the month {CHOSEN}"
    if dom.step > 1 and len(dom.values) > 3:
        first, last = ordinal(dom.values[0]), ordinal(dom.values[-1])
        return f"every {ordinal(dom.step)} day of the month from the {first} to the {last}"
    days = [
        ordinal(run[0]) if len(run) == 1 else f"{ordinal(run[0])} to {ordinal(run[-1])}"
        for run in runs(dom.values)
    ]
    if dom.last_day:
        days.append("last day")
    if dom.last_weekday:
        return listed([*([f"the {listed(days)}"] if days else []), "the last weekday"]) + " of the month"
    return f"the {listed(days)} of the month"


def _of_week_many(dow: DescribedField) -> str:
    """Mondays and Fridays; the first Monday of the month."""
    if dow.hashed:
        return f"a day of the week {CHOSEN}"
    if dow.is_full:
        return "any day of the week"
    plain = ["weekdays"] if dow.values == WORKDAYS else weekday_names(dow.values, plural=True)
    return listed(plain + _nths(dow))


def _of_week_one(dow: DescribedField) -> str:
    if dow.hashed:
        return f"a day of the week {CHOSEN}"
    if dow.is_full:
        return "any day of the week"
    return listed([f"a {name}" for name in weekday_names(dow.values)] + _nths(dow), "or")


def _nths(dow: DescribedField) -> list[str]:
    found = []
    for weekday, group in groupby(dow.nth, key=lambda one: one[0]):
        which = sorted((nth for _, nth in group), key=lambda nth: (nth == LAST, nth))
        named = listed(["last" if nth == LAST else ORDINAL_WORDS[nth] for nth in which])
        found.append(f"the {named} {DAY_NAMES[weekday]} of the month")
    return found
