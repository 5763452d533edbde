"""Channels, notification rules, incidents and deliveries on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from foliot.wire.durations import Duration
from foliot.wire.instants import Id, Instant, TimeOfDay
from foliot.wire.rooms import SecretNamed
from foliot.wire.shape import Shape, refusal, tag

MOST_RECIPIENTS = 50
ShortName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"\S")]
MailAddress = Annotated[
    str, StringConstraints(max_length=320, pattern=r'^[^\s@<>,;:"()\[\]\\]+@[^\s@<>,;:"()\[\]\\]+$')
]
MailSender = Annotated[
    str, StringConstraints(max_length=400, pattern=r"^[^\r\n@<>]*<?[^\s@<>]+@[^\s@<>]+>?$")
]
PhoneNumber = Annotated[str, StringConstraints(pattern=r"^\+?[0-9]{6,15}$")]
Url = Annotated[str, StringConstraints(min_length=1, max_length=8_000, pattern=r"^https?://")]
EventName = Literal[
    "run_failed",
    "retries_exhausted",
    "run_succeeded",
    "run_skipped",
    "missed",
    "late",
    "slow",
    "stuck",
    "no_worker",
    "job_paused",
    "job_auto_paused",
    "job_resumed",
    "job_changed",
    "recovered",
    "expiring",
    "zone_data_changed",
    "channel_disabled",
    "budget_warning",
    "budget_exceeded",
]


class EmailConfig(Shape):
    """Mail over SMTP. Without `host` the installation's mail server sends it."""

    kind: Literal["email"]
    to: list[MailAddress] = Field(min_length=1, max_length=MOST_RECIPIENTS, examples=[["ops@example.com"]])
    sender: MailSender | None = Field(default=None, description="Such as Foliot <foliot@example.com>.")
    host: str | None = Field(default=None, min_length=1, max_length=255, pattern=r"^[A-Za-z0-9._:-]+$")
    port: int | None = Field(
        default=None, ge=1, le=65_535, description="Default: 587, 465 with tls, 25 with none."
    )
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = Field(default=None, max_length=320)
    password: SecretNamed | None = None


class SlackConfig(Shape):
    """An incoming webhook, or a bot's token and a channel. Only a bot answers in threads."""

    kind: Literal["slack"]
    webhook_url: SecretNamed | None = Field(
        default=None, description="The secret that holds the webhook's address."
    )
    token: SecretNamed | None = Field(
        default=None, description="The secret that holds a token with chat:write."
    )
    channel: str | None = Field(default=None, max_length=100, examples=["#ops"])
    api_url: Url | None = Field(default=None, description="Default: https://slack.com/api.")

    @model_validator(mode="after")
    def _one_way(self) -> SlackConfig:
        if (self.webhook_url is None) == (self.token is None):
            raise refusal("slack_way", "Give webhook_url, or token and channel.")
        if self.token is not None and not self.channel:
            raise refusal("slack_channel", "A token needs a channel.")
        return self


class WhatsappConfig(Shape):
    """The Cloud API of Meta. Messages outside an open conversation need an approved template."""

    kind: Literal["whatsapp"]
    to: list[PhoneNumber] = Field(min_length=1, max_length=MOST_RECIPIENTS, examples=[["+34600000000"]])
    token: SecretNamed
    phone_number_id: str = Field(pattern=r"^[0-9]{1,30}$")
    template: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9_]{1,512}$",
        description="A template whose body has two parameters: title and text. Without it, plain text.",
    )
    language: str | None = Field(
        default=None, pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$", description="Default: en_US."
    )
    api_url: Url | None = Field(default=None, description="Default: https://graph.facebook.com/v23.0.")


class NoticeWebhookConfig(Shape):
    """A POST signed by Standard Webhooks. While `old_secret` is given both sign, so that receivers can change over."""

    kind: Literal["webhook"]
    url: Url
    secret: SecretNamed | None = None
    old_secret: SecretNamed | None = None
    events: list[Annotated[str, StringConstraints(pattern=r"^(\*|[a-z_]+\.(\*|[a-z_]+))$")]] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Also every event of these kinds, as GET /events names them: run.failed, job.*, or * for all.",
        examples=[["run.*", "job.paused"]],
    )


class RoomConfig(Shape):
    kind: Literal["room"]
    room: str = Field(min_length=1, max_length=100, description="Id or key of a chat room of the workspace.")


class AppriseConfig(Shape):
    """Discord, Teams, Telegram and other services, by an address of the Apprise library."""

    kind: Literal["apprise"]
    url: SecretNamed = Field(description="The secret that holds the address, such as discord://….")


