"""Incoming webhooks on the wire: addresses of jobs that other programs call."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from foliot.wire.instants import Id, Instant
from foliot.wire.notifications import ShortName
from foliot.wire.rooms import SecretNamed
from foliot.wire.shape import Shape, refusal


class IncomingWebhookIn(Shape):
    name: ShortName
    kind: Literal["trigger", "check_in"] = Field(
        description="`trigger`: a signed request runs the job, with the body as input. `check_in`: start, success and fail of work elsewhere;"
        " its job has the type check_in."
    )
    job_id: Id
    secret: SecretNamed | None = Field(
        default=None, description="Verifies the signatures of a trigger, by Standard Webhooks."
    )
    old_secret: SecretNamed | None = Field(
        default=None, description="Valid beside `secret` while senders change over."
    )
    enabled: bool = True

    @model_validator(mode="after")
    def _secrets_of_a_trigger(self) -> Self:
        if self.kind == "trigger" and self.secret is None:
            raise refusal("webhook_secret", "A trigger needs a secret that verifies its signatures.")
        if self.kind == "check_in" and (self.secret or self.old_secret):
            raise refusal("webhook_secret", "Check-ins have no secret: their address is one.")
        return self


class IncomingWebhookOut(IncomingWebhookIn):
    id: Id
    job_name: str
    url: str | None = Field(
        description="Where to call it; for a check-in add /start, /success or /fail. Null for callers that may not operate jobs."
    )
    revision: int
    created_by: str
    created_at: Instant
    updated_at: Instant
    last_call_at: Instant | None = Field(description="When the last call was accepted.")
    last_refusal_at: Instant | None
    last_refusal: str | None = Field(description="Why the last refused call was refused.")


class WebhookDeletion(Shape):
    deleted: Id


class TriggeredOut(Shape):
    """The answer to a signed request."""

    run_id: Id
    repeated: bool = Field(description="Whether an earlier message with this id has run the job.")


class CheckInOut(Shape):
    """The answer to a check-in."""

    recorded: bool
    run_id: Id | None
    message: str
