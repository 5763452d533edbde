"""How much and how often: rates, quotas, and how long things are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.settings.kinds import WholeNumber
from foliot.settings.rows import as_row


@dataclass(frozen=True, kw_only=True)
class Bounds:
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
