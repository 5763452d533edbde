"""Hints between processes over LISTEN/NOTIFY: `timers` (a planned time may have moved nearer), `ready` (work may be
ready), `keys` (keys, members or workspaces changed), `cancels` (a run was cancelled or its lease was taken) and `outbox`
(a delivery is due).

A hint only shortens a wait: every loop also checks by itself from time to time.

Why: docs/decisions/300-loops-and-hints.md
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import StrEnum
from secrets import token_hex

from foliot.clock import monotonic
from foliot.storage import hints
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

PROBE_WITHIN = 3.0  # seconds until the probe must come back
CHECK_EVERY = 30.0


class Hint(StrEnum):
    TIMERS = "timers"
    READY = "ready"
    KEYS = "keys"
    CANCELS = "cancels"
    OUTBOX = "outbox"


Announce = Callable[[Hint], None]


class Announcer:
    """Send hints, and repeat the same hint within `pause` seconds only once, at the end of the pause.

    NOTIFY takes a lock that all commits of the server share, so it must not follow every commit.
    """

    def __init__(self, database: Database, pause: float = 0.05) -> None:
        self._database = database
        self._pause = pause
        self._owed: set[Hint] = set()
        self._saying: asyncio.Task[None] | None = None

    def announce(self, hint: Hint) -> None:
        self._owed.add(hint)
        if self._saying is None or self._saying.done():
            self._saying = asyncio.create_task(self._say_all())

    async def _say_all(self) -> None:
        while self._owed:
            said, self._owed = self._owed, set()
            try:
                for hint in sorted(said):
                    await say(self._database, hint)
            except Exception as error:  # noqa: BLE001  # it was only a hint
                log.debug("hint.lost", extra={"reason": str(error)})
            await asyncio.sleep(self._pause)

    async def close(self) -> None:
        if self._saying is not None:
            self._saying.cancel()
            await asyncio.wait([self._saying])


async def say(database: Database, word: str) -> None:
    """Notify in a transaction that does not wait for the disk."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await hints.notify(tx, word)


async def listen(database: Database, url: str, heard: Callable[[str], None]) -> None:
    """Call `heard` with each word until the connection breaks. Return at once when LISTEN does not work: a pooler accepts
    LISTEN and delivers nothing, so a probe must come back first.
    """
    probe = f"probe-{token_hex(8)}"
    async with hints.open_listener(url) as connection:
        await say(database, probe)
        if not await _receives_probe(connection, probe, heard):
            return
        while True:
            for word in await connection.receive(CHECK_EVERY):
                heard(word)


async def _receives_probe(connection: hints.HintConnection, probe: str, heard: Callable[[str], None]) -> bool:
    until = monotonic() + PROBE_WITHIN
    while (left := until - monotonic()) > 0:
        words = await connection.receive(left)
        for word in words:
            heard(word)
        if probe in words:
            return True
    return False
