"""The notifier turns facts into messages: a step processes what every workspace has to say, and the courier sends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.hints import Announce, Hint
from foliot.services.identity import installation
from foliot.services.notifications.dispatch import NotifierPolicy, dispatch
from foliot.services.notifications.event_feed import BATCH, feed

CHECK_EVERY = 2.0  # seconds: the facts come without a hint
LATE = timedelta(milliseconds=2)


class Notifier:
    def __init__(
        self,
        database: Database,
        announce: Announce,
        policy: Callable[[], NotifierPolicy],
        chance: Random | None = None,
    ) -> None:
        self._database = database
        self._announce = announce
        self._policy = policy
        self._chance = chance or SystemRandom()

    async def step(self) -> timedelta:
        if (await installation.state(self._database)).is_held:
            return about(CHECK_EVERY, self._chance)
        fed = await feed(self._database)
        done = await dispatch(self._database, self._policy())
        if done.messages or fed:
            self._announce(Hint.OUTBOX)
        if done.is_more or fed == BATCH:
            return AT_ONCE
        check = about(CHECK_EVERY, self._chance)
        # What is due and was not processed has failed: it is tried again at the next check.
        return min(done.until_next + LATE, check) if done.until_next else check
