"""The settings: one field each. Environment names, keys of foliot.toml, flags and docs/reference/settings.md follow from the fields.

Why: docs/decisions/007-settings-are-declared-once.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from foliot.settings.declarations import FLAGS, PREFIX, ROLES, flag_name, passwords_in, without_password
from foliot.settings.value_types import (
    NETWORKS,
    PACKAGES,
    PARSED,
    PATH,
    PATTERNS,
    POSTGRES_URL,
    QUEUES,
    REDIS_URL,
    TEXT,
    VARIABLES,
    YES_OR_NO,
    ValueType,
    octal,
    one_of,
    some_of,
    url,
    whole_number,
    whole_numbers,
)

Words = tuple[str, ...]
Numbers = tuple[int, ...]
Limit = Annotated[int | None, whole_number(0, 1_000_000)]
LargeLimit = Annotated[int | None, whole_number(0, 100_000_000)]
OWN_QUOTA = "A workspace may have a quota of its own."
OWN_DEFAULT = "A workspace may have a default of its own, and each job its own value."


def _setting(default: Any, about: str, *, unit: str | None = None, in_toml: bool = True) -> Any:
    return Field(default, description=about, json_schema_extra={"unit": unit, "in_toml": in_toml})


def _flag(name: str, *, in_toml: bool = True) -> Any:
    """A setting that has a flag: the command line shares its default and description."""
    flag = FLAGS[name]
    return _setting(flag.default, flag.about, unit=flag.unit, in_toml=in_toml)


def _secret(about: str) -> Any:
    return Field(None, description=about, repr=False, json_schema_extra={"secret": True})


class Settings(BaseModel):
    """All settings with their values; `origins` names the source of each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origins: Mapping[str, str] = Field(default_factory=dict, repr=False)

    # The node: address, data and roles.
    config: Annotated[Path | None, PATH] = _flag("config", in_toml=False)
    data_dir: Annotated[Path, PATH] = _flag("data_dir")
    host: Annotated[str, TEXT] = _flag("host")
    port: Annotated[int, whole_number(0, 65535)] = _flag("port")
    database_url: Annotated[str | None, POSTGRES_URL] = _secret(
        "PostgreSQL 15 or newer to work on. Without it Foliot runs its own under data_dir."
    )
    migrate_url: Annotated[str | None, POSTGRES_URL] = _secret(
        "The same database as its owner, for migrations; not needed while there are none to apply. Default: "
        "database_url, which weakens the separation of workspaces where it owns the tables."
    )
    listen_url: Annotated[str | None, POSTGRES_URL] = _secret(
        "The same database with no pooler between, for LISTEN: hints that make runs start at once. "
        "Default: database_url."
    )
    test_database_url: Annotated[str | None, POSTGRES_URL] = _secret(
        "PostgreSQL that the test suite runs on instead of its own. Only ./dev test reads it."
    )
    api_url: Annotated[str, url("http", "https")] = _setting(
        "http://127.0.0.1:8700", "Foliot server that clients on this machine use."
    )
    api_key: Annotated[str | None, TEXT] = _secret(
        "Key that clients send. Default: the one in data_dir/admin.key."
    )
    ca_file: Annotated[Path | None, PATH] = _setting(
        None,
        "File of certificates, as PEM, that clients and hosts trust in the place of the machine's own. "
        "Default: those of SSL_CERT_FILE, else the machine's.",
    )
    master_key: Annotated[str | None, TEXT] = _secret(
        "Key that seals stored secrets: 32 random bytes in base64 or hex. Behind it, divided by commas, older keys that still open "
        "what they sealed. Default: those in data_dir/master.key, which is made when it is first needed."
    )
    egress_allow: Annotated[Words, NETWORKS] = _setting(
        (),
        "Networks beyond the public internet that http jobs and webhooks may reach; none closes them all. "
        "Default: loopback where `foliot serve` listens on loopback and runs its own PostgreSQL, else none.",
    )
    pg_bindir: Annotated[Path | None, PATH] = _flag("pg_bindir")
    log_format: Annotated[str, one_of("auto", "human", "json")] = _flag("log_format")
    log_level: Annotated[str, one_of("debug", "info", "warning", "error")] = _flag("log_level")
    shutdown_grace: Annotated[int, whole_number(0, 10)] = _flag("shutdown_grace")
    roles: Annotated[Words, some_of(*ROLES)] = _flag("roles")
    app: Annotated[str | None, TEXT] = _flag("app")

    # Workers, the processes they start, and other queue engines.
    worker_concurrency: Annotated[int, whole_number(0, 10_000)] = _setting(
        10, "How many runs the worker of `foliot serve` executes at once; 0 starts no worker."
    )
    worker_queues: Annotated[Words, QUEUES] = _setting(
        ("*",), "Queues that the worker of `foliot serve` serves, divided by commas; * serves them all."
    )
    worker_grace: Annotated[int, whole_number(0, 7)] = _setting(
        5,
        "How long runs under way may go on after SIGTERM or SIGINT; then they are handed back and repeated.",
        unit="seconds",
    )
    worker_lease: Annotated[int, whole_number(2, 3600)] = _setting(
        30, "How long a worker may be silent before its runs are given to others.", unit="seconds"
    )
    allow_commands: Annotated[bool, YES_OR_NO] = _setting(
        False,
        "Whether the worker runs jobs of type command: programs of this machine, as the worker's own user or that of command_user.",
    )
    command_env: Annotated[Words, VARIABLES] = _setting(
        ("PATH", "HOME", "LANG", "TZ"),
        "Variables of the worker's environment that commands get, divided by commas; FOLIOT_ ones cannot be named.",
    )
    command_user: Annotated[str | None, TEXT] = _setting(
        None,
        "User that a worker or host with root's rights runs commands as: a user, user:group or uid:gid. Default: its own user.",
    )
    command_umask: Annotated[int | None, octal(0o777)] = _setting(
        None, "Rights that files made by commands do not get, such as 077. Default: the worker's own."
    )
    command_file_size: Annotated[int, whole_number(0, 1_048_576)] = _setting(
        0, "Largest file that a command may write; 0 is no limit.", unit="MiB"
    )
    command_processes: Annotated[int, whole_number(0, 1_000_000)] = _setting(
        0,
        "How many processes the user of command_user may have at once, all its commands together; 0 is no limit.",
    )
    python_packages: Annotated[Words, PACKAGES] = _setting(
        (),
        "Installed packages, divided by commas, whose plain functions jobs of type python may name. Decorated functions, and "
        "code in folders of your own, need not be named.",
    )
    child_memory: Annotated[int, whole_number(0, 1_048_576)] = _setting(
        0,
        "Address space that each process of a command or a plain Python function may take; 0 is no limit.",
        unit="MiB",
    )
    child_processes: Annotated[int, whole_number(0, 100_000)] = _setting(
        1_000,
        "How many processes a command or a plain Python function may have at once before all of them are ended; "
        "0 is no limit.",
    )
    bridge_redis_url: Annotated[str | None, REDIS_URL] = _secret(
        "Redis or Valkey in which RQ and BullMQ keep their queues; with it jobs of the types rq and bullmq are served."
    )
    celery_broker_url: Annotated[str | None, TEXT] = _secret(
        "Broker of Celery, as Celery writes it; with it and celery_result_url jobs of the type celery are served."
    )
    celery_result_url: Annotated[str | None, REDIS_URL] = _secret(
        "Redis or Valkey in which Celery keeps its results. Without it jobs of the type celery are refused."
    )
    bridge_queues: Annotated[Words | None, PATTERNS] = _setting(
        None,
        "Queues of Celery, RQ and BullMQ that jobs may use, as patterns divided by commas: {workspace} is the slug of the workspace, "
        "* anything but a dot, ** anything. Default: jobs-{workspace}; ** without database_url on loopback.",
    )
    bridge_tasks: Annotated[Words | None, PATTERNS] = _setting(
        None,
        "Tasks of Celery, functions of RQ and job names of BullMQ that jobs may name, as patterns divided by commas, or none. "
        "Default: none; ** without database_url on loopback.",
    )
    bridge_in_flight: Annotated[int, whole_number(1, 100_000)] = _setting(
        1_000,
        "How many runs handed over to Celery, RQ or BullMQ one worker waits for at once. "
        "They do not count against worker_concurrency.",
    )

    # Rates, quotas and retention.
    rate_per_key: Limit = _setting(
        None,
        "Requests a second that one key may send to one node, twice as many at once after a rest; 0 is no limit. "
        "Default: 100 with database_url, none without.",
    )
    rate_per_workspace: Limit = _setting(
        None,
        "Requests a second that all keys of a workspace together may send to one node; 0 is no limit. "
        "Default: 500 with database_url, none without.",
    )
    rate_of_failures: Limit = _setting(
        None,
        "Requests a minute with invalid keys that one address may send to one node; 0 is no limit. "
        "Default: 60 with database_url, none without.",
    )
    quota_jobs: LargeLimit = _setting(
        None,
        f"Jobs that a workspace may have, archived ones not counted; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    quota_min_interval: Annotated[int, whole_number(1, 86_400)] = _setting(
        1,
        "The least time between two planned times of a job, by cron or interval. A workspace may have one of its own.",
        unit="seconds",
    )
    quota_payload_bytes: Annotated[int, whole_number(2, 262_144)] = _setting(
        262_144, f"How large payload, config and input may be, each, as JSON. {OWN_QUOTA}", unit="bytes"
    )
    quota_artifact_bytes: Annotated[int | None, whole_number(0, 2**50)] = _setting(
        None,
        f"Size of all artifacts that the runs of a workspace may keep; 0 is no limit. {OWN_QUOTA} "
        "Default: 10 GiB with database_url, none without.",
        unit="bytes",
    )
    quota_hosts: Limit = _setting(
        None,
        f"Hosts that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 1000 with database_url, none without.",
    )
    quota_servers: Limit = _setting(
        None,
        f"Server instances that a workspace may have on all its hosts; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    host_retention: Annotated[int, whole_number(0, 36_500)] = _setting(
        90,
        "After how long a silent host is forgotten, with its server instances, unless jobs are bound to it; 0 keeps them all.",
        unit="days",
    )
    quota_rooms: LargeLimit = _setting(
        None,
        f"Rooms that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    quota_room_messages: Annotated[int | None, whole_number(0, 2**50)] = _setting(
        None,
        f"Messages that one room may hold; 0 is no limit. {OWN_QUOTA} "
        "Default: 100000 with database_url, none without.",
    )
    keep_messages: Annotated[int, whole_number(0, 36_500)] = _setting(
        90,
        "How long messages of rooms are kept, and rooms that were made for one run; 0 keeps them for ever.",
        unit="days",
    )
    quota_secrets: Limit = _setting(
        None,
        f"Secrets that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 1000 with database_url, none without.",
    )
    artifact_bytes: Annotated[int, whole_number(0, 1024**3)] = _setting(
        20 * 1024 * 1024, "How large one artifact of a run may be.", unit="bytes"
    )

    # Defaults of jobs, which a workspace may replace, and the pace of the engine.
    default_timeout: Annotated[int, whole_number(1, 31_536_000)] = _setting(
        600, f"How long an attempt of a job may take. {OWN_DEFAULT}", unit="seconds"
    )
    default_retries: Annotated[int, whole_number(0, 1000)] = _setting(
        3, f"How often a failed run of a job is retried. {OWN_DEFAULT}"
    )
    default_retry_delays: Annotated[Numbers, whole_numbers(0, 31_536_000)] = _setting(
        (300, 900, 1800),
        f"How long to wait before each retry, divided by commas; the last repeats. {OWN_DEFAULT}",
        unit="seconds",
    )
    default_keep: Annotated[int, whole_number(1, 36_500)] = _setting(
        90, f"How long the runs of a job are kept. {OWN_DEFAULT}", unit="days"
    )
    default_keep_last: Annotated[int, whole_number(1, 1_000_000)] = _setting(
        100, f"How many of the newest runs of a job are kept, however old. {OWN_DEFAULT}"
    )
    default_timezone: Annotated[str, TEXT] = _setting("UTC", "Time zone of new workspaces.")
    poll_interval: Annotated[int, whole_number(50, 3_600_000)] = _setting(
        5_000,
        "Longest sleep of the scheduler. It wakes for each planned time; this bounds the delay when a hint about a change is lost.",
        unit="milliseconds",
    )
    poll_batch: Annotated[int, whole_number(1, 10_000)] = _setting(
        500, "How many due jobs the scheduler fires in one transaction."
    )
    sweep_interval: Annotated[int, whole_number(50, 3_600_000)] = _setting(
        2_500,
        "How often lost workers, overdue runs and waiting runs are looked for.",
        unit="milliseconds",
    )

    def secrets(self) -> tuple[str, ...]:
        """Return the values that may never be printed: whole, and the passwords inside addresses."""
        values = [getattr(self, row.name) for row in TABLE if row.secret]
        whole = [value for value in values if value is not None]
        inside = [found for value in whole for found in passwords_in(value)]
        return (*whole, *inside, *(unquote(each) for each in inside))

    def to_json(self) -> bytes:
        """Serialize for a child process on one line, secrets included."""
        return self.model_dump_json(exclude_none=True).encode() + b"\n"

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        return cls.model_validate_json(line, context=PARSED)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the settings table."""

    name: str
    type: ValueType
    default: Any
    about: str
    unit: str | None
    secret: bool
    in_toml: bool

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Secrets have no flag: other users of a machine can read command lines."""
        return None if self.secret else flag_name(self.name)


def _row(name: str) -> Setting:
    field = Settings.model_fields[name]
    (value_type,) = (each for each in field.metadata if isinstance(each, ValueType))
    extra: dict[str, Any] = dict(field.json_schema_extra or {})  # type: ignore[arg-type]  # always a dict here
    secret, in_toml = extra.get("secret", False), extra.get("in_toml", True)
    about = field.description or ""
    return Setting(name, value_type, field.default, about, extra.get("unit"), secret, in_toml)


TABLE = tuple(_row(name) for name in Settings.model_fields if name != "origins")
BY_NAME: Mapping[str, Setting] = {row.name: row for row in TABLE}


def format_value(row: Setting, settings: Settings) -> str:
    """Format a setting's value for people: no key, and no password inside an address."""
    value = getattr(settings, row.name)
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return ", ".join(str(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if row.secret and row.type.is_url:
        return without_password(value)
    return "********" if row.secret else str(value)
