"""Policies that follow from the settings: egress, bridges, quotas and the sandbox of commands.

Workers and hosts import this module, so it imports nothing of the web.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.domain.defaults import DefaultValues
from foliot.domain.errors import Invalid
from foliot.domain.policy import Retention, Retry
from foliot.domain.quotas import Quotas
from foliot.domain.schedule import load_zone
from foliot.handlers.dependencies import EgressPolicy
from foliot.handlers.sandbox import Sandbox, resolve_user
from foliot.settings import Settings

MIB = 1024 * 1024
LOOPBACK = ("127.0.0.0/8", "::1/128")
# Limits of an installation with a database of its own; the private database has none unless they are set.
PER_KEY, PER_WORKSPACE = 100, 500  # requests a second
FAILURES = 60  # requests with invalid keys, a minute
JOBS, ARCHIVED_JOBS = 10_000, 100_000
TIMEOUT = 86_400  # seconds
HOSTS, SERVERS = 1_000, 10_000
ARTIFACTS = 10 * 1024**3  # bytes
ROOMS, ROOM_MESSAGES = 10_000, 100_000
SECRETS = 1_000
KEYS = 1_000


def egress_policy_of(settings: Settings) -> EgressPolicy:
    return EgressPolicy(egress_allow_of(settings), bridge_policy_of(settings))


def bridge_policy_of(settings: Settings) -> BridgePolicy:
    """Without a setting, each workspace has its own queue and no task; a local installation belongs to one team and allows all."""
    queues, tasks = settings.bridge_queues, settings.bridge_tasks
    is_local = settings.database_url is None and is_loopback(settings.host)
    otherwise = BridgePolicy(EVERYTHING, EVERYTHING) if is_local else BridgePolicy()
    return BridgePolicy(
        otherwise.queues if queues is None else queues, otherwise.tasks if tasks is None else tasks
    )


def egress_allow_of(settings: Settings) -> tuple[str, ...]:
    return LOOPBACK if allows_loopback(settings) else settings.egress_allow


def allows_loopback(settings: Settings) -> bool:
    """Without a setting, jobs may call this machine where only this machine can reach the server."""
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


def defaults_of(settings: Settings) -> DefaultValues:
    """Return the defaults of jobs that leave a field out. Raise ScheduleInvalid for an unknown zone."""
    load_zone(settings.default_timezone)
    return DefaultValues(
        Retry(
            settings.default_retries,
            delays=tuple(timedelta(seconds=each) for each in settings.default_retry_delays),
        ),
        timedelta(seconds=settings.default_timeout),
        Retention(timedelta(days=settings.default_keep), settings.default_keep_last),
        settings.default_timezone,
    )


def quotas_of(settings: Settings) -> Quotas:
    return Quotas(
        jobs=_limit(settings, settings.quota_jobs, JOBS),
        min_interval=settings.quota_min_interval,
        max_timeout=_limit(settings, settings.max_timeout, TIMEOUT),
        payload_bytes=settings.quota_payload_bytes,
        requests_per_second=_limit(settings, settings.rate_per_workspace, PER_WORKSPACE),
        key_requests_per_second=_limit(settings, settings.rate_per_key, PER_KEY),
        artifact_bytes=_limit(settings, settings.quota_artifact_bytes, ARTIFACTS),
        hosts=_limit(settings, settings.quota_hosts, HOSTS),
        servers=_limit(settings, settings.quota_servers, SERVERS),
        rooms=_limit(settings, settings.quota_rooms, ROOMS),
        room_messages=_limit(settings, settings.quota_room_messages, ROOM_MESSAGES),
        secrets=_limit(settings, settings.quota_secrets, SECRETS),
        keys=_limit(settings, settings.quota_keys, KEYS),
        archived_jobs=_limit(settings, settings.quota_archived_jobs, ARCHIVED_JOBS),
    )


def auth_failure_rate(settings: Settings) -> int | None:
    """Return how many requests with invalid keys one address may send in a minute; None is no limit."""
    return _limit(settings, settings.rate_of_failures, FAILURES)


def _limit(settings: Settings, given: int | None, otherwise: int) -> int | None:
    """Return the setting, where 0 is no limit; without one, `otherwise` on a database of the operator's own."""
    if given is not None:
        return given or None
    return None if settings.database_url is None else otherwise


def sandbox_of(settings: Settings) -> Sandbox:
    """Raise Invalid where the user does not exist, or this process cannot become it. 0 is no limit."""
    return Sandbox(
        resolve_user(settings.command_user),
        settings.command_umask,
        settings.command_file_size * MIB or None,
        settings.command_processes or None,
    )


def reject_database_user(sandbox: Sandbox, cluster: Path) -> None:
    """Refuse to run commands as the database's user: they could read its files and memory, and stop it."""
    user = sandbox.user
    if user is not None and user.uid == cluster.stat().st_uid:
        raise Invalid(
            f"Commands are to run as {user.name or user.uid}, and so does the private PostgreSQL: they could read and stop it.",
            hint="Name a user of their own in FOLIOT_COMMAND_USER, or use a database of your own with FOLIOT_DATABASE_URL.",
        )
