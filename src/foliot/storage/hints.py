"""LISTEN and NOTIFY: hints that something may have changed. Losing one costs time, never truth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection

from foliot.storage.errors import unavailable
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

CHANNEL = "foliot"


async def notify(tx: Tx, word: str) -> None:
    await tx.execute(sql.hints.notify, {"channel": CHANNEL, "word": word})


class HintListener:
    """A session of its own that listens. Behind a pooler it hears nothing, and nothing tells it so."""

    def __init__(self, connection: AsyncConnection[tuple[object, ...]]) -> None:
        self._connection = connection

    async def hear(self, within: float) -> list[str]:
        """The words that came, as soon as there is one; none when the time is up. A dead connection is an error."""
        heard = [each.payload async for each in self._connection.notifies(timeout=within, stop_after=1)]
        if not heard:
            await self._connection.execute("SELECT 1")  # silence looks the same on a cut cable
        return heard


@asynccontextmanager
async def open_listener(url: str) -> AsyncIterator[HintListener]:
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
            yield HintListener(connection)
    except psycopg.Error as error:
        raise unavailable(error) or error from error
