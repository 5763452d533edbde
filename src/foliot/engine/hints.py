"""Listening: hints from other processes wake the loops they concern. Without them every loop still looks by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from foliot.services import Database
from foliot.services.hints import Hint, listen

log = logging.getLogger(__name__)

WHILE_DEAF = timedelta(minutes=5)


class HintListener:
    """One direct connection. Run its step in a loop without a time limit: it lasts as long as the connection does."""

    def __init__(self, database: Database, url: str, wakes: Mapping[Hint, Callable[[], None]]) -> None:
        self._database = database
        self._url = url
        self._wakes = {str(hint): wake for hint, wake in wakes.items()}
        self._has_told = False

    async def step(self) -> timedelta:
        await listen(self._database, self._url, self._hear)
        if not self._has_told:
            advice = "set FOLIOT_LISTEN_URL to the server itself; until then work is found by looking"
            log.warning("hints.deaf", extra={"advice": advice})
            self._has_told = True
        return WHILE_DEAF

    def _hear(self, word: str) -> None:
        if wake := self._wakes.get(word):
            wake()
