"""What jobs may reach: networks beside the public internet, and queues and tasks of the engines they are handed over to."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from foliot.domain.bridge_policy import EVERYTHING, Handing
from foliot.domain.errors import Invalid
from foliot.domain.quotas import Quotas
from foliot.handlers.dependencies import EgressPolicy
from foliot.handlers.sandbox import Sandbox, resolve_user
from foliot.settings import Settings

LOOPBACK = ("127.0.0.0/8", "::1/128")
OWN_MACHINE = (
    "  http jobs  may call this machine too, as it serves nobody else; FOLIOT_EGRESS_ALLOW=none forbids it"
)


def egress_policy_of(settings: Settings) -> EgressPolicy:
    return EgressPolicy(egress_allow_of(settings), bridge_policy_of(settings))


def bridge_policy_of(settings: Settings) -> Handing:
    """What is set. Else, where others may have workspaces, each has its own queue and no task; a local installation is one team's."""
    queues, tasks = settings.bridge_queues, settings.bridge_tasks
    is_local = settings.database_url is None and is_loopback(settings.host)
    otherwise = Handing(EVERYTHING, EVERYTHING) if is_local else Handing()
    return Handing(
        otherwise.queues if queues is None else queues, otherwise.tasks if tasks is None else tasks
    )


def egress_allow_of(settings: Settings) -> tuple[str, ...]:
    """What is set; else nothing, but for an installation that only this machine can reach: its jobs may call this machine."""
    return LOOPBACK if allows_loopback(settings) else settings.egress_allow


def allows_loopback(settings: Settings) -> bool:
    return (
        settings.origins["egress_allow"] == "default"
        and settings.database_url is None
        and is_loopback(settings.host)
    )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


PER_KEY, PER_WORKSPACE = 100, 500  # requests a second
FAILURES = 60  # a minute
JOBS = 10_000
HOSTS, SERVERS = 1_000, 10_000
ARTIFACTS = 10 * 1024**3  # bytes
ROOMS, ROOM_MESSAGES = 10_000, 100_000
SECRETS = 1_000


def quotas_of(settings: Settings) -> Quotas:
    return Quotas(
        jobs=_limit(settings, settings.quota_jobs, JOBS),
        min_interval=settings.quota_min_interval,
        payload_bytes=settings.quota_payload_bytes,
        requests_per_second=_limit(settings, settings.rate_per_workspace, PER_WORKSPACE),
        key_requests_per_second=_limit(settings, settings.rate_per_key, PER_KEY),
        artifact_bytes=artifact_quota(settings),
        hosts=_limit(settings, settings.quota_hosts, HOSTS),
        servers=_limit(settings, settings.quota_servers, SERVERS),
        rooms=_limit(settings, settings.quota_rooms, ROOMS),
        room_messages=_limit(settings, settings.quota_room_messages, ROOM_MESSAGES),
        secrets=_limit(settings, settings.quota_secrets, SECRETS),
    )


def auth_failure_rate(settings: Settings) -> int | None:
    return _limit(settings, settings.rate_of_failures, FAILURES)


def artifact_quota(settings: Settings) -> int | None:
    """Bytes that the runs of a workspace may keep, where it has no quota of its own."""
    return _limit(settings, settings.quota_artifact_bytes, ARTIFACTS)


def _limit(settings: Settings, given: int | None, otherwise: int) -> int | None:
    """What is set, where 0 is no limit; else that of a server that others can reach."""
    if given is not None:
        return given or None
    return None if settings.database_url is None else otherwise


MIB = 1024 * 1024


class Confining(Protocol):
    @property
    def command_user(self) -> str | None: ...
    @property
    def command_umask(self) -> int | None: ...
    @property
    def command_file_size(self) -> int: ...
    @property
    def command_processes(self) -> int: ...


def sandbox_of(given: Confining) -> Sandbox:
    """Raises Invalid where the user is not there, or this process cannot become it. 0 is no limit."""
    return Sandbox(
        resolve_user(given.command_user),
        given.command_umask,
        given.command_file_size * MIB or None,
        given.command_processes or None,
    )


def reject_database_user(confines: Sandbox, cluster: Path) -> None:
    """Who has the user of a database has the database: its files, its memory, and the signals that stop it."""
    user = confines.user
    if user is not None and user.uid == cluster.stat().st_uid:
        raise Invalid(
            f"Commands are to run as {user.name or user.uid}, and so does the private PostgreSQL: they could read and stop it.",
            hint="Name a user of their own in FOLIOT_COMMAND_USER, or use a database of your own with FOLIOT_DATABASE_URL.",
        )
