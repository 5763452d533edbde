"""Channels, rules, incidents and deliveries, between the wire and the domain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from foliot.domain.addresses import networks
from foliot.domain.errors import Invalid, ScheduleInvalid
from foliot.domain.ids import ChannelId, JobId
from foliot.domain.notifications.channel import Channel, ChannelDefinition, ChannelKind
from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.notifications.rules import QuietHours, RuleDefinition, RuleScope
from foliot.domain.schedule import load_zone
from foliot.egress.client import refusal
from foliot.egress.url import InvalidTarget, read_target
from foliot.services.notifications.deliveries import DeliveryRecord
from foliot.services.notifications.rules import RuleRow
from foliot.wire import notifications as wire

_CONFIG: TypeAdapter[Any] = TypeAdapter(wire.ChannelConfig)


def channel_from(given: wire.ChannelIn, egress_allow: tuple[str, ...]) -> ChannelDefinition:
    """Read a channel and check its addresses. A host name is checked again at each call, when it is resolved."""
    _check_zone(given.timezone, "/timezone")
    config = given.config.model_dump(mode="json", exclude_none=True)
    kind = ChannelKind(config.pop("kind"))
    receiver = kind.value
    for field in ("url", "api_url"):
        value = config.get(field)
        if isinstance(value, str):
            receiver = _checked(value, f"/config/{field}", egress_allow)
    if kind is ChannelKind.EMAIL and config.get("host"):
        port = config.get("port") or {"starttls": 587, "tls": 465, "none": 25}[config["security"]]
        receiver = _checked(f"http://{config['host']}:{port}/", "/config/host", egress_allow)
    return ChannelDefinition(given.name.strip(), kind, config, receiver, given.enabled, given.timezone)


def channel_out(channel: Channel) -> wire.ChannelOut:
    definition = channel.definition
    return wire.ChannelOut.from_value(
        channel,
        name=definition.name,
        config=_CONFIG.validate_python({"kind": definition.kind.value, **definition.config}),
        enabled=definition.enabled,
        timezone=definition.timezone,
        last_error=channel.error,
        refused=[
            wire.RefusedAddressOut(address=each.address, reason=each.reason, at=each.at)
            for each in channel.refused
            if each.at is not None
        ],
    )


def rule_from(given: wire.NotificationRuleIn, timezone: str) -> RuleDefinition:
    """`timezone` is the workspace's, for quiet hours that name none."""
    quiet = given.quiet_hours
    _check_zone(quiet.timezone if quiet else None, "/quiet_hours/timezone")
    return RuleDefinition(
        tuple(dict.fromkeys(NoticeEvent(each) for each in given.events)),
        tuple(dict.fromkeys(ChannelId(each) for each in given.channels)),
        RuleScope(
            tuple(JobId(each) for each in given.scope.jobs),
            tuple(given.scope.tags),
            tuple(given.scope.queues),
            given.scope.q.strip(),
        ),
        tuple(given.recipients),
        given.after_n,
        given.cooldown or timedelta(0),
        None if quiet is None else QuietHours(quiet.start, quiet.end, quiet.timezone or timezone),
        tuple(given.attachments),
    )


def rule_out(row: RuleRow) -> wire.NotificationRuleOut:
    terms = row.rule.definition
    quiet = terms.quiet_hours
    named = [_event_name(each) for each in terms.events]
    return wire.NotificationRuleOut(
        id=row.rule.id,
        name=row.rule.name,
        events=named,
        channels=list(terms.channels),
        scope=wire.RuleScopeIn(
            jobs=list(terms.scope.jobs),
            tags=list(terms.scope.tags),
            queues=list(terms.scope.queues),
            q=terms.scope.q,
        ),
        recipients=list(terms.recipients),
        after_n=terms.after_n,
        cooldown=terms.cooldown or None,
        quiet_hours=None
        if quiet is None
        else wire.QuietHoursIn(start=quiet.start, end=quiet.end, timezone=quiet.timezone),
        attachments=list(terms.attachments),
        enabled=row.rule.enabled,
        revision=row.revision,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def incident_out(incident: Incident, now: datetime, names: Mapping[JobId, str]) -> wire.IncidentOut:
    error, event = incident.error, _event_name(incident.event)
    return wire.IncidentOut.from_value(
        incident,
        state=incident.state(now).value,
        job_name=None if incident.job_id is None else names.get(incident.job_id),
        event=event,
        error=None if error is None else wire.IncidentError(code=error.code, message=error.message),
        next_reminder_at=incident.remind_at,
    )


def notice_delivery_out(record: DeliveryRecord) -> wire.NoticeDeliveryOut:
    kind: Any = record.message_kind
    return wire.NoticeDeliveryOut.from_value(
        record,
        state=record.state.value,
        channel_kind=record.channel_kind.value,
        message_kind=kind,
        recipients=list(record.recipients),
        next_attempt_at=record.due_at,
        last_status=record.status,
        last_answer=record.answer,
        last_error=record.error,
    )


def _event_name(event: NoticeEvent) -> Any:
    """Return the name of an event that a rule may name; `event` itself opens no incident."""
    return event.value


def _check_zone(name: str | None, pointer: str) -> None:
    try:
        load_zone(name or "UTC")
    except ScheduleInvalid as error:
        error.pointer = pointer
        raise


def _checked(url: str, pointer: str, egress_allow: tuple[str, ...]) -> str:
    """Return host and port of an address that may be called, or raise Invalid."""
    try:
        target = read_target(url)
    except InvalidTarget as error:
        raise Invalid(error.message, pointer=pointer, hint=error.hint) from None
    if target.address is not None:
        sentence = refusal(target.host, [target.address], networks(egress_allow))
        if sentence is not None:
            what, _, hint = sentence.partition(". ")
            raise Invalid(f"{what}.", pointer=pointer, hint=hint)
    return f"{target.host}:{target.port}"
