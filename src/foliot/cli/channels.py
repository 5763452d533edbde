"""`foliot channels`: ways to reach people, and `foliot notify`: rules, deliveries and test messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.input_files import read_object
from foliot.cli.lookup import find_named
from foliot.cli.output import Exit, pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, to_json
from foliot.cli.tables import BOLD, DIM, RED, SHORT_ID, Block, Column, Table, facts, stack, styled
from foliot.cli.times import relative
from foliot.clock import monotonic, pause

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from foliot.sdk import Client
    from foliot.sdk.synchronous.notifications import ChannelWrites
    from foliot.wire.notifications import ChannelOut, NoticeDeliveryOut, NotificationRuleOut

WAIT = 25.0  # seconds for the answer of a peer to a test message
app = typer.Typer(help="Channels: ways to reach people about jobs.", no_args_is_help=True)
notify = typer.Typer(help="Notification rules, test messages and what was sent.", no_args_is_help=True)
rules = typer.Typer(help="Rules: which events of which jobs go to which channels.", no_args_is_help=True)
notify.add_typer(rules, name="rules")
ChannelRef = Annotated[
    str,
    typer.Argument(metavar="CHANNEL", help="Channel name, id, or beginning of the id.", show_default=False),
]
RuleRef = Annotated[
    str, typer.Argument(metavar="RULE", help="Rule name, id, or beginning of the id.", show_default=False)
]
File = Annotated[str, typer.Option("-f", "--file", help="YAML or JSON; - is standard input.", metavar="FILE")]


@app.command("list")
@api_command
def list_channels(session: Session, paging: Paging = FIRST_50) -> None:
    """List channels by name."""
    found = paging.fetch(session.client.channels.list)
    session.show_list(found, lambda: channel_table(found.items, session.now))


@app.command()
@api_command
def show(session: Session, channel: ChannelRef) -> None:
    """Show a channel: its settings, its health, and addresses that were refused."""
    found = find_channel(session.client, channel)
    session.show(found, lambda: channel_page(found, session.now))


@app.command()
@api_command
def create(session: Session, file: File, dry_run: DryRun = False) -> None:
    """Create a channel from a file with name and config; config has a kind, such as email or slack."""
    verbs = session.client.channels.dry_run if dry_run else session.client.channels
    made = verbs.create(read_object(file, "a channel with name and config"))
    session.show(made, lambda: channel_page(made, session.now, is_tried=dry_run))


@app.command()
@api_command
def replace(session: Session, channel: ChannelRef, file: File, dry_run: DryRun = False) -> None:
    """Replace a channel and start it again, whatever stopped it."""
    wanted = read_object(file, "a channel with name and config")
    _change(session, channel, lambda verbs, found: verbs.replace(found, wanted), dry_run=dry_run)


@app.command()
@api_command
def enable(session: Session, channel: ChannelRef, dry_run: DryRun = False) -> None:
    """Start a channel again, whatever stopped it."""
    _change(session, channel, lambda verbs, found: verbs.enable(found), dry_run=dry_run)


@app.command()
@api_command
def disable(session: Session, channel: ChannelRef, dry_run: DryRun = False) -> None:
    """Send nothing through a channel until it is enabled."""
    _change(session, channel, lambda verbs, found: verbs.disable(found), dry_run=dry_run)


@app.command()
@api_command
def delete(session: Session, channel: ChannelRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a channel. Refused while rules send to it."""
    found = find_channel(session.client, channel)
    question = f'Delete the channel "{found.name}"?'
    session.delete(session.client.channels, found, question, yes=yes, dry_run=dry_run)


