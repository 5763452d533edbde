"""The flags that `foliot jobs create` and `edit` share, and the JSON of a job made from them. The server validates it.

Flags of scalar fields come from the declaration of the job (`sdk.job_fields`); this module declares only the others.
`foliot jobs edit` in an editor and `foliot apply` reach the fields that have no flag.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from foliot.cli.input_files import parse_json_object
from foliot.cli.jobs.rule_flags import RuleFlags
from foliot.cli.times import parse_time
from foliot.domain.errors import Invalid
from foliot.sdk.job_fields import JOB_FIELDS, JobField

if TYPE_CHECKING:
    from foliot.sdk import Client

ONE_SCHEDULE = "--schedule CRON, --every 30s, --at TIME, --when WORDS or --manual"
Group = TypeVar("Group", "ScheduleFlags", "HandlerFlags", "PolicyFlags", RuleFlags)
_METAVARS = {str: "TEXT", int: "N", timedelta: "DURATION", datetime: "TIME"}


@dataclass(frozen=True, slots=True)
class ScheduleFlags:
    schedule: Annotated[str | None, typer.Option(help='Cron, in quotes: "*/30 * * * *".', metavar="CRON")] = (
        None
    )
    seconds: Annotated[
        bool, typer.Option("--seconds", help="With --schedule: six cron fields; the first is seconds.")
    ] = False
    every: Annotated[str | None, typer.Option(help="Interval: 30s, 10m, 1h30m.", metavar="DURATION")] = None
    at: Annotated[
        str | None,
        typer.Option(help="Once: 2027-01-02T18:00:00-03:00, 18:00, 2h, tomorrow at 9am.", metavar="TIME"),
    ] = None
    when: Annotated[
        str | None,
        typer.Option(
            help='Words: "every weekday at 9am"; with a task, which is the name: "send the report every friday at 5pm".',
            metavar="WORDS",
        ),
    ] = None
    manual: Annotated[
        bool, typer.Option("--manual", help="No schedule: runs start on request, or after other jobs.")
    ] = False
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone", "--tz", help="IANA zone of the schedule. Default: the workspace's.", metavar="ZONE"
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        return [
            f"--{each.name}"
            for each in fields(self)
            if each.name not in {"timezone", "seconds"} and getattr(self, each.name) not in {None, False}
        ]

    @property
    def task(self) -> str | None:
        """Return the task that the words name, such as "check the deployment": the name of a job without another."""
        from foliot.domain.schedule.words import read_task  # slow to import

        return None if self.when is None else read_task(self.when)

    def body(self, now: datetime, zone: str) -> dict[str, Any]:
        """Return the schedule. `zone` is that of a wall-clock --at where --timezone is not given."""
        if len(self.given) != 1:
            wrong = (
                f"Several schedules: {', '.join(self.given)}." if self.given else "The schedule is missing."
            )
            raise Invalid(wrong, hint=f"Use exactly one of {ONE_SCHEDULE}.")
        if self.seconds and self.schedule is None:
            raise Invalid(
                "--seconds only applies to --schedule.",
                hint='Example: --schedule "*/10 * * * * *" --seconds.',
            )
        zoned = {} if self.timezone is None else {"timezone": self.timezone}
        if self.schedule is not None:
            seconds = {"seconds": True} if self.seconds else {}
            return {"kind": "cron", "expr": self.schedule, **seconds, **zoned}
        if self.every is not None:
            return {"kind": "interval", "every": self.every, **zoned}
        if self.at is not None:
            at = parse_time(self.at, now, self.timezone or zone, flag="--at")
            return {"kind": "once", "at": at, **zoned}
        if self.when is not None:
            return {"words": self.when, **zoned}
        return {"kind": "manual", **zoned}


@dataclass(frozen=True, slots=True)
class HandlerFlags:
    http: Annotated[str | None, typer.Option(help="Call this URL; sets --type http.", metavar="URL")] = None
    method: Annotated[str | None, typer.Option(help="With --http. Default: POST.", metavar="METHOD")] = None
    python: Annotated[
        str | None,
        typer.Option(help="Call this function in the worker; sets --type python.", metavar="MODULE:FUNCTION"),
    ] = None
    message: Annotated[
        str | None,
        typer.Option(help="Post this text into the job's chat room; sets --type message.", metavar="TEXT"),
    ] = None
    type: Annotated[str | None, typer.Option(help="The handler that does the work.", metavar="TYPE")] = None
    config: Annotated[
        str | None, typer.Option(help="JSON object for the handler, or @FILE.", metavar="JSON")
    ] = None
    payload: Annotated[
        str | None,
        typer.Option(
            help='Input of every run: a JSON object, @FILE, or text, which becomes {"text": …}.',
            metavar="JSON",
        ),
    ] = None

    def body(self) -> dict[str, Any]:
        """Return `type`, `config` and `payload`, as far as they are given."""
        names = ("type", "http", "python", "message")
        types = [f"--{name}" for name in names if getattr(self, name) is not None]
        if len(types) > 1 and set(types) != {"--type"}:
            raise Invalid(
                f"Several types: {', '.join(types)}.",
                hint="--http, --python and --message set the type; --config adds to it.",
            )
        if self.method is not None and self.http is None:
            raise Invalid("--method needs --http.", hint="Without --http, set it in --config.")
        config = {} if self.config is None else parse_json_object(self.config, "--config")
        payload = None
        if self.payload is not None:
            payload = parse_json_object(self.payload, "--payload", or_text=True)
        if self.http is not None:
            handler = {"type": "http", "config": {**config, "url": self.http} | _given(method=self.method)}
        elif self.python is not None:
            handler = {"type": "python", "config": {**config, "call": self.python}}
        elif self.message is not None:
            handler = {"type": "message", "config": {**config, "text": self.message}}
        else:
            handler = _given(type=self.type, config=config or None)
        return handler | _given(payload=payload)


@dataclass(frozen=True, slots=True)
class PolicyFlags:
    name: Annotated[str | None, typer.Option("--name", help="Name of the job.", metavar="NAME")] = None
    retries: Annotated[
        int | None,
        typer.Option(min=0, max=1000, help="Maximum number of retries; 0 for none.", metavar="N"),
    ] = None
    retry_delays: Annotated[
        str | None, typer.Option(help="Delays before the retries: 1m,5m,30m.", metavar="DURATIONS")
    ] = None
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", "--agent", help="The member or agent who owns it. Default: you.", metavar="WHO"
        ),
    ] = None
    server: Annotated[
        str | None, typer.Option(help="Run it on the host of this server instance.", metavar="NAME")
    ] = None
    host: Annotated[str | None, typer.Option(help="Run it on this host.", metavar="NAME")] = None
    tag: Annotated[list[str] | None, typer.Option(help="Tag; repeatable.", metavar="TAG")] = None

    def body(self) -> dict[str, Any]:
        return _given(
            name=self.name, tags=self.tag, owner=self.owner, retry=self._retry(), target=self._target()
        )

    def _target(self) -> dict[str, str] | None:
        if self.server is not None and self.host is not None:
            raise Invalid("Use --server or --host, not both.", hint="A server instance runs on its host.")
        return _given(server=self.server, host=self.host) or None

    def _retry(self) -> dict[str, Any] | None:
        return retry_body(self.retries, self.retry_delays)


def retry_body(retries: int | None, retry_delays: str | None) -> dict[str, Any] | None:
    """Return `retry` as JSON; None without any flag."""
    if retries is None and retry_delays is None:
        return None
    if retries == 0:
        return {"max": 0, "strategy": "none"}
    delays = None
    if retry_delays is not None:
        delays = [each.strip() for each in retry_delays.split(",")]
    most = len(delays) if retries is None and delays is not None else retries
    return _given(max=most, strategy="list" if delays else None, delays=delays)


@dataclass(frozen=True, slots=True)
class JobFlags:
    schedule: ScheduleFlags
    handler: HandlerFlags
    policies: PolicyFlags
    rules: RuleFlags
    scalars: Mapping[str, Any]  # by the name of the field; None where it is not given

    def new_job(self, client: Client, name: str | None, now: datetime, zone: str) -> dict[str, Any]:
        """Return a new job. Name, handler and schedule are required; the server fills in the rest."""
        name = _one_name(name, self.policies.name) or self.schedule.task
        if not name:
            raise Invalid("The name is missing.", hint='Example: foliot jobs create "Email check" …')
        handler = self._handler_of_agent() or self.handler.body()
        if "type" not in handler:
            raise Invalid(
                "The work is missing.",
                hint="Add --http URL, --python module:function, --message TEXT, or --type TYPE with --config JSON.",
            )
        fields = {**handler, **self._fields(now, zone), "name": name}
        return self.rules.added_to({**fields, "schedule": self.schedule.body(now, zone)}, client)

    def _handler_of_agent(self) -> dict[str, Any] | None:
        """Return a message with the text of --payload, if an agent and a payload are given and no other work."""
        text = self.handler.payload
        if self.policies.owner is None or text is None or self.handler != HandlerFlags(payload=text):
            return None
        payload = parse_json_object(text, "--payload", or_text=True)
        return {"type": "message", "config": payload} if payload.keys() == {"text"} else None

    def patch(self, client: Client, now: datetime, zone: str) -> dict[str, Any]:
        """Return the fields that are given, and no others."""
        body = {**self.handler.body(), **self._fields(now, zone)}
        if self.schedule.given or self.schedule.seconds:
            body["schedule"] = self.schedule.body(now, zone)
        elif self.schedule.timezone is not None:
            body["schedule"] = {"timezone": self.schedule.timezone}
        return self.rules.added_to(body, client)

    def _fields(self, now: datetime, zone: str) -> dict[str, Any]:
        body = _given(**self.scalars)
        for field in JOB_FIELDS:
            if field.type is datetime and field.name in body:
                body[field.name] = parse_time(body[field.name], now, zone, flag=_flag(field))
        return {**self.policies.body(), **body}


def job_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `flags` of a command by the flags of a job, and call it with their values."""
    expanded = [
        *(
            each
            for group in (ScheduleFlags, HandlerFlags, PolicyFlags, RuleFlags)
            for each in _parameters(group)
        ),
        *(_parameter(each) for each in JOB_FIELDS),
    ]
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def called(*args: Any, **given: Any) -> None:
        flags = JobFlags(
            _taken(ScheduleFlags, given),
            _taken(HandlerFlags, given),
            _taken(PolicyFlags, given),
            _taken(RuleFlags, given),
            {each.name: given.pop(each.name) for each in JOB_FIELDS},
        )
        command(*args, flags=flags, **given)

    parameters = [
        each
        for parameter in own.parameters.values()
        for each in (expanded if parameter.name == "flags" else [parameter])
    ]
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _taken(group: type[Group], given: dict[str, Any]) -> Group:
    return group(**{each.name: given.pop(each.name) for each in _parameters(group)})


def _parameters(group: type) -> list[inspect.Parameter]:
    kinds = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=each.default,
            annotation=kinds[each.name],
        )
        for each in fields(group)
    ]


def _parameter(field: JobField) -> inspect.Parameter:
    kind: Any = Literal[field.choices] if field.choices else field.type if field.type in (bool, int) else str
    metavar = None if field.choices else _METAVARS.get(field.type)
    option = typer.Option(_flag(field), help=field.help, metavar=metavar)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _flag(field: JobField) -> str:
    name = field.name.replace("_", "-")
    return field.flag or (f"--{name}/--no-{name}" if field.type is bool else f"--{name}")


def _one_name(first: str | None, flag: str | None) -> str | None:
    """Return the name, from the argument or from --name."""
    if first is not None and flag is not None and first != flag:
        raise Invalid(
            f'Two different names: "{first}" and "{flag}".',
            hint="Use NAME or --name; a name with spaces needs quotes.",
        )
    return flag if first is None else first


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
