"""How work is done: by workers, in processes of their own, and by other engines."""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.settings.kinds import (
    Octal,
    Packages,
    Patterns,
    Queues,
    Text,
    Url,
    Variables,
    WholeNumber,
    YesOrNo,
)
from foliot.settings.rows import as_row

REDIS = Url(("redis", "rediss", "unix"))


@dataclass(frozen=True, kw_only=True)
class Working:
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
