"""Quotas of a workspace: jobs, secrets, rooms, how often jobs fire, payload size, request rate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from foliot.domain.definition import Definition
from foliot.domain.errors import QuotaExceeded
from foliot.domain.policy import LONGEST_WAIT
from foliot.domain.schedule import Cron, Interval, Schedule, Timetable, preview

LARGEST_PAYLOAD = 256 * 1024  # bytes of JSON
ASKED = 300  # planned times compared; the closest pair of a cron shows within an hour or a day
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Quotas:
    """None means no limit. Seconds and bytes are plain numbers because they are stored as JSON."""

    jobs: int | None = None  # that are not archived
    min_interval: int = 1  # seconds between two planned times
    max_timeout: int | None = None  # seconds of an attempt; of the installation, no workspace has its own
    payload_bytes: int = LARGEST_PAYLOAD  # of payload, config and input each
    requests_per_second: int | None = None  # of all keys of the workspace together
    key_requests_per_second: int | None = None
    artifact_bytes: int | None = None  # that its runs may keep in all
    hosts: int | None = None
    servers: int | None = None  # instances, on all its hosts together
    rooms: int | None = None
    room_messages: int | None = None  # in one room
    secrets: int | None = None
    fires_per_day: int | None = None  # runs that schedules start in a day of UTC
    keys: int | None = None  # that are valid, sessions of the console included
    archived_jobs: int | None = None
    own_jobs: int | None = None  # of the agent whose key has such a budget; no quota of a workspace

    @property
    def longest_timeout(self) -> timedelta:
        return LONGEST_WAIT if self.max_timeout is None else timedelta(seconds=self.max_timeout)

    def overlaid(self, own: Mapping[str, Any]) -> Quotas:
        """Return these quotas with the workspace's own values on top."""
        known = {each.name for each in fields(Quotas)} - {"own_jobs"}
        return replace(self, **{name: value for name, value in own.items() if name in known})


UNLIMITED = Quotas()


def check_definition(
    quotas: Quotas, definition: Definition, now: datetime, before: Definition | None = None
) -> None:
    """Check only what the edit changes: a later quota must not prevent a new name."""
    if before is None or before.spec.schedule != definition.spec.schedule:
        _check_pace(quotas, definition.spec.schedule, now)
    if before is None or before.spec.limits.timeout != definition.spec.limits.timeout:
        _check_timeout(quotas, definition.spec.limits.timeout)
    if before is None or before.config != definition.config:
        check_size(quotas, "config", definition.config)
    if before is None or before.payload != definition.payload:
        check_size(quotas, "payload", definition.payload)


def check_size(quotas: Quotas, name: str, value: Any) -> None:
    if quotas.payload_bytes >= LARGEST_PAYLOAD and name != "input":
        return  # the edge accepts no larger body
    size = 0 if value is None else len(json.dumps(value, ensure_ascii=False).encode())
    if size > quotas.payload_bytes:
        raise QuotaExceeded(
            f"{name} has {size:,} bytes as JSON; in this workspace the most is {quotas.payload_bytes:,}.",
            quota="payload_bytes",
            limit=quotas.payload_bytes,
            used=size,
            pointer=f"/{name}",
            hint="Keep large data elsewhere and send its address.",
        )


def check_jobs(quotas: Quotas, used: int) -> None:
    """Check the count; `used` includes the new one, here and below."""
    hint = "Archive jobs that are no longer needed, or ask the operator for more."
    _check_count("jobs", quotas.jobs, used, f"This workspace has {used - 1:,} jobs, and may have", hint)


def check_archived_jobs(quotas: Quotas, used: int) -> None:
    hint = "Purge archived jobs that nobody needs with `foliot jobs delete --purge`, or ask the operator for more."
    sentence = f"This workspace has {used - 1:,} archived jobs, and may have"
    _check_count("archived_jobs", quotas.archived_jobs, used, sentence, hint)


