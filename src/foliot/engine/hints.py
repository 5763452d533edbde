"""Listen for hints from other processes and wake the loops they concern. Without hints every loop still checks by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from foliot.services import Database
from foliot.services.hints import Hint, listen

log = logging.getLogger(__name__)

RETRY_AFTER = timedelta(minutes=5)  # where LISTEN does not work


class HintListener:
    """One direct connection. Run its step in a loop without a time limit: it lasts as long as the connection does."""

    def __init__(self, database: Database, url: str, wakes: Mapping[Hint, Callable[[], None]]) -> None:
        self._database = database
        self._url = url
        self._wakes = {str(hint): wake for hint, wake in wakes.items()}
        self._has_warned = False

    async def step(self) -> timedelta:
        await listen(self._database, self._url, self._on_hint)
        if not self._has_warned:
            advice = "set FOLIOT_LISTEN_URL to the server itself; until then work is found by polling"
            log.warning("hints.not_received", extra={"advice": advice})
            self._has_warned = True
        return RETRY_AFTER

    def _on_hint(self, hint: str) -> None:
        if wake := self._wakes.get(hint):
            wake()
