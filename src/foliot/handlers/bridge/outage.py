"""Since when an engine's broker cannot be reached, and what is said of it."""

from __future__ import annotations

import logging
from datetime import datetime

from foliot.clock import Clock, SystemClock
from foliot.handlers.bridge.engine import Unreachable

log = logging.getLogger(__name__)


class Outage:
    def __init__(self, engine: str, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._since: datetime | None = None
        self._why = ""

    @property
    def sentence(self) -> str | None:
        """None while the broker answers."""
        if self._since is None:
            return None
        since = self._since.strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"The broker of {self._engine} is unreachable since {since}: {self._why}."

    def noticed(self, error: Unreachable) -> bool:
        """Whether this is news."""
        is_news = self._since is None
        self._since, self._why = self._since or self._clock.now(), str(error)
        if is_news:
            log.warning("broker.unreachable", extra={"engine": self._engine, "reason": self._why})
        return is_news

    def is_over(self) -> None:
        if self._since is not None:
            log.info("broker.reached", extra={"engine": self._engine, "since": self._since.isoformat()})
            self._since = None
