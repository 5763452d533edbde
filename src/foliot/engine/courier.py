"""The courier: takes what is due from the outbox, sends each with a hand of its own, and says what came of it.

The step only takes. Sending goes on beside it, so a receiver that hangs keeps one hand and delays nobody else's. What one workspace may
keep of a courier's hands is bounded, and of these what one of its receivers may keep.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.domain.delivery import Came
from foliot.domain.errors import Unavailable
from foliot.domain.ids import WorkspaceId
from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.identity import installation
from foliot.services.messaging.courier import CourierCapacity, OutgoingMessage, record, take
from foliot.services.secrets.vault import Vault

log = logging.getLogger(__name__)

Send = Callable[[OutgoingMessage], Awaitable[Came]]
CHECK_EVERY = 5.0  # seconds; the truth, should a hint get lost
LATE = timedelta(milliseconds=2)  # who wakes early finds nothing
HANDS, OF_ONE_WORKSPACE, OF_ONE_RECEIVER = 40, 10, 4
WRITING = 2  # records at once: the connections are there for firing, too
LAST_WORDS_WITHIN = 1.0  # seconds for what is being sent when we stop


class Courier:
    def __init__(
        self, database: Database, send: Send, vault: Vault | None = None, chance: Random | None = None
    ) -> None:
        self._database = database
        self._send = send
        self._vault = vault
        self._chance = chance or SystemRandom()
        self._writing = asyncio.Semaphore(WRITING)
        self._sending: set[asyncio.Task[None]] = set()
        self._busy: Counter[tuple[WorkspaceId, str]] = Counter()
        self.wake: Callable[[], None] = lambda: None  # called whenever a hand is free again

    @property
    def is_sending(self) -> bool:
        return bool(self._sending)

    async def step(self) -> timedelta:
        if (await installation.state(self._database)).is_held:
            return about(CHECK_EVERY, self._chance)  # a restored installation waits for its operator
        hands = CourierCapacity(HANDS - len(self._sending), OF_ONE_WORKSPACE, OF_ONE_RECEIVER, +self._busy)
        came = await take(self._database, hands, self._vault)
        for parcel in came.parcels:
            self._begin(parcel)
        if came.taken and len(self._sending) < HANDS:
            return AT_ONCE  # there may be more that others' shares did not let through
        check = about(CHECK_EVERY, self._chance)
        return check if came.until_next is None else min(came.until_next + LATE, check)

    async def close(self) -> None:
        """What is not done soon is repeated by whoever looks when its lease has ended."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=LAST_WORDS_WITHIN)
        for task in self._sending:
            task.cancel()
        if self._sending:
            await asyncio.wait(self._sending)

    def _begin(self, parcel: OutgoingMessage) -> None:
        self._busy[parcel.taken.workspace_id, parcel.taken.receiver] += 1
        task = asyncio.create_task(self._deliver(parcel), name=f"delivery {parcel.taken.id}")
        self._sending.add(task)
        task.add_done_callback(lambda task: self._free(task, parcel))

    async def _deliver(self, parcel: OutgoingMessage) -> None:
        try:
            came = await self._send(parcel)
            async with self._writing:
                await record(self._database, parcel.taken, came)
        except Unavailable as error:
            log.warning("delivery.unrecorded", extra={"delivery": str(parcel.taken.id), "reason": str(error)})
        except Exception:  # one that cannot be sent at all must not end the others
            log.exception("delivery.broken", extra={"delivery": str(parcel.taken.id)})

    def _free(self, task: asyncio.Task[None], parcel: OutgoingMessage) -> None:
        self._sending.discard(task)
        self._busy[parcel.taken.workspace_id, parcel.taken.receiver] -= 1
        self.wake()
