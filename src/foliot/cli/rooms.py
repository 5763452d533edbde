"""`foliot rooms`: chat rooms, where message jobs write and people and agents answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.input_files import read_text
from foliot.cli.lookup import find_named
from foliot.cli.output import pluralize
from foliot.cli.session import (
    FIRST_50,
    DryRun,
    Paging,
    Session,
    Yes,
    api_command,
    to_json,
    view_command,
)
from foliot.cli.tables import (
    BOLD,
    DIM,
    SHORT_ID,
    Block,
    Column,
    StyledLine,
    Table,
    facts,
    line,
    stack,
    styled,
)
from foliot.cli.times import load_zone, local_time_relative, local_zone, relative_short
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.rooms import DeliveryOut, MessageOut, RoomOut, WebhookOut

app = typer.Typer(
    help="Chat rooms, where message jobs write. ROOM is a key, a name or an id.", no_args_is_help=True
)
RoomRef = Annotated[
    str,
    typer.Argument(metavar="ROOM", help="Room key, name, id, or beginning of the id.", show_default=False),
]
DEFAULT_MESSAGES = 20


@app.command("list")
@api_command
def list_rooms(session: Session, paging: Paging = FIRST_50) -> None:
    """List rooms, newest first."""
    found = paging.fetch(session.client.rooms.list)
    session.show_list(found, lambda: room_table(found.items, session.now))


@app.command()
@api_command
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="Display name.", show_default=False)],
    key: Annotated[str | None, typer.Option(help="Key that jobs refer to.", metavar="KEY")] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Id of an agent that may see it; repeatable.", metavar="ID")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a room."""
    if dry_run:
        tried = session.client.rooms.dry_run.create(name, key=key, agents=agent or ())
        session.show_dry_run(tried, f"Would create the room {tried.name}")
        return
    made = session.client.rooms.create(name, key=key, agents=agent or ())
    session.show(made, lambda: room_page(made, (), local_zone(), session.now))


@app.command()
@api_command
def show(
    session: Session,
    room: RoomRef,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=0, max=200, help="Show at most N messages.", metavar="N")
    ] = DEFAULT_MESSAGES,
) -> None:
    """Show a room and its newest messages."""
    found = find_room(session.client, room)
    after = max(0, found.last_seq - limit)  # numbers may be missing: this is an upper bound
    newest = session.client.rooms.messages(found.id, after=after, limit=limit).items if limit else []
    whole = {**to_json(found), "messages": [to_json(each) for each in newest]}
    session.show(whole, lambda: room_page(found, newest, local_zone(), session.now))