def check_own_jobs(quotas: Quotas, used: int) -> None:
    hint = "Delete jobs that are no longer needed, or ask a person for a key that may have more."
    _check_count(
        "own_jobs", quotas.own_jobs, used, f"You have {used - 1:,} jobs, and this key may have", hint
    )


def check_hosts(quotas: Quotas, used: int) -> None:
    hint = "Delete hosts that are gone with `foliot hosts delete`, or ask the operator for more."
    _check_count("hosts", quotas.hosts, used, f"This workspace has {used - 1:,} hosts, and may have", hint)


def check_servers(quotas: Quotas, used: int) -> None:
    """Check the total after several instances are added at once."""
    sentence = f"This workspace would have {used:,} server instances, and may have"
    hint = "Remove those that are gone with `foliot hosts remove-server`, or ask the operator for more."
    _check_count("servers", quotas.servers, used, sentence, hint, had=used)


def check_rooms(quotas: Quotas, used: int) -> None:
    hint = "Delete rooms that are no longer needed, or ask the operator for more."
    _check_count("rooms", quotas.rooms, used, f"This workspace has {used - 1:,} rooms, and may have", hint)


def check_messages(quotas: Quotas, used: int) -> None:
    sentence = f"This room holds {used - 1:,} messages, and may hold"
    hint = "Write in another room, or ask the operator for more; old messages make room when they are pruned."
    _check_count("room_messages", quotas.room_messages, used, sentence, hint)


def check_secrets(quotas: Quotas, used: int) -> None:
    hint = "Delete secrets that no job names any more, or ask the operator for more."
    _check_count(
        "secrets", quotas.secrets, used, f"This workspace has {used - 1:,} secrets, and may have", hint
    )


def check_keys(quotas: Quotas, used: int) -> None:
    hint = "Revoke keys that are no longer used, or ask the operator for more."
    _check_count("keys", quotas.keys, used, f"This workspace has {used - 1:,} valid keys, and may have", hint)


def _check_count(
    quota: str, limit: int | None, used: int, sentence: str, hint: str, *, had: int | None = None
) -> None:
    if limit is not None and used > limit:
        had = used - 1 if had is None else had
        raise QuotaExceeded(f"{sentence} {limit:,}.", quota=quota, limit=limit, used=had, hint=hint)


def _check_pace(quotas: Quotas, schedule: Schedule, now: datetime) -> None:
    least = timedelta(seconds=quotas.min_interval)
    found = _closest(schedule, now, least)
    if found is not None and found < least:
        raise QuotaExceeded(
            f"This fires {found.total_seconds():g} s apart; here the least is {quotas.min_interval} s.",
            quota="min_interval",
            limit=quotas.min_interval,
            used=int(found.total_seconds()),
            pointer="/schedule/every" if isinstance(schedule, Interval) else "/schedule/expr",
            hint="Let it fire less often, or ask the operator for a shorter interval.",
        )


def _check_timeout(quotas: Quotas, timeout: timedelta) -> None:
    if quotas.max_timeout is not None and timeout > quotas.longest_timeout:
        raise QuotaExceeded(
            f"A timeout of {timeout.total_seconds():,.0f} s is longer than the operator allows: {quotas.max_timeout:,} s.",
            quota="max_timeout",
            limit=quotas.max_timeout,
            used=int(timeout.total_seconds()),
            pointer="/timeout",
            hint="Divide the work, or ask the operator for a longer timeout.",
        )


def _closest(schedule: Schedule, now: datetime, least: timedelta) -> timedelta | None:
    """Return the shortest time between two planned times; None when there are no two, or they cannot be too close."""
    match schedule:
        case Interval():
            return schedule.every
        case Cron():
            if least <= (timedelta(seconds=1) if schedule.seconds else MINUTE):
                return None
            times = [each.planned_for for each in preview(Timetable(schedule), now, ASKED)]
            return min((later - sooner for sooner, later in pairwise(times)), default=None)
        case _:
            return None
