"""Incoming webhooks: addresses of jobs that other programs call. A trigger runs its job, a check-in reports work that is done elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from foliot.domain.ids import JobId, WebhookId, WorkerId

CHECK_IN = "check_in"  # the type of jobs whose work is done elsewhere: no worker claims their runs
CHECK_INS = WorkerId(UUID("00000000-0000-7000-8000-00000000c4ec"))  # holds the leases of such runs
START_WITHIN = timedelta(minutes=5)  # for a check-in, where the job has no start_deadline
EARLY = timedelta(minutes=1)  # before a planned time that a check-in may still mean
NO_CHECK_IN = "no_check_in"  # the error of a run that nobody reported


class WebhookKind(StrEnum):
    TRIGGER = "trigger"
    CHECK_IN = "check_in"


class CheckInState(StrEnum):
    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class WebhookDefinition:
    """A webhook as a person writes it. Secrets are named; both verify signatures while senders change over."""

    name: str
    kind: WebhookKind
    job_id: JobId
    secret: str | None = None
    old_secret: str | None = None
    enabled: bool = True

    @property
    def secrets(self) -> Mapping[str, Any]:
        """Return the references as a config that `resolve_secrets` reads."""
        named = {"secret": self.secret, "old_secret": self.old_secret}
        return {field: {"secret": name} for field, name in named.items() if name is not None}


@dataclass(frozen=True, slots=True)
class IncomingWebhook:
    id: WebhookId
    definition: WebhookDefinition
    token: str
    job_name: str
    revision: int
    created_by: str
    created_at: datetime
    updated_at: datetime
    called_at: datetime | None = None
    refused_at: datetime | None = None
    refusal: str | None = None


def is_early_for(planned: datetime | None, cursor: datetime, now: datetime) -> bool:
    """Return whether a check-in at `now` means the planned time ahead: clocks differ a little, and a quarter of the distance is enough."""
    return planned is not None and planned - now <= min(EARLY, (planned - cursor) / 4)
