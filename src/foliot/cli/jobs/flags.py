"""From flags to the JSON of a job. What the flags cannot say, `foliot jobs edit` and `foliot apply` can. The server judges."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any

import typer

from foliot.cli.choices import MisfireChoice, OnLostChoice, OverlapChoice
from foliot.cli.input_files import parse_json_object
from foliot.cli.times import parse_time
from foliot.domain.errors import Invalid

ONE_SCHEDULE = "--schedule CRON, --every 30s, --at TIME, --when WORDS or --manual"
_BARE_SECONDS = re.compile(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Timing:
    """The flags that say when."""

    schedule: str | None = None
    every: str | None = None
    at: str | None = None
    when: str | None = None
    manual: bool = False
    timezone: str | None = None
    seconds: bool = False

    @property
    def said(self) -> list[str]:
        return [
            f"--{each.name}"
            for each in fields(self)
            if each.name not in {"timezone", "seconds"} and getattr(self, each.name) not in {None, False}
        ]

    def body(self, now: datetime, zone: str) -> dict[str, Any]:
        """Exactly one of them; `zone` is what a wall-clock --at is read in where --timezone is not given."""
        if len(self.said) != 1:
            wrong = f"Not both: {', '.join(self.said)}." if self.said else "When does it run?"
            raise Invalid(wrong, hint=f"Give exactly one of {ONE_SCHEDULE}.")
        if self.seconds and self.schedule is None:
            raise Invalid(
                "--seconds is for cron alone.", hint='Such as --schedule "*/10 * * * * *" --seconds.'
            )
        named = {} if self.timezone is None else {"timezone": self.timezone}
        if self.schedule is not None:
            fine = {"seconds": True} if self.seconds else {}
            return {"kind": "cron", "expr": self.schedule, **fine, **named}
        if self.every is not None:
            return {"kind": "interval", "every": _duration(self.every), **named}
        if self.at is not None:
            at = parse_time(self.at, now, self.timezone or zone, flag="--at")
            return {"kind": "once", "at": at, **named}
        if self.when is not None:
            return {"words": self.when, **named}
        return {"kind": "manual", **named}


@dataclass(frozen=True, slots=True)
class Work:
    """The flags that say what it does."""

    type: str | None = None
    config: str | None = None
    http: str | None = None
    method: str | None = None
    python: str | None = None

    def body(self) -> dict[str, Any]:
        """`type` and `config`, as far as the flags speak of them."""
        ways = [f"--{name}" for name in ("type", "http", "python") if getattr(self, name) is not None]
        if len(ways) > 1 and set(ways) != {"--type"}:
            raise Invalid(
                f"Not both: {', '.join(ways)}.",
                hint="--http and --python say the type by themselves; --config adds to either.",
            )
        if self.method is not None and self.http is None:
            raise Invalid("--method goes with --http.", hint="Or put it into --config.")
        config = {} if self.config is None else parse_json_object(self.config, "--config")
        if self.http is not None:
            return {"type": "http", "config": {**config, "url": self.http} | _given(method=self.method)}
        if self.python is not None:
            return {"type": "python", "config": {**config, "call": self.python}}
        return _given(type=self.type, config=config or None)


@dataclass(frozen=True, slots=True)
class Rules:
    """The flags that are fields of a job by themselves; None is not said."""

    name: str | None = None
    description: str | None = None
    payload: str | None = None
    timeout: str | None = None
    overlap: OverlapChoice | None = None
    misfire: MisfireChoice | None = None
    on_lost: OnLostChoice | None = None
    queue: str | None = None
    priority: int | None = None
    max_runs: int | None = None
    start_at: str | None = None
    end_at: str | None = None
    retries: int | None = None
    retry_delays: str | None = None
    tags: tuple[str, ...] | None = None
    server: str | None = None
    host: str | None = None
    read_only: bool | None = None

    def body(self, now: datetime, zone: str) -> dict[str, Any]:
        alone = (
            "name",
            "description",
            "timeout",
            "overlap",
            "misfire",
            "on_lost",
            "queue",
            "priority",
            "max_runs",
            "read_only",
        )
        body = _given(**{name: getattr(self, name) for name in alone})
        if self.payload is not None:
            body["payload"] = parse_json_object(self.payload, "--payload", or_text=True)
        for name in ("start_at", "end_at"):
            if (text := getattr(self, name)) is not None:
                body[name] = parse_time(text, now, zone, flag=f"--{name.replace('_', '-')}")
        if self.tags is not None:
            body["tags"] = list(self.tags)
        if (retry := self._retry()) is not None:
            body["retry"] = retry
        if (target := self._target()) is not None:
            body["target"] = target
        return body

    def _target(self) -> dict[str, str] | None:
        if self.server is not None and self.host is not None:
            raise Invalid("Not both: --server, --host.", hint="A server runs where its host is.")
        return _given(server=self.server, host=self.host) or None

    def _retry(self) -> dict[str, Any] | None:
        if self.retries is None and self.retry_delays is None:
            return None
        if self.retries == 0:
            return {"max": 0, "strategy": "none"}
        delays = None
        if self.retry_delays is not None:
            delays = [_duration(each.strip()) for each in self.retry_delays.split(",")]
        most = len(delays) if self.retries is None and delays is not None else self.retries
        return _given(max=most, strategy="list" if delays else None, delays=delays)


def draft(timing: Timing, work: Work, rules: Rules, now: datetime, zone: str) -> dict[str, Any]:
    """A new job. Name, work and schedule must be there; the rest is the server's to fill in."""
    if not rules.name:
        raise Invalid("A job needs a name.", hint='Such as foliot jobs create "Email check", or --name.')
    what = work.body()
    if "type" not in what:
        raise Invalid(
            "What shall it do?",
            hint="Add --http URL, --python module:function, or --type TYPE with --config JSON.",
        )
    return {**what, **rules.body(now, zone), "schedule": timing.body(now, zone)}


