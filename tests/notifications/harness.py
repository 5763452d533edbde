"""A workspace with jobs, channels, a notifier and a courier, driven step by step in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg

from foliot.channels.email import EmailChannel
from foliot.channels.parcel_sender import ParcelSender, SendNotice
from foliot.channels.webhook import WebhookChannel
from foliot.domain.access import Scope
from foliot.domain.ids import ChannelId, WorkspaceId
from foliot.domain.notifications.channel import ChannelDefinition, ChannelKind
from foliot.egress.client import Egress
from foliot.engine.courier import Courier
from foliot.services.notifications import channels
from foliot.services.notifications.dispatch import NotifierPolicy, dispatch
from foliot.services.secrets.vault import Vault
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import ANA, a_vault
from tests.engine.webhook_receiver import LOOPBACK, work
from tests.services.workspace_harness import WorkspaceHarness

POLICY = NotifierPolicy("https://foliot.example")


@dataclass
class Office:
    database: Database
    clock: ManualClock
    workspace: WorkspaceId
    owner: psycopg.Connection[Any]
    vault: Vault = field(default_factory=a_vault)
    policy: NotifierPolicy = POLICY
    senders: dict[ChannelKind, SendNotice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = WorkspaceHarness(self.database, self.clock, self.workspace, self.owner)
        self.egress = Egress(LOOPBACK)
        self.senders.setdefault(ChannelKind.EMAIL, EmailChannel(self.egress).send)
        self.courier = Courier(
            self.database,
            ParcelSender(WebhookChannel(self.egress, self.clock), self.senders).send,
            self.vault,
        )

    @property
    def scope(self) -> Scope:
        return Scope(self.workspace, ANA)

    async def channel(
        self, kind: ChannelKind, config: Mapping[str, Any], name: str | None = None, receiver: str = "peer"
    ) -> ChannelId:
        definition = ChannelDefinition(name or kind.value, kind, config, receiver)
        return await channels.create(self.database, self.scope, definition)

    async def mail_channel(self, port: int, *to: str, name: str = "mail", **config: Any) -> ChannelId:
        fixed = {
            "host": "127.0.0.1",
            "port": port,
            "security": "none",
            "sender": "Foliot <foliot@example.com>",
        }
        return await self.channel(
            ChannelKind.EMAIL, {**fixed, "to": list(to or ("ops@example.com",)), **config}, name
        )

    async def notify(self) -> int:
        """Dispatch all notices and send what is due; return how many messages were planned."""
        planned = 0
        while True:
            done = await dispatch(self.database, self.policy)
            planned += done.messages
            if not done.is_more:
                break
        await work(self.courier)
        return planned

    async def wait(self, by: timedelta) -> int:
        self.clock.advance(by)
        return await self.notify()

    def sql(self, text: str, *params: object) -> list[tuple[Any, ...]]:
        return self.owner.execute(text, params).fetchall()

    async def close(self) -> None:
        await self.courier.close()
        self.egress.close()
