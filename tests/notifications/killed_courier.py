"""A courier in a process of its own that is killed after it has sent and before it has recorded: `python -m … URL INSTANT`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import datetime

from foliot.channels.email import EmailChannel
from foliot.channels.parcel_sender import ParcelSender
from foliot.channels.webhook import WebhookChannel
from foliot.domain.delivery import Came
from foliot.domain.notifications.channel import ChannelKind
from foliot.egress.client import Egress
from foliot.engine.courier import Courier
from foliot.services.messaging.courier import Parcel
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.engine.webhook_receiver import LOOPBACK, work


async def main(url: str, at: str) -> None:
    egress = Egress(LOOPBACK)
    sender = ParcelSender(WebhookChannel(egress), {ChannelKind.EMAIL: EmailChannel(egress).send})

    async def send_and_die(parcel: Parcel) -> Came:
        await sender.send(parcel)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")

    async with Database(url, clock=ManualClock(datetime.fromisoformat(at))) as database:
        await work(Courier(database, send_and_die))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
