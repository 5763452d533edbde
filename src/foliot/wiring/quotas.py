"""Which limits hold in this installation. On a local one, with the private database, there are none unless they are set."""

from __future__ import annotations

from foliot.domain.quotas import Quotas
from foliot.settings import Settings

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
        artifact_bytes=artifact_room(settings),
        hosts=_limit(settings, settings.quota_hosts, HOSTS),
        servers=_limit(settings, settings.quota_servers, SERVERS),
        rooms=_limit(settings, settings.quota_rooms, ROOMS),
        room_messages=_limit(settings, settings.quota_room_messages, ROOM_MESSAGES),
        secrets=_limit(settings, settings.quota_secrets, SECRETS),
    )


def failures_of(settings: Settings) -> int | None:
    return _limit(settings, settings.rate_of_failures, FAILURES)


def artifact_room(settings: Settings) -> int | None:
    """Bytes that the runs of a workspace may keep, where it has no quota of its own."""
    return _limit(settings, settings.quota_artifact_bytes, ARTIFACTS)


def _limit(settings: Settings, given: int | None, otherwise: int) -> int | None:
    """What is set, where 0 is no limit; else that of a server that others can reach."""
    if given is not None:
        return given or None
    return None if settings.database_url is None else otherwise
