"""Every setting, once. The fields of `Settings` are the table from which environment names, keys of `foliot.toml`, command-line
flags and docs/reference/settings.md are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from foliot.settings.kinds import (
    Folder,
    Kind,
    Networks,
    Octal,
    OneOf,
    Packages,
    Patterns,
    PostgresUrl,
    Queues,
    SomeOf,
    Text,
    Url,
    Variables,
    WholeNumber,
    YesOrNo,
)
from foliot.settings.showing import passwords_in

PREFIX = "FOLIOT_"
ADDRESS_FILE = "address"  # in the data directory: where its server listens, while it does
ROLES = ("api", "scheduler", "worker")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    kind: Kind
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
        """Secrets have none: other users of a machine can read command lines."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def as_row(
    kind: Kind, about: str, *, unit: str | None = None, secret: bool = False, in_toml: bool = True
) -> dict[str, Any]:
    return {"kind": kind, "about": about, "unit": unit, "secret": secret, "in_toml": in_toml}


POSTGRES = PostgresUrl()
REDIS = Url(("redis", "rediss", "unix"))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings with their values; `origins` says where each came from."""

    config: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(), "File to read settings from. Default: foliot.toml in the current folder.", in_toml=False
        ),
    )
    data_dir: Path = field(
        default=Path(".foliot"),
        metadata=as_row(
            Folder(),
            "Folder of the private PostgreSQL and of admin.key; made for this user alone. "
            "The default is relative to the current folder.",
        ),
    )
    host: str = field(default="127.0.0.1", metadata=as_row(Text(), "Address that HTTP listens on."))
    port: int = field(
        default=8700,
        metadata=as_row(
            WholeNumber(0, 65535), "Port that HTTP listens on; 0 takes a free one and prints it."
        ),
    )
    database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL 15 or newer to work on. Without it Foliot runs its own under data_dir.",
            secret=True,
        ),
    )
    migrate_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database as its owner, for migrations; not needed while there are none to apply. Default: "
            "database_url, which weakens the separation of workspaces where it owns the tables.",
            secret=True,
        ),
    )
    listen_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database with no pooler between, for LISTEN: hints that make runs start at once. "
            "Default: database_url.",
            secret=True,
        ),
    )
    test_database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL that the test suite runs on instead of its own. Only ./dev test reads it.",
            secret=True,
        ),
    )
    api_url: str = field(
        default="http://127.0.0.1:8700",
        metadata=as_row(
            Url(("http", "https")),
            "Foliot server that clients on this machine speak to.",
        ),
    )
    api_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that clients send. Default: the one in data_dir/admin.key.",
            secret=True,
        ),
    )
    ca_file: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(),
            "File of certificates, as PEM, that clients and hosts trust in the place of the machine's own. "
            "Default: those of SSL_CERT_FILE, else the machine's.",
        ),
    )
    master_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that seals stored secrets: 32 random bytes in base64 or hex. Behind it, divided by commas, older ones that still open "
            "what they have sealed. Default: those in data_dir/master.key, which is made when it is first needed.",
            secret=True,
        ),
    )
    egress_allow: tuple[str, ...] = field(
        default=(),
        metadata=as_row(
            Networks(),
            "Networks beyond the public internet that http jobs and webhooks may reach; none closes them all. "
            "Default: loopback where `foliot serve` listens on loopback and runs its own PostgreSQL, else none.",
        ),
    )
    pg_bindir: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(),
            "Folder of the PostgreSQL programs. Default: those of foliot[local], else those installed.",
        ),
    )
    log_format: str = field(
        default="auto",
        metadata=as_row(
            OneOf(("auto", "human", "json")),
            "How log lines look; auto is human on a terminal, json elsewhere.",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=as_row(
            OneOf(("debug", "info", "warning", "error")), "The least important log lines to keep."
        ),
    )
    shutdown_grace: int = field(
        default=3,
        metadata=as_row(
            WholeNumber(0, 10),
            "How long requests under way may go on after SIGTERM or SIGINT.",
            unit="seconds",
        ),
    )
    roles: tuple[str, ...] = field(
        default=ROLES,
        metadata=as_row(
            SomeOf(ROLES),
            "What this `foliot serve` does, divided by commas: answer the API, fire what is due and sweep, execute runs. "
            "A split needs database_url, which the nodes share.",
        ),
    )
    app: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "App whose decorated functions the worker runs, as module:app; its jobs are made what its code says at each start.",
        ),
    )
    worker_concurrency: int = field(
        default=10,
        metadata=as_row(
            WholeNumber(0, 10_000),
            "How many runs the worker of `foliot serve` does at once; 0 starts none.",
        ),
    )
    worker_queues: tuple[str, ...] = field(
        default=("*",),
        metadata=as_row(
            Queues(),
            "Queues that the worker of `foliot serve` serves, divided by commas; * serves them all.",
        ),
    )
    worker_grace: int = field(
        default=5,
        metadata=as_row(
            WholeNumber(0, 7),
            "How long runs under way may go on after SIGTERM or SIGINT; then they are handed back and repeated.",
            unit="seconds",
        ),
    )
    worker_lease: int = field(
        default=30,
        metadata=as_row(
            WholeNumber(2, 3600),
            "How long a worker may be silent before its runs are given to others.",
            unit="seconds",
        ),
    )
    allow_commands: bool = field(
        default=False,
        metadata=as_row(
            YesOrNo(),
            "Whether the worker runs jobs of type command: programs of this machine, as the worker's own user or that of command_user.",
        ),
    )
    command_env: tuple[str, ...] = field(
        default=("PATH", "HOME", "LANG", "TZ"),
        metadata=as_row(
            Variables(),
            "Variables of the worker's environment that commands get, divided by commas; FOLIOT_ ones cannot be named.",
        ),
    )
    command_user: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Whom a worker or host that runs as root runs commands as: a user, user:group or uid:gid. Default: its own user.",
        ),
    )
    command_umask: int | None = field(
        default=None,
        metadata=as_row(
            Octal(0o777),
            "Which rights files that commands make do not get, such as 077. Default: the worker's own.",
        ),
    )
    command_file_size: int = field(
        default=0,
        metadata=as_row(
            WholeNumber(0, 1_048_576),
            "How large any file may be that a command writes; 0 is no limit.",
            unit="MiB",
        ),
    )
    command_processes: int = field(
        default=0,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "How many processes the user of command_user may have at once, all its commands together; 0 is no limit.",
        ),
    )
    python_packages: tuple[str, ...] = field(
        default=(),
        metadata=as_row(
            Packages(),
            "Installed packages, divided by commas, whose plain functions jobs of type python may name. Decorated functions, and "
            "code in folders of your own, need not be named.",
        ),
    )
    child_memory: int = field(
        default=0,
        metadata=as_row(
            WholeNumber(0, 1_048_576),
            "Address space that each process of a command or a plain Python function may take; 0 is no limit.",
            unit="MiB",
        ),
    )
    child_processes: int = field(
        default=1_000,
        metadata=as_row(
            WholeNumber(0, 100_000),
            "How many processes a command or a plain Python function may have at once before all of them are ended; "
            "0 is no limit.",
        ),
    )
    bridge_redis_url: str | None = field(
        default=None,
        metadata=as_row(
            REDIS,
            "Redis or Valkey in which RQ and BullMQ keep their queues; with it jobs of the types rq and bullmq are served.",
            secret=True,
        ),
    )
    celery_broker_url: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Broker of Celery, as Celery writes it; with it and celery_result_url jobs of the type celery are served.",
            secret=True,
        ),
    )
    celery_result_url: str | None = field(
        default=None,
        metadata=as_row(
            REDIS,
            "Redis or Valkey in which Celery keeps its results. Without it jobs of the type celery are refused.",
            secret=True,
        ),
    )
    bridge_queues: tuple[str, ...] | None = field(
        default=None,
        metadata=as_row(
            Patterns(),
            "Queues of Celery, RQ and BullMQ that jobs may use, as patterns divided by commas: {workspace} is the slug of the workspace, "
            "* anything but a dot, ** anything. Default: jobs-{workspace}; ** without database_url on loopback.",
        ),
    )
    bridge_tasks: tuple[str, ...] | None = field(
        default=None,
        metadata=as_row(
            Patterns(),
            "Tasks of Celery, functions of RQ and job names of BullMQ that jobs may name, as patterns divided by commas, or none. "
            "Default: none; ** without database_url on loopback.",
        ),
    )
    bridge_in_flight: int = field(
        default=1_000,
        metadata=as_row(
            WholeNumber(1, 100_000),
            "How many runs that were handed over to Celery, RQ or BullMQ one worker waits for at once. "
            "They take none of the room of worker_concurrency.",
        ),
    )
    rate_per_key: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Requests a second that one key may send to one node, twice as many at once after a rest; 0 is no limit. "
            "Default: 100 with database_url, none without.",
        ),
    )
    rate_per_workspace: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Requests a second that all keys of a workspace together may send to one node; 0 is no limit. "
            "Default: 500 with database_url, none without.",
        ),
    )
    rate_of_failures: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Requests a minute with keys that are not valid that one address may send to one node; 0 is no limit. "
            "Default: 60 with database_url, none without.",
        ),
    )
    quota_jobs: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 100_000_000),
            "Jobs that a workspace may have, archived ones not counted; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 10000 with database_url, none without.",
        ),
    )
    quota_min_interval: int = field(
        default=1,
        metadata=as_row(
            WholeNumber(1, 86_400),
            "The least time between two planned times of a job, by cron or interval. A workspace may have one of its own.",
            unit="seconds",
        ),
    )
    quota_payload_bytes: int = field(
        default=262_144,
        metadata=as_row(
            WholeNumber(2, 262_144),
            "How large payload, config and input may be, each, as JSON. A workspace may have a quota of its own.",
            unit="bytes",
        ),
    )
    quota_artifact_bytes: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 2**50),
            "What the runs of a workspace may keep as artifacts in all; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 10 GiB with database_url, none without.",
            unit="bytes",
        ),
    )
    quota_hosts: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Hosts that a workspace may have; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 1000 with database_url, none without.",
        ),
    )
    quota_servers: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Server instances that a workspace may have on all its hosts; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 10000 with database_url, none without.",
        ),
    )
    host_retention: int = field(
        default=90,
        metadata=as_row(
            WholeNumber(0, 36_500),
            "After how long a host that was not heard of is forgotten, with its server instances, unless jobs are bound to it; "
            "0 keeps them all.",
            unit="days",
        ),
    )
    quota_rooms: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 100_000_000),
            "Rooms that a workspace may have; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 10000 with database_url, none without.",
        ),
    )
    quota_room_messages: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 2**50),
            "Messages that one room may hold; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 100000 with database_url, none without.",
        ),
    )
    keep_messages: int = field(
        default=90,
        metadata=as_row(
            WholeNumber(0, 36_500),
            "How long messages of rooms are kept, and rooms that were made for one run; 0 keeps them for ever.",
            unit="days",
        ),
    )
    quota_secrets: int | None = field(
        default=None,
        metadata=as_row(
            WholeNumber(0, 1_000_000),
            "Secrets that a workspace may have; 0 is no limit. A workspace may have a quota of its own. "
            "Default: 1000 with database_url, none without.",
        ),
    )
    artifact_bytes: int = field(
        default=20 * 1024 * 1024,
        metadata=as_row(WholeNumber(0, 1024**3), "How large one artifact of a run may be.", unit="bytes"),
    )
    origins: Mapping[str, str] = field(default_factory=dict)

    def secrets(self) -> tuple[str, ...]:
        """The values that may never be printed: whole, and the password inside an address."""
        values = [getattr(self, row.name) for row in TABLE if row.secret]
        whole = [value for value in values if value is not None]
        inside = [found for value in whole for found in passwords_in(value)]
        return (*whole, *inside, *(unquote(each) for each in inside))


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=each.name, default=each.default, **each.metadata)
    for each in fields(Settings)
    if each.metadata
)
BY_NAME: Mapping[str, Setting] = {row.name: row for row in TABLE}