@notify.command("test")
@api_command
def send_test_messages(
    session: Session,
    channel: Annotated[
        list[str] | None, typer.Argument(metavar="[CHANNEL]...", help="Default: every enabled channel.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Send one message through each channel and report what each peer answered."""
    client = session.client
    chosen = (
        [find_channel(client, each) for each in channel]
        if channel
        else [each for each in client.channels.each() if each.enabled]
    )
    if dry_run:
        tried = [client.channels.dry_run.test(each.id) for each in chosen]
        names = ", ".join(each.name for each in chosen) or "no channel"
        session.show_dry_run({"items": [to_json(each) for each in tried]}, f"Would send a message to {names}")
        return
    sent = [client.channels.test(each.id) for each in chosen]
    until = monotonic() + WAIT
    answered = [_await_answer(client, each, until) for each in sent]
    session.show_list(answered, lambda: _test_table(answered))
    if any(each.state != "delivered" for each in answered):
        raise typer.Exit(Exit.FAILURE)


@notify.command()
@api_command
def deliveries(
    session: Session,
    channel: Annotated[
        str | None, typer.Option(help="Only those through this channel.", metavar="CHANNEL")
    ] = None,
    state: Annotated[str | None, typer.Option(help="waiting, delivered or dead.", metavar="STATE")] = None,
    paging: Paging = FIRST_50,
) -> None:
    """List messages to channels, newest first."""
    channel_id = None if channel is None else find_channel(session.client, channel).id
    found = paging.fetch(session.client.deliveries.list, state=state, channel_id=channel_id)
    session.show_list(found, lambda: delivery_table(found.items, session.now))


@notify.command()
@api_command
def replay(
    session: Session,
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="Delivery id.", show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Send an ended delivery again, under the same id."""
    verbs = session.client.deliveries.dry_run if dry_run else session.client.deliveries
    found = verbs.replay(delivery)
    session.show(found, lambda: delivery_table([found], session.now))


@rules.command("list")
@api_command
def list_rules(session: Session, paging: Paging = FIRST_50) -> None:
    """List rules by name."""
    found = paging.fetch(session.client.notification_rules.list)
    session.show_list(found, lambda: rule_table(found.items))


@rules.command("show")
@api_command
def show_rule(session: Session, rule: RuleRef) -> None:
    """Show a rule: its events, jobs, channels and terms."""
    found = find_rule(session.client, rule)
    named = {each.id: each.name for each in session.client.channels.each()}
    session.show(found, lambda: rule_page(found, named))


@rules.command("create")
@api_command
def create_rule(session: Session, file: File, dry_run: DryRun = False) -> None:
    """Create a rule from a file with name, events, channels and scope; channels by name or id."""
    verbs = session.client.notification_rules.dry_run if dry_run else session.client.notification_rules
    made = verbs.create(_read_rule(session.client, file))
    session.show(made, lambda: _shown_rule(made, is_tried=dry_run))


@rules.command("replace")
@api_command
def replace_rule(session: Session, rule: RuleRef, file: File, dry_run: DryRun = False) -> None:
    """Replace a rule."""
    found = find_rule(session.client, rule)
    verbs = session.client.notification_rules.dry_run if dry_run else session.client.notification_rules
    changed = verbs.replace(found.id, _read_rule(session.client, file))
    session.show(changed, lambda: _shown_rule(changed, is_tried=dry_run))


@rules.command("delete")
@api_command
def delete_rule(session: Session, rule: RuleRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a rule."""
    found = find_rule(session.client, rule)
    question = f'Delete the rule "{found.name}"?'
    session.delete(session.client.notification_rules, found, question, yes=yes, dry_run=dry_run)


def _change(
    session: Session,
    channel: str,
    change: Callable[[ChannelWrites[ChannelOut, Any], UUID], ChannelOut],
    *,
    dry_run: bool,
) -> None:
    found = find_channel(session.client, channel)
    changed = change(session.client.channels.dry_run if dry_run else session.client.channels, found.id)
    session.show(changed, lambda: channel_page(changed, session.now, is_tried=dry_run))


def channel_table(channels: Sequence[ChannelOut], now: datetime) -> Table[ChannelOut]:
    columns: list[Column[ChannelOut]] = [
        Column("NAME", lambda each: each.name, wrap=True),
        Column("KIND", lambda each: each.config.kind),
        Column("STATE", _state),
        Column("LAST SENT", lambda each: relative(each.delivered_at - now) if each.delivered_at else "never"),
        Column("PROBLEM", lambda each: each.disabled_reason or each.last_error or "", wrap=True),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=1),
    ]
    return Table(columns, channels, empty="No channels: failures are reported to no one.")


def channel_page(channel: ChannelOut, now: datetime, *, is_tried: bool = False) -> Block:
    config = channel.config.model_dump(mode="json", exclude_none=True)
    shown = [(name, _text(value)) for name, value in config.items() if name not in _hidden(config)]
    return stack(
        styled(channel.name, BOLD),
        facts(
            (
                ("id", str(channel.id)),
                ("kind", channel.config.kind),
                *shown,
                ("timezone", channel.timezone or None),
                ("state", _state(channel)),
                ("last sent", relative(channel.delivered_at - now) if channel.delivered_at else "never"),
                ("problem", channel.last_error and (channel.disabled_reason or channel.last_error)),
                *(("refused", f"{each.address}: {each.reason}") for each in channel.refused),
            )
        ),
        styled("Nothing was done.") if is_tried else None,
    )


def delivery_table(deliveries: Sequence[NoticeDeliveryOut], now: datetime) -> Table[NoticeDeliveryOut]:
    columns: list[Column[NoticeDeliveryOut]] = [
        Column("STATE", lambda each: styled(each.state, RED) if each.state == "dead" else each.state),
        Column("CHANNEL", lambda each: each.channel_name),
        Column("TITLE", lambda each: each.title, wrap=True),
        Column("WHEN", lambda each: relative(each.created_at - now)),
        Column("ANSWER", lambda each: each.last_error or each.last_answer or "", wrap=True, drop=2),
        Column("ID", lambda each: str(each.id), DIM, drop=1),
    ]
    return Table(columns, deliveries, empty="Nothing was sent.")


def rule_table(found: Sequence[NotificationRuleOut]) -> Table[NotificationRuleOut]:
    columns: list[Column[NotificationRuleOut]] = [
        Column("NAME", lambda each: each.name if each.enabled else f"{each.name} (off)", wrap=True),
        Column("EVENTS", lambda each: ", ".join(each.events), wrap=True),
        Column("JOBS", _scope_text, wrap=True),
        Column("CHANNELS", lambda each: str(len(each.channels)) if each.channels else "none: mutes"),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=1),
    ]
    return Table(columns, found, empty="No rules: failures go to the email channels of the workspace.")


def _shown_rule(rule: NotificationRuleOut, *, is_tried: bool) -> Block:
    return stack(rule_table([rule]), styled("Nothing was done.") if is_tried else None)


def rule_page(rule: NotificationRuleOut, names: Mapping[UUID, str]) -> Block:
    from foliot.wire.durations import write_duration

    quiet = rule.quiet_hours
    shown = [
        ("id", str(rule.id)),
        ("state", "on" if rule.enabled else "off"),
        ("events", ", ".join(rule.events)),
        ("jobs", _scope_text(rule)),
        ("channels", ", ".join(names.get(each, str(each)) for each in rule.channels) or "none: mutes"),
        ("recipients", ", ".join(rule.recipients) or None),
        ("after", f"{rule.after_n} failures" if rule.after_n > 1 else None),
        ("cooldown", write_duration(rule.cooldown) if rule.cooldown else None),
        (
            "quiet",
            f"{quiet.start:%H:%M} to {quiet.end:%H:%M} {quiet.timezone or ''}".rstrip() if quiet else None,
        ),
        ("attachments", ", ".join(rule.attachments) or None),
    ]
    return stack(styled(rule.name, BOLD), facts(shown))


def find_channel(client: Client, ref: str) -> ChannelOut:
    return find_named(client.channels.each(), ref, "channel", lambda each: each.name)


def find_rule(client: Client, ref: str) -> NotificationRuleOut:
    return find_named(client.notification_rules.each(), ref, "notification rule", lambda each: each.name)


def _await_answer(client: Client, sent: NoticeDeliveryOut, until: float) -> NoticeDeliveryOut:
    """Read the delivery until its first attempt has ended."""
    found = sent
    while monotonic() < until:
        found = client.deliveries.get(sent.id)
        if found.ended_at is not None or (found.attempts and found.state != "sending"):
            break
        pause(0.2)
    return found


def _test_table(answered: Sequence[NoticeDeliveryOut]) -> Table[NoticeDeliveryOut]:
    columns: list[Column[NoticeDeliveryOut]] = [
        Column("CHANNEL", lambda each: each.channel_name),
        Column("KIND", lambda each: each.channel_kind),
        Column("RESULT", lambda each: "sent" if each.state == "delivered" else styled("failed", RED)),
        Column("ANSWER", lambda each: each.last_answer or each.last_error or "no answer yet", wrap=True),
    ]
    return Table(columns, answered, empty="No enabled channels.")


def _hidden(config: Mapping[str, object]) -> set[str]:
    """The installation's mail server has its own security."""
    return {"kind"} if "host" in config else {"kind", "security"}


def _state(channel: ChannelOut) -> Any:
    if not channel.enabled:
        return "off"
    if channel.disabled_at is not None:
        return styled("disabled", RED)
    return styled("failing", RED) if channel.failing_since is not None else "on"


def _scope_text(rule: NotificationRuleOut) -> str:
    scope = rule.scope
    parts = [pluralize(len(scope.jobs), "job") if scope.jobs else "", *(f"tag {tag}" for tag in scope.tags)]
    parts += [f"queue {queue}" for queue in scope.queues]
    parts += [scope.q] if scope.q else []
    return ", ".join(filter(None, parts)) or "all"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _read_rule(client: Client, file: str) -> dict[str, object]:
    """Read a rule and replace names of channels by their ids."""
    found = read_object(file, "a rule with name, events and channels")
    named = found.get("channels")
    if isinstance(named, list):
        found["channels"] = [str(find_channel(client, str(each)).id) for each in named]
    return found
