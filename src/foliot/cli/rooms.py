"""`foliot rooms`: where message jobs leave word, and people and agents answer. ROOM is a key, a name or an id."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import Session, Yes, api_command, confirm, to_json
from foliot.cli.times import local_zone
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.rooms import RoomOut

app = typer.Typer(
    help="Rooms: where message jobs leave word. ROOM is a key, a name or an id.", no_args_is_help=True
)
Called = Annotated[
    str,
    typer.Argument(
        metavar="ROOM", help="Its key, its name, its id, or the beginning of it.", show_default=False
    ),
]
SHOWN = 20  # messages


@app.command("list")
@api_command
def list_rooms(session: Session, limit: Limit = 50, cursor: Cursor = None, everything: All = False) -> None:
    """Rooms, newest first."""
    from foliot.cli.room_rendering import room_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.rooms.list(limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: room_list(found, session.now), next_cursor=next_cursor)


@app.command()
@api_command
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="What people call it.", show_default=False)],
    key: Annotated[str | None, typer.Option(help="What jobs may name it by.", metavar="KEY")] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Id of an agent that may see it; may be repeated.", metavar="ID")
    ] = None,
) -> None:
    """Make a room."""
    from foliot.cli.room_rendering import room_page

    made = session.client.rooms.create(name, key=key, agents=agent or ())
    session.show(made, lambda: room_page(made, (), local_zone(), session.now))


@app.command()
@api_command
def show(
    session: Session,
    room: Called,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=0, max=200, help="At most so many messages.", metavar="N")
    ] = SHOWN,
) -> None:
    """One room, and the newest of what was written in it."""
    from foliot.cli.room_rendering import room_page

    found = find_room(session.client, room)
    after = max(0, found.last_seq - limit)  # numbers may be missing, so there are at most so many
    newest = session.client.rooms.messages(found.id, after=after, limit=limit).items if limit else []
    whole = {**to_json(found), "messages": [to_json(each) for each in newest]}
    session.show(whole, lambda: room_page(found, newest, local_zone(), session.now))


@app.command()
@api_command
def send(
    session: Session,
    room: Called,
    text: Annotated[str, typer.Argument(help="What to write; - is standard input.", show_default=False)],
    event: Annotated[
        bool, typer.Option("--event", help="As word of an event, which asks for no reply.")
    ] = False,
) -> None:
    """Write in a room."""
    from foliot.cli.input_files import read_text
    from foliot.cli.room_rendering import message_line

    said = read_text(text, "TEXT") if text == "-" else text
    sent = session.client.rooms.post(
        find_room(session.client, room).id, said, kind="system_event" if event else "message"
    )
    session.show(sent, lambda: message_line(sent, local_zone()))


@app.command()
@api_command
def follow(
    session: Session,
    room: Called,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Begin behind this number, instead of with the newest.", metavar="SEQ"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Stop after so many.", metavar="N")
    ] = None,
) -> None:
    """What is written from now on, until Ctrl-C. With -o json a line is a JSON object."""
    from foliot.cli.room_rendering import message_line

    found = find_room(session.client, room)
    zone = local_zone()
    if limit is None:
        session.note("Following. Ctrl-C ends it.")
    coming = session.client.rooms.follow(found.id, after=found.last_seq if after is None else after)
    for message in islice(coming, limit):
        session.show_line(message, lambda message=message: message_line(message, zone))  # type: ignore[misc]


@app.command()
@api_command
def webhook(
    session: Session,
    room: Called,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="Where to send its messages; what there is, where left out.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        str | None, typer.Option(help="Name of the secret to sign with.", metavar="NAME")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Send nothing any more.")] = False,
) -> None:
    """Send the messages of a room to an address as they come, or see how that fares."""
    from foliot.cli.room_rendering import room_page

    if (remove and address is not None) or (secret is not None and address is None):
        raise Invalid("Give an address, with or without a secret, or --remove.")
    found = find_room(session.client, room)
    if address is not None:
        found = session.client.rooms.set_webhook(found.id, address, secret=secret)
    elif remove:
        found = session.client.rooms.remove_webhook(found.id)
    session.show(found, lambda: room_page(found, (), local_zone(), session.now))


@app.command()
@api_command
def deliveries(
    session: Session,
    room: Called,
    dead: Annotated[bool, typer.Option("--dead", help="Only those that were given up.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """What the webhook of a room sends, the newest messages first."""
    from foliot.cli.room_rendering import delivery_list

    room_id = find_room(session.client, room).id
    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.rooms.deliveries(
            room_id, state="dead" if dead else None, limit=n, cursor=at
        ),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: delivery_list(found, session.now, dead=dead), next_cursor=next_cursor)


@app.command()
@api_command
def redeliver(
    session: Session,
    room: Called,
    delivery: Annotated[
        list[str] | None,
        typer.Argument(help="Ids; all that were given up, where left out.", show_default=False),
    ] = None,
) -> None:
    """Send again what was given up."""
    from foliot.cli.tables import cell

    answer = session.client.rooms.redeliver(find_room(session.client, room).id, delivery or None)
    session.show(answer, lambda: cell(f"Sending {answer.redelivered:,} again."))


@app.command()
@api_command
def delete(session: Session, room: Called, yes: Yes = False) -> None:
    """Delete a room with everything that was written in it."""
    from foliot.cli.tables import cell

    found = find_room(session.client, room)
    confirm(f'Delete the room "{found.name}" with all its messages?', yes=yes)
    session.client.rooms.delete(found.id)
    session.show({"deleted": str(found.id)}, lambda: cell(f"Deleted {found.name}."))


def find_room(client: Client, called: str) -> RoomOut:
    from foliot.wire.rooms import KEY

    low = called.strip().lower()
    # There may be a room for each run: all of them are looked through only where nothing shorter finds it.
    found = client.rooms.list(key=called).items if KEY.fullmatch(called) else []
    if not found:
        there = list(client.rooms.each())
        found = [each for each in there if called in (each.name, each.key)]
        if not found and len(low) >= 4:
            found = [each for each in there if str(each.id).startswith(low)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(f'"{called}" could be any of {len(found)} rooms.', hint="Use the id of one of them.")
    raise NotFound(f'There is no room called "{called}".', hint="See them all with `foliot rooms list`.")