def one_name(first: str | None, flag: str | None) -> str | None:
    """The name, said before the flags or by one."""
    if first is not None and flag is not None and first != flag:
        raise Invalid(
            f'Two names: "{first}" and "{flag}".',
            hint="Give one of them, before the flags or with --name; a name with blanks needs quotes.",
        )
    return flag if first is None else first


def patch(timing: Timing, work: Work, rules: Rules, now: datetime, zone: str) -> dict[str, Any]:
    """Only what the flags speak of."""
    body = {**work.body(), **rules.body(now, zone)}
    if timing.said or timing.seconds:
        body["schedule"] = timing.body(now, zone)
    elif timing.timezone is not None:
        body["schedule"] = {"timezone": timing.timezone}
    return body


def _duration(text: str) -> str:
    """30 alone is seconds to most people and nothing to the API."""
    return f"{text}s" if _BARE_SECONDS.fullmatch(text) else text


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


Cron = Annotated[str | None, typer.Option(help='Cron, in quotes: "*/30 * * * *".', metavar="CRON")]
Seconds = Annotated[
    bool, typer.Option("--seconds", help="With --schedule: six cron fields; the first is seconds.")
]
Every = Annotated[str | None, typer.Option(help="A pace: 30s, 10m, 1h30m.", metavar="DURATION")]
At = Annotated[
    str | None,
    typer.Option(help="Once: 2027-01-02T18:00:00-03:00, 18:00, 2h, tomorrow at 9am.", metavar="TIME"),
]
When = Annotated[str | None, typer.Option(help='Words: "every weekday at 9am".', metavar="WORDS")]
Manual = Annotated[bool, typer.Option("--manual", help="Never by itself: by hand, or after other jobs.")]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone", "--tz", help="IANA zone of the schedule. Default: the workspace's.", metavar="ZONE"
    ),
]
Name = Annotated[str | None, typer.Option("--name", help="What people call it.", metavar="NAME")]
NameFirst = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="What people call it; --name says the same.", show_default=False),
]
Description = Annotated[str | None, typer.Option(help="What it is for.", metavar="TEXT")]
Type = Annotated[str | None, typer.Option(help="Which handler does the work.", metavar="TYPE")]
Config = Annotated[str | None, typer.Option(help="JSON object for the handler, or @FILE.", metavar="JSON")]
Http = Annotated[str | None, typer.Option(help="Call this address: --type http.", metavar="URL")]
Method = Annotated[str | None, typer.Option(help="With --http; POST by default.", metavar="METHOD")]
Python = Annotated[
    str | None,
    typer.Option(help="Call this function of the worker: --type python.", metavar="MODULE:FUNCTION"),
]
Payload = Annotated[
    str | None,
    typer.Option(
        help='Input of every run: a JSON object, @FILE, or text, which becomes {"text": …}.', metavar="JSON"
    ),
]
Timeout = Annotated[str | None, typer.Option(help="How long an attempt may take: 10m.", metavar="DURATION")]
Retries = Annotated[
    int | None, typer.Option(min=0, max=1000, help="More tries after the first; 0 is none.", metavar="N")
]
RetryDelays = Annotated[str | None, typer.Option(help="Waits before them: 1m,5m,30m.", metavar="DURATIONS")]
OverlapFlag = Annotated[
    OverlapChoice | None, typer.Option("--overlap", help="When the run before still runs.")
]
MisfireFlag = Annotated[MisfireChoice | None, typer.Option("--misfire", help="When its time has gone by.")]
OnLostFlag = Annotated[OnLostChoice | None, typer.Option("--on-lost", help="When its worker is gone.")]
Queue = Annotated[str | None, typer.Option(help="Which workers take it.", metavar="QUEUE")]
Server = Annotated[
    str | None, typer.Option(help="Run it on whichever host has this server instance.", metavar="NAME")
]
HostFlag = Annotated[str | None, typer.Option("--host", help="Run it on this host.", metavar="NAME")]
ReadOnly = Annotated[
    bool | None,
    typer.Option(
        "--read-only/--mutating",
        help="Whether it changes anything: of those that do, a host runs one at a time.",
    ),
]
Priority = Annotated[int | None, typer.Option(help="Smaller goes first.", metavar="N")]
MaxRuns = Annotated[int | None, typer.Option(min=1, help="Complete after so many runs.", metavar="N")]
StartAt = Annotated[str | None, typer.Option(help="Not before.", metavar="TIME")]
EndAt = Annotated[str | None, typer.Option(help="Not after.", metavar="TIME")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be given several times.", metavar="TAG")]
