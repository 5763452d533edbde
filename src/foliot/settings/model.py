"""The settings: one field each. Environment names, keys of foliot.toml, flags and docs/reference/settings.md follow from the fields.

Why: docs/decisions/007-settings-are-declared-once.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import unquote

from foliot.settings.client import ClientSettings
from foliot.settings.declarations import ROLES, passwords_in, without_password
from foliot.settings.fields import Setting, flag, rows_of, secret, setting
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


class Settings(ClientSettings):
    """All settings with their values; `origins` names the source of each."""

    # The node: database, keys, logs and roles. Its address and data directory are in ClientSettings.
    database_url: Annotated[str | None, POSTGRES_URL] = secret(
        "PostgreSQL 15 or newer to work on. Without it Foliot runs its own under data_dir."
    )
    migrate_url: Annotated[str | None, POSTGRES_URL] = secret(
        "The same database as its owner, for migrations; not needed while there are none to apply. Default: "
        "database_url, which weakens the separation of workspaces where it owns the tables."
    )
    listen_url: Annotated[str | None, POSTGRES_URL] = secret(
        "The same database with no pooler between, for LISTEN: hints that make runs start at once. "
        "Default: database_url."
    )
    test_database_url: Annotated[str | None, POSTGRES_URL] = secret(
        "PostgreSQL that the test suite runs on instead of its own. Only ./dev test reads it."
    )
    master_key: Annotated[str | None, TEXT] = secret(
        "Key that seals stored secrets: 32 random bytes in base64 or hex. Behind it, separated by commas, older keys that still open "
        "what they sealed. Default: those in data_dir/master.key, which is made when it is first needed."
    )
    egress_allow: Annotated[Words, NETWORKS] = setting(
        (),
        "Networks beyond the public internet that http jobs and webhooks may reach; none closes them all. "
        "Default: loopback where `foliot serve` listens on loopback and runs its own PostgreSQL, else none.",
    )
    pg_bindir: Annotated[Path | None, PATH] = flag("pg_bindir")
    log_format: Annotated[str, one_of("auto", "human", "json")] = flag("log_format")
    log_level: Annotated[str, one_of("debug", "info", "warning", "error")] = flag("log_level")
    shutdown_grace: Annotated[int, whole_number(0, 10)] = flag("shutdown_grace")
    roles: Annotated[Words, some_of(*ROLES)] = flag("roles")
    trusted_proxies: Annotated[Words, NETWORKS] = setting(
        (),
        "Networks of proxies that may name the address and scheme of their clients by X-Forwarded-For and X-Forwarded-Proto, "
        "separated by commas. Default: none, and the headers are ignored.",
    )
    dialects: Annotated[Words, some_of("scheduled-jobs", "actions", "schedules", "job-fields")] = setting(
        (),
        "Interfaces of other systems that the API answers to as well, separated by commas: docs/reference/dialects.md. Default: none.",
    )
    api_processes: Annotated[int, whole_number(1, 64)] = flag("api_processes")
    app: Annotated[str | None, TEXT] = flag("app")

    # Workers, the processes they start, and other queue engines.
    worker_concurrency: Annotated[int, whole_number(0, 10_000)] = setting(
        10, "How many runs the worker of `foliot serve` executes at once; 0 starts no worker."
    )
    worker_reserve: Annotated[int | None, whole_number(0, 10_000)] = setting(
        None,
        "How many runs the worker executes beyond worker_concurrency, for workspaces that have few running on it: a workspace whose "
        "runs hang then delays no other. At most worker_concurrency. Default: worker_concurrency, at most 10.",
    )
    worker_queues: Annotated[Words, QUEUES] = setting(
        ("*",), "Queues that the worker of `foliot serve` serves, separated by commas; * serves them all."
    )
    worker_grace: Annotated[int, whole_number(0, 7)] = setting(
        5,
        "How long runs under way may go on after SIGTERM or SIGINT; then they are handed back and repeated.",
        unit="seconds",
    )
    worker_lease: Annotated[int, whole_number(2, 3600)] = setting(
        30, "How long a worker may be silent before its runs are given to others.", unit="seconds"
    )
    allow_commands: Annotated[bool, YES_OR_NO] = setting(
        False,
        "Whether the worker runs jobs of type command: programs of this machine, as the worker's own user or that of command_user.",
    )
    command_env: Annotated[Words, VARIABLES] = setting(
        ("PATH", "HOME", "LANG", "TZ"),
        "Variables of the worker's environment that commands get, separated by commas; FOLIOT_ ones cannot be named.",
    )
    command_user: Annotated[str | None, TEXT] = setting(
        None,
        "User that a worker or host with root's rights runs commands as: a user, user:group or uid:gid. Default: its own user.",
    )
    command_umask: Annotated[int | None, octal(0o777)] = setting(
        None, "Rights that files made by commands do not get, such as 077. Default: the worker's own."
    )
    command_file_size: Annotated[int, whole_number(0, 1_048_576)] = setting(
        0, "Largest file that a command may write; 0 is no limit.", unit="MiB"
    )
    command_processes: Annotated[int, whole_number(0, 1_000_000)] = setting(
        0,
        "How many processes the user of command_user may have at once, all its commands together; 0 is no limit.",
    )
    event_url: Annotated[str | None, url("http", "https")] = setting(
        None, "Endpoint that takes the events of jobs of type event which name none."
    )
    python_packages: Annotated[Words, PACKAGES] = setting(
        (),
        "Installed packages, separated by commas, whose plain functions jobs of type python may name. Decorated functions, and "
        "code in folders of your own, need not be named.",
    )
    child_memory: Annotated[int, whole_number(0, 1_048_576)] = setting(
        0,
        "Address space that each process of a command or a plain Python function may take; 0 is no limit.",
        unit="MiB",
    )
    child_processes: Annotated[int, whole_number(0, 100_000)] = setting(
        1_000,
        "How many processes a command or a plain Python function may have at once before all of them are ended; "
        "0 is no limit.",
    )
    bridge_redis_url: Annotated[str | None, REDIS_URL] = secret(
        "Redis or Valkey in which RQ and BullMQ keep their queues; with it jobs of the types rq and bullmq are served."
    )
    celery_broker_url: Annotated[str | None, TEXT] = secret(
        "Broker of Celery, as Celery writes it; with it and celery_result_url jobs of the type celery are served."
    )
    celery_result_url: Annotated[str | None, REDIS_URL] = secret(
        "Redis or Valkey in which Celery keeps its results. Without it jobs of the type celery are refused."
    )
    bridge_queues: Annotated[Words | None, PATTERNS] = setting(
        None,
        "Queues of Celery, RQ and BullMQ that jobs may use, as patterns separated by commas: {workspace} is the slug of the workspace, "
        "* anything but a dot, ** anything. Default: jobs-{workspace} and jobs:{workspace}; ** without database_url on loopback.",
    )
    bridge_tasks: Annotated[Words | None, PATTERNS] = setting(
        None,
        "Tasks of Celery, functions of RQ and job names of BullMQ that jobs may name, as patterns separated by commas, or none. "
        "Default: none; ** without database_url on loopback.",
    )
    bridge_in_flight: Annotated[int, whole_number(1, 100_000)] = setting(
        1_000,
        "How many runs handed over to Celery, RQ or BullMQ one worker waits for at once. "
        "They do not count against worker_concurrency.",
    )

    # Sign-in to the console.
    oidc_issuer: Annotated[str | None, url("https", "http")] = setting(
        None,
        "OpenID Connect provider that members sign in to the console with, by a verified e-mail address.",
    )
    oidc_client_id: Annotated[str | None, TEXT] = setting(None, "Name of Foliot at that provider.")
    oidc_client_secret: Annotated[str | None, TEXT] = secret("Secret of Foliot at that provider.")
    oidc_workspace: Annotated[str, TEXT] = setting(
        "default", "Workspace whose members that provider signs in."
    )
    oidc_name: Annotated[str, TEXT] = setting("OpenID Connect", "What the button of that sign-in says.")

    # Notifications.
    public_url: Annotated[str | None, url("http", "https")] = setting(
        None,
        "Address of this server as people reach it, for links in messages. Its path is the prefix under which a proxy offers Foliot: "
        "https://ops.example.com/foliot. Default: the address it listens on.",
    )
    smtp_url: Annotated[str | None, url("smtp", "smtps", "smtp+plain")] = secret(
        "Mail server for channels of the kind email that name none: smtp://user:password@host:587 with STARTTLS, smtps:// with TLS "
        "from the start, smtp+plain:// without either."
    )
    smtp_from: Annotated[str | None, TEXT] = setting(
        None, "Sender of mails through smtp_url, such as Foliot <foliot@example.com>."
    )
    notify_email: Annotated[bool, YES_OR_NO] = setting(
        True, "Whether failures go to the email channels of a workspace that has no rule for them."
    )
    notify_slack: Annotated[bool, YES_OR_NO] = setting(False, "The same for slack channels.")
    notify_whatsapp: Annotated[bool, YES_OR_NO] = setting(False, "The same for whatsapp channels.")

    watcher_ping_url: Annotated[str | None, url("http", "https")] = secret(
        "Address that the watcher posts to every minute while due jobs are fired: a monitor outside alerts when it falls silent."
    )

    # Rates, quotas and retention.
    rate_per_key: Limit = setting(
        None,
        "Requests a second that one key may send to one node, twice as many at once after a rest; 0 is no limit. "
        "Default: 100 with database_url, none without.",
    )
    rate_per_workspace: Limit = setting(
        None,
        "Requests a second that all keys of a workspace together may send to one node; 0 is no limit. "
        "Default: 500 with database_url, none without.",
    )
    rate_of_failures: Limit = setting(
        None,
        "Requests a minute with invalid keys that one address may send to one node; 0 is no limit. "
        "Default: 60 with database_url, none without.",
    )
    quota_jobs: LargeLimit = setting(
        None,
        f"Jobs that a workspace may have, archived ones not counted; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    quota_archived_jobs: LargeLimit = setting(
        None,
        f"Archived jobs that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 100000 with database_url, none without.",
    )
    quota_min_interval: Annotated[int, whole_number(1, 86_400)] = setting(
        1,
        "The least time between two planned times of a job, by cron or interval. A workspace may have one of its own.",
        unit="seconds",
    )
    max_timeout: Annotated[int | None, whole_number(0, 31_536_000)] = setting(
        None,
        "Longest timeout that a job may have; attempts of jobs with a longer one are ended after this. 0 is no limit. "
        "Default: 86400 with database_url, none without.",
        unit="seconds",
    )
    quota_payload_bytes: Annotated[int, whole_number(2, 262_144)] = setting(
        262_144, f"How large payload, config and input may be, each, as JSON. {OWN_QUOTA}", unit="bytes"
    )
    quota_artifact_bytes: Annotated[int | None, whole_number(0, 2**50)] = setting(
        None,
        f"Size of all artifacts that the runs of a workspace may keep; 0 is no limit. {OWN_QUOTA} "
        "Default: 10 GiB with database_url, none without.",
        unit="bytes",
    )
    quota_hosts: Limit = setting(
        None,
        f"Hosts that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 1000 with database_url, none without.",
    )
    quota_servers: Limit = setting(
        None,
        f"Server instances that a workspace may have on all its hosts; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    host_retention: Annotated[int, whole_number(0, 36_500)] = setting(
        90,
        "After how long a silent host is forgotten, with its server instances, unless jobs are bound to it; 0 keeps them all.",
        unit="days",
    )
    quota_rooms: LargeLimit = setting(
        None,
        f"Rooms that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 10000 with database_url, none without.",
    )
    quota_room_messages: Annotated[int | None, whole_number(0, 2**50)] = setting(
        None,
        f"Messages that one room may hold; 0 is no limit. {OWN_QUOTA} "
        "Default: 100000 with database_url, none without.",
    )
    keep_messages: Annotated[int, whole_number(0, 36_500)] = setting(
        90,
        "How long messages of rooms are kept, and rooms that were made for one run; 0 keeps them for ever.",
        unit="days",
    )
    quota_secrets: Limit = setting(
        None,
        f"Secrets that a workspace may have; 0 is no limit. {OWN_QUOTA} "
        "Default: 1000 with database_url, none without.",
    )
    quota_keys: Limit = setting(
        None,
        f"Valid API keys that a workspace may have, sessions of the console included; 0 is no limit. {OWN_QUOTA} "
        "Default: 1000 with database_url, none without.",
    )
    artifact_bytes: Annotated[int, whole_number(0, 1024**3)] = setting(
        20 * 1024 * 1024, "How large one artifact of a run may be.", unit="bytes"
    )
    log_lines: Annotated[int, whole_number(1, 10_000)] = setting(
        10_000,
        "How many lines the log of one run keeps, all attempts together; later lines are dropped. "
        "It can only be lowered: the default is the most.",
    )
    log_bytes: Annotated[int, whole_number(1_024, 5 * 1024 * 1024)] = setting(
        5 * 1024 * 1024,
        "How much text the log of one run keeps, all attempts together. "
        "It can only be lowered: the default is the most.",
        unit="bytes",
    )

    # Defaults of jobs, which a workspace may replace, and the pace of the engine.
    default_timeout: Annotated[int, whole_number(1, 31_536_000)] = setting(
        600, f"How long an attempt of a job may take. {OWN_DEFAULT}", unit="seconds"
    )
    default_retries: Annotated[int, whole_number(0, 1000)] = setting(
        3, f"How often a failed run of a job is retried. {OWN_DEFAULT}"
    )
    default_retry_delays: Annotated[Numbers, whole_numbers(0, 31_536_000)] = setting(
        (300, 900, 1800),
        f"How long to wait before each retry, separated by commas; the last repeats. {OWN_DEFAULT}",
        unit="seconds",
    )
    default_keep: Annotated[int, whole_number(1, 36_500)] = setting(
        90, f"How long the runs of a job are kept. {OWN_DEFAULT}", unit="days"
    )
    default_keep_last: Annotated[int, whole_number(1, 1_000_000)] = setting(
        100, f"How many of the newest runs of a job are kept, however old. {OWN_DEFAULT}"
    )
    default_timezone: Annotated[str, TEXT] = setting("UTC", "Time zone of new workspaces.")
    poll_interval: Annotated[int, whole_number(50, 3_600_000)] = setting(
        5_000,
        "Longest sleep of the scheduler. It wakes for each planned time; this bounds the delay when a hint about a change is lost.",
        unit="milliseconds",
    )
    poll_batch: Annotated[int, whole_number(1, 10_000)] = setting(
        500, "How many due jobs the scheduler fires in one transaction."
    )
    sweep_interval: Annotated[int, whole_number(50, 3_600_000)] = setting(
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


BY_NAME: Mapping[str, Setting] = rows_of(Settings)
TABLE = tuple(BY_NAME.values())


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