@app.command()
@api_command
def send(
    session: Session,
    room: RoomRef,
    text: Annotated[str, typer.Argument(help="The message; - is standard input.", show_default=False)],
    event: Annotated[
        bool, typer.Option("--event", help="Send it as a system event, which expects no reply.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Send a message to a room."""
    message = read_text(text, "TEXT") if text == "-" else text
    found, verbs = find_room(session.client, room), session.client.rooms
    sent = (verbs.dry_run if dry_run else verbs).post(
        found.id, message, kind="system_event" if event else "message"
    )
    if dry_run:
        session.show_dry_run(sent, f"Would send message {sent.seq:,} to {found.name}")
        return
    session.show(sent, lambda: message_line(sent, local_zone()))


@app.command()
@api_command
def follow(
    session: Session,
    room: RoomRef,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Start after this message number instead of the newest.", metavar="SEQ"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Stop after N messages.", metavar="N")
    ] = None,
) -> None:
    """Print new messages as they come, until Ctrl-C. With -o json each line is a JSON object."""
    found = find_room(session.client, room)
    zone = local_zone()
    if limit is None:
        session.note_stream("Following the room. Press Ctrl-C to stop.")
    stream = session.client.rooms.follow(found.id, after=found.last_seq if after is None else after)
    for message in islice(stream, limit):
        session.show_line(message, lambda message=message: message_line(message, zone))  # type: ignore[misc]


@app.command()
@api_command
def webhook(
    session: Session,
    room: RoomRef,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="Where to send messages. Without it, show the present webhook.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        str | None, typer.Option(help="Name of the secret to sign with.", metavar="NAME")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the webhook.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Send the messages of a room to a URL, or show how its webhook is doing."""
    if (remove and address is not None) or (secret is not None and address is None):
        raise Invalid("Use URL, with or without --secret, or --remove.")
    found = find_room(session.client, room)
    verbs = session.client.rooms.dry_run if dry_run else session.client.rooms
    if address is not None:
        found = verbs.set_webhook(found.id, address, secret=secret)
    elif remove:
        found = verbs.remove_webhook(found.id)
    if dry_run:
        what = "remove the webhook of" if remove else "change nothing in"
        session.show_dry_run(
            found, f"Would {what if address is None else f'send to {address} the messages of'} {found.name}"
        )
        return
    session.show(found, lambda: room_page(found, (), local_zone(), session.now))


@app.command()
@view_command
def deliveries(
    session: Session,
    room: RoomRef,
    dead: Annotated[bool, typer.Option("--dead", help="Only failed deliveries.")] = False,
    paging: Paging = FIRST_50,
) -> None:
    """List the deliveries of a room's webhook, newest message first."""
    room_id = find_room(session.client, room).id
    found = paging.fetch(session.client.rooms.deliveries, room_id, state="dead" if dead else None)
    session.show_list(found, lambda: delivery_table(found.items, session.now, dead=dead))


@app.command()
@api_command
def redeliver(
    session: Session,
    room: RoomRef,
    delivery: Annotated[
        list[str] | None,
        typer.Argument(help="Delivery ids. Default: all failed deliveries.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Send failed deliveries again."""
    verbs = session.client.rooms.dry_run if dry_run else session.client.rooms
    answer = verbs.redeliver(find_room(session.client, room).id, delivery or None)
    count = pluralize(answer.redelivered, "delivery", "deliveries")
    if dry_run:
        session.show_dry_run(answer, f"Would send {count} again")
        return
    session.show(answer, lambda: styled(f"Sending {count} again."))


@app.command()
@api_command
def delete(session: Session, room: RoomRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a room and all its messages."""
    found = find_room(session.client, room)
    question = f'Delete the room "{found.name}" and all its messages?'
    messages = f"Would delete {found.name} and {pluralize(found.last_seq, 'message')}. Nothing was done."
    session.delete(
        session.client.rooms, found, question, lambda _: styled(messages), yes=yes, dry_run=dry_run
    )


def room_table(rooms: Sequence[RoomOut], now: datetime) -> Table[RoomOut]:
    columns: list[Column[RoomOut]] = [
        Column("NAME", lambda each: each.name, wrap=True),
        Column("KEY", lambda each: each.key, DIM, wrap=True, drop=2),
        Column("MESSAGES", lambda each: f"{each.last_seq:,}"),
        Column(
            "LAST",
            lambda each: relative_short(each.last_message_at, now) if each.last_message_at else "never",
        ),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=1),
    ]
    empty = 'No rooms. Create one with `foliot rooms create "Support" --key support`.'
    return Table(columns, rooms, empty=empty)


def room_page(room: RoomOut, messages: Sequence[MessageOut], zone: str, now: datetime) -> Block:
    details = facts(
        (
            ("id", str(room.id)),
            ("key", room.key),
            ("agents", ", ".join(map(str, room.agents)) or "none: only people and services see it"),
            ("job", str(room.job_id) if room.job_id else None),
            ("created", local_time_relative(room.created_at, zone, now)),
            ("messages", f"{room.last_seq:,}"),
            *(_webhook_facts(room.webhook, zone, now) if room.webhook else ()),
        )
    )
    return stack(styled(room.name, BOLD), details, *(message_line(each, zone) for each in messages))


def delivery_table(deliveries: Sequence[DeliveryOut], now: datetime, *, dead: bool) -> Table[DeliveryOut]:
    columns: list[Column[DeliveryOut]] = [
        Column("SEQ", lambda each: f"{each.seq:,}"),
        Column("STATE", lambda each: each.state),
        Column("ATTEMPTS", lambda each: each.attempts),
        Column("ENDED OR NEXT", lambda each: _ended_or_next(each, now)),
        Column("LAST ERROR", lambda each: each.last_error, DIM, wrap=True, drop=1),
        Column("ID", lambda each: str(each.id), DIM),
    ]
    empty = "No deliveries. `foliot rooms webhook ROOM URL` sets up a webhook."
    return Table(columns, deliveries, empty="No failed deliveries." if dead else empty)


def message_line(message: MessageOut, zone: str) -> StyledLine:
    sender = message.sender
    name = sender.name or ("job" if message.job_id and sender.kind == "user" else sender.kind)
    at = f"{message.sent_at.astimezone(load_zone(zone)):%Y-%m-%d %H:%M:%S}  "
    style = DIM if message.kind == "system_event" else ""
    return line((at, DIM), (name, BOLD), "  ", (message.text.rstrip("\n"), style))


def find_room(client: Client, ref: str) -> RoomOut:
    from foliot.wire.rooms import KEY

    # Each run may have its own room: list all rooms only if the key does not match.
    found = list(client.rooms.list(key=ref).items) if KEY.fullmatch(ref) else []
    return found[0] if found else find_named(client.rooms.each(), ref, "room", lambda each: each.name)


def _ended_or_next(delivery: DeliveryOut, now: datetime) -> str | None:
    at = delivery.ended_at or delivery.next_attempt_at
    return None if at is None else relative_short(at, now)


def _webhook_facts(webhook: WebhookOut, zone: str, now: datetime) -> tuple[tuple[str, str | None], ...]:
    signed = f"signed with {webhook.secret.secret}" if webhook.secret else "unsigned"
    failing, stopped = (
        None if at is None else local_time_relative(at, zone, now)
        for at in (webhook.failing_since, webhook.stopped_at)
    )
    return (
        ("webhook", f"{webhook.url} ({signed})"),
        ("received", None if webhook.delivered_seq is None else f"up to message {webhook.delivered_seq:,}"),
        ("failing since", failing),
        ("error", webhook.last_error),
        ("stopped", stopped),
    )
