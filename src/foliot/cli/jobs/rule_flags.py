"""The flags of a job's rules that are more than one value: window, calendars, dependencies, breaker, budgets, retry, retention."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foliot.cli.lookup import find_job
from foliot.cli.usage import read_budget
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client

NONE = "none"
_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(r"(?:([a-z,-]+)\s+)?(\d{1,2}:\d\d)-(\d{1,2}:\d\d)", re.ASCII)
_WINDOW_HINT = 'Example: --window "mon-fri 22:00-06:00", or none.'
_DEPENDENCY_KEYS = frozenset({"on", "mode", "delay", "max_age"})


@dataclass(frozen=True, slots=True)
class RuleFlags:
    window: Annotated[
        str | None,
        typer.Option(help="When it may start: 02:00-06:00, or mon-fri 22:00-06:00; none.", metavar="WINDOW"),
    ] = None
    outside_window: Annotated[
        Literal["defer", "skip"] | None, typer.Option(help="What happens to times outside the window.")
    ] = None
    calendar: Annotated[
        list[str] | None, typer.Option(help="Calendar by name; repeatable; none.", metavar="NAME")
    ] = None
    depends_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Run after this job: JOB, or JOB,on=failure,mode=gate,delay=30m,max_age=2h; repeatable; none.",
            metavar="JOB",
        ),
    ] = None
    breaker: Annotated[
        str | None,
        typer.Option(
            help="Pause after this many failed runs in a row: 5, or 5:fail to fail it; none.", metavar="N"
        ),
    ] = None
    retry_strategy: Annotated[
        Literal["fixed", "exponential", "list", "interval_exponential"] | None,
        typer.Option(help="How the waits between attempts grow."),
    ] = None
    retry_base: Annotated[str | None, typer.Option(help="The first wait.", metavar="DURATION")] = None
    retry_cap: Annotated[str | None, typer.Option(help="The longest wait.", metavar="DURATION")] = None
    keep: Annotated[str | None, typer.Option(help="How long to keep its runs: 90d.", metavar="DURATION")] = (
        None
    )
    keep_last: Annotated[
        int | None, typer.Option(help="How many of its last runs to keep.", min=1, metavar="N")
    ] = None

    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="How much its runs may use: usd=25, tokens=1e6/day, usd=5/day,warn_at=0.5,action=warn; repeatable; none.",
            metavar="BUDGET",
        ),
    ] = None

    def added_to(self, job: dict[str, Any], client: Client) -> dict[str, Any]:
        """Return the job with these rules. Calendars and jobs are looked up by name."""
        from foliot.cli.calendars import find_calendar  # it costs every command its start

        retry = _given(strategy=self.retry_strategy, base=self.retry_base, cap=self.retry_cap)
        rules = _given(
            window=self._window(),
            calendars=_listed(self.calendar, lambda each: str(find_calendar(client, each).id)),
            depends_on=_listed(self.depends_on, lambda each: _dependency(client, each)),
            breaker=self._breaker(),
            retention=_given(keep=self.keep, keep_last=self.keep_last) or None,
            budgets=_listed(self.budget, read_budget),
            retry={**job.get("retry", {}), **retry} if retry else None,
        )
        cleared = {"window": None} if self.window == NONE else {}
        return {**job, **rules, **cleared}

    def _window(self) -> dict[str, Any] | None:
        if self.window is None or self.window == NONE:
            if self.outside_window is None:
                return None
            if self.window == NONE:
                raise Invalid("--outside-window needs a window.", hint=_WINDOW_HINT)
            return {"otherwise": self.outside_window}
        found = _WINDOW.fullmatch(self.window.strip().lower())
        if found is None:
            raise Invalid(f'"{self.window}" is not a window.', hint=_WINDOW_HINT)
        days, start, end = found.groups()
        return _given(start=start.zfill(5), end=end.zfill(5), days=_days(days), otherwise=self.outside_window)

    def _breaker(self) -> dict[str, Any] | None:
        if self.breaker is None:
            return None
        if self.breaker == NONE:
            return {"action": "none"}
        after, _, action = self.breaker.partition(":")
        if not (after.isascii() and after.isdigit()) or action not in ("", "pause", "fail"):
            raise Invalid(f'"{self.breaker}" is not a breaker.', hint="Example: --breaker 5, 5:fail or none.")
        return _given(after=int(after), action=action or None)


def _days(text: str | None) -> list[str] | None:
    if text is None:
        return None
    days: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _WEEK or (last or first) not in _WEEK:
            raise Invalid(f'"{part}" is not a day of the week.', hint=_WINDOW_HINT)
        start, end = _WEEK.index(first), _WEEK.index(last or first)
        days += [_WEEK[at % 7] for at in range(start, end + 1 if end >= start else end + 8)]
    return list(dict.fromkeys(days))


def _dependency(client: Client, text: str) -> dict[str, Any]:
    """Read JOB[,key=value…]. A comma within the name of the job is fine."""
    parts, options = text.split(","), dict[str, str]()
    while len(parts) > 1 and (found := parts[-1].partition("="))[0].strip() in _DEPENDENCY_KEYS and found[1]:
        options[found[0].strip()] = found[2].strip()
        parts.pop()
    return {"job": str(find_job(client, ",".join(parts)).id), **options}


def _listed(given: list[str] | None, read: Callable[[str], Any]) -> list[Any] | None:
    if not given:
        return None
    return [] if given == [NONE] else [read(each) for each in given]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
