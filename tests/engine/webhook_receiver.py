"""A receiver of webhooks on a socket, and rooms that send to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from foliot.channels.parcel_sender import ParcelSender
from foliot.channels.webhook import WebhookChannel
from foliot.domain.access import KeyHolder, MemberRole, Principal, PrincipalKind
from foliot.domain.addresses import networks
from foliot.domain.ids import KeyId, PrincipalId, RoomId, WorkspaceId
from foliot.domain.rooms import Hook, Room
from foliot.egress.client import Egress
from foliot.engine.courier import Courier
from foliot.engine.loop import AT_ONCE
from foliot.services.identity.authentication import Caller
from foliot.services.messaging import rooms
from foliot.services.messaging.rooms import NewRoom, RoomChanges
from foliot.services.secrets.vault import Vault
from foliot.storage.identity import members, workspaces
from foliot.storage.tx import Database, Role
from foliot.testing.clock import ManualClock

LOOPBACK = networks(("127.0.0.0/8",))


class ReceivedWebhook(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return str(json.loads(self.body)["data"]["text"])


@dataclass
class Receiver:
    """Answers with what stands in `answers`, then with 204; with None it never answers."""

    port: int = 0
    came: list[ReceivedWebhook] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.came]


@asynccontextmanager
async def receive_webhooks(*answers: str | None, port: int = 0) -> AsyncIterator[Receiver]:
    receiver = Receiver(answers=list(answers))
    open_: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.add(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = [line.partition(": ") for line in head.splitlines()[1:] if line]
        headers = {name.lower(): value for name, _, value in lines}
        receiver.came.append(
            ReceivedWebhook(headers, await reader.readexactly(int(headers["content-length"])))
        )
        answer = receiver.answers.pop(0) if receiver.answers else "204 Fine"
        if answer is None:
            await reader.read()  # until the caller hangs up
        else:
            writer.write(f"HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
        for each in open_:
            each.close()


@dataclass
class WebhookHarness:
    """A workspace whose rooms have webhooks, and couriers for it."""

    database: Database
    clock: ManualClock
    caller: Caller
    vault: Vault
    couriers: list[Courier] = field(default_factory=list)

    async def room(self, url: str, secret: str | None = None, name: str = "support") -> RoomId:
        target = url.split("/")[2]
        return (await rooms.create(self.database, self.caller, NewRoom(name), Hook(url, target, secret))).id

    async def post(self, room_id: RoomId, *texts: str) -> None:
        for text in texts:
            await rooms.post(self.database, self.caller, room_id, text)

    async def look(self, room_id: RoomId) -> Room:
        return await rooms.get(self.database, self.caller, room_id)

    async def point(self, room_id: RoomId, url: str) -> None:
        hook = Hook(url, url.split("/")[2])
        await rooms.change(self.database, self.caller, room_id, RoomChanges(webhook=lambda before: hook))

    def courier(self, database: Database | None = None, egress: Egress | None = None) -> Courier:
        channel = WebhookChannel(egress or Egress(LOOPBACK), self.clock)
        made = Courier(database or self.database, ParcelSender(channel, {}).send, self.vault)
        self.couriers.append(made)
        return made

    async def close(self) -> None:
        for each in self.couriers:
            await each.close()


async def work(courier: Courier) -> None:
    """Until nothing is due that it could send: each step, and what was being sent."""
    woken = asyncio.Event()
    courier.wake = woken.set
    while True:
        woken.clear()
        nap = await courier.step()
        if courier.is_sending:
            await asyncio.wait_for(woken.wait(), 30)
        elif (
            nap > AT_ONCE and not woken.is_set()
        ):  # a delivery that ended during the step may let the next one go
            return


async def admitted(database: Database, workspace_id: WorkspaceId) -> Caller:
    principal = Principal(PrincipalId(uuid4()), workspace_id, PrincipalKind.USER, "ana", MemberRole.ADMIN)
    async with database.tx(Role.APP, workspace_id) as tx:
        await members.insert_principal(tx, principal)
        home = await workspaces.get(tx, workspace_id)
    assert home is not None
    return Caller(KeyHolder(principal, KeyId(uuid4()), frozenset(), None), home, tx.now)


def facts(room: Room) -> dict[str, Any]:
    """How its webhook fares."""
    assert room.webhook is not None
    hook = room.webhook
    return {"seq": hook.delivered_seq, "failing": hook.failing_since is not None, "error": hook.error}