def _which(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return tag(kind) if isinstance(kind, str) else None


ChannelConfig = Annotated[
    Annotated[EmailConfig, Tag(tag("email"))]
    | Annotated[SlackConfig, Tag(tag("slack"))]
    | Annotated[WhatsappConfig, Tag(tag("whatsapp"))]
    | Annotated[NoticeWebhookConfig, Tag(tag("webhook"))]
    | Annotated[RoomConfig, Tag(tag("room"))]
    | Annotated[AppriseConfig, Tag(tag("apprise"))],
    Discriminator(
        _which,
        custom_error_type="channel_kind",
        custom_error_message='A channel\'s config is an object with a "kind": email, slack, whatsapp, webhook, room or apprise.',
        custom_error_context={"hint": 'Such as {"kind": "email", "to": ["ops@example.com"]}.'},
    ),
]


class ChannelIn(Shape):
    name: ShortName
    config: ChannelConfig
    enabled: bool = True


class RefusedAddressOut(Shape):
    address: str
    reason: str
    at: Instant


class ChannelOut(ChannelIn):
    id: Id
    revision: int
    created_at: Instant
    updated_at: Instant
    disabled_at: Instant | None = Field(
        description="When the peer refused it for good: nothing is sent until it is changed or enabled again."
    )
    disabled_reason: str | None
    failing_since: Instant | None = Field(description="Null without failures.")
    last_error: str | None
    delivered_at: Instant | None = Field(description="When the last message was taken.")
    refused: list[RefusedAddressOut] = Field(
        description="Addresses that the peer refused; they are left out."
    )


class ChannelDeletion(Shape):
    deleted: Id


class QuietHoursIn(Shape):
    """Messages wait for `end`. Past midnight the span ends on the next day."""

    start: TimeOfDay
    end: TimeOfDay
    timezone: str | None = Field(default=None, max_length=64, description="Default: the workspace's zone.")


class RuleScopeIn(Shape):
    """The jobs of a rule; without any, all jobs of the workspace."""

    jobs: list[Id] = Field(default=[], max_length=1_000)
    tags: list[str] = Field(default=[], max_length=100)
    queues: list[str] = Field(default=[], max_length=100)
    q: str = Field(
        default="",
        max_length=1_000,
        description="Jobs that this filter finds, as in GET /jobs.",
        examples=["type:http -tag:test"],
    )


class NotificationRuleIn(Shape):
    name: ShortName
    events: list[EventName] = Field(min_length=1, max_length=30, examples=[["run_failed", "recovered"]])
    channels: list[Id] = Field(
        default=[], max_length=20, description="Where messages go. Without any, the rule mutes its events."
    )
    scope: RuleScopeIn = RuleScopeIn()
    recipients: list[str] = Field(
        default=[], max_length=MOST_RECIPIENTS, description="Instead of the recipients of the channels."
    )
    after_n: int = Field(
        default=1, ge=1, le=1_000, description="Failures of an incident before its first message."
    )
    cooldown: Duration | None = Field(
        default=None, description="The least time between incidents of one job."
    )
    quiet_hours: QuietHoursIn | None = None
    attachments: list[str] = Field(
        default=[],
        max_length=10,
        description="Names of artifacts to attach; * matches anything.",
        examples=[["*.pdf"]],
    )
    enabled: bool = True


class NotificationRuleOut(NotificationRuleIn):
    id: Id
    revision: int
    created_at: Instant
    updated_at: Instant


class RuleDeletion(Shape):
    deleted: Id


class IncidentError(Shape):
    code: str
    message: str


class IncidentOut(Shape):
    id: Id
    state: Literal["open", "acknowledged", "snoozed", "muted", "closed"]
    subject: str = Field(
        description="job:<id>, queue:<queue>/<type>, or late:, slow: and stuck: with the job's id."
    )
    job_id: Id | None
    job_name: str | None = Field(description="Null for a queue, and for a job that was purged.")
    event: EventName = Field(description="The event that opened it.")
    error: IncidentError | None = Field(description="Of the last failure.")
    fingerprint: str = Field(description="Equal for incidents with the same error.")
    failures: int
    missed: int
    first_run_id: Id | None
    last_run_id: Id | None
    opened_at: Instant
    last_at: Instant
    closed_at: Instant | None
    reminders: int
    next_reminder_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_by: str | None
    muted_at: Instant | None
    muted_by: str | None
    snoozed_until: Instant | None
    note: str | None


class IncidentNoteIn(Shape):
    note: str = Field(max_length=2_000, description="Replaces the note; empty removes it.")


class SnoozeIn(Shape):
    until: Instant


class NoticeDeliveryOut(Shape):
    id: Id = Field(description="The same at every attempt.")
    state: Literal["waiting", "sending", "delivered", "dead"]
    channel_id: Id
    channel_name: str
    channel_kind: str
    event: str
    message_kind: Literal["opened", "reminder", "recovered", "info", "digest", "test", "event"]
    title: str
    incident_id: Id | None
    job_id: Id | None
    recipients: list[str] = Field(description="Instead of those of the channel; empty otherwise.")
    attempts: int
    next_attempt_at: Instant | None
    last_status: int | None
    last_answer: str | None = Field(description="What the peer answered last.")
    last_error: str | None
    created_at: Instant
    ended_at: Instant | None


class NoticeLinkOut(Shape):
    label: str
    url: str


class NoticeOut(Shape):
    """A notice as webhooks carry it."""

    event: str
    kind: str
    severity: str
    workspace: str
    title: str
    text: str
    error: str | None
    job_id: Id | None
    job_name: str | None
    run_id: Id | None
    incident_id: Id | None
    links: list[NoticeLinkOut]


class NoticeSent(Shape):
    """The body of a webhook request."""

    type: str
    timestamp: Instant
    data: NoticeOut
