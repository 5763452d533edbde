"""LISTEN and NOTIFY: hints that something may have changed. A lost hint delays work and loses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection

from foliot.storage.errors import unavailable
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

CHANNEL = "foliot"


async def notify(tx: Tx, hint: str) -> None:
    await tx.execute(sql.hints.notify, {"channel": CHANNEL, "hint": hint})


class HintConnection:
    """A session that listens. Behind a transaction pooler it receives nothing, without an error."""

    def __init__(self, connection: AsyncConnection[tuple[object, ...]]) -> None:
        self._connection = connection

    async def receive(self, within: float) -> list[str]:
        """Wait for hints and return them; none when the time is up. A dead connection is an error."""
        received = [each.payload async for each in self._connection.notifies(timeout=within, stop_after=1)]
        if not received:
            await self._connection.execute("SELECT 1")  # a broken connection is silent, too
        return received


@asynccontextmanager
async def open_listener(url: str) -> AsyncIterator[HintConnection]:
    try:
        connection = await AsyncConnection.connect(
            url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=5,
            fallback_application_name="foliot-hints",
            tcp_user_timeout=15_000,
        )
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            yield HintConnection(connection)
    except psycopg.Error as error:
        raise unavailable(error) or error from error
