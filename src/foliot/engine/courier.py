"""The courier takes due deliveries from the outbox, sends them and records the outcomes.

The step only takes. Each delivery is sent by a task of its own, so a receiver that hangs delays no other delivery. The tasks that one
workspace may use are bounded, and of these the tasks that one receiver may use.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.domain.delivery import Came, Unanswered
from foliot.domain.errors import Unavailable
from foliot.domain.ids import WorkspaceId
from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.identity import installation
from foliot.services.messaging.courier import CourierCapacity, Parcel, record, take
from foliot.services.secrets.vault import Vault

log = logging.getLogger(__name__)

Send = Callable[[Parcel], Awaitable[Came]]
CHECK_EVERY = 5.0  # seconds, should a hint get lost
LATE = timedelta(milliseconds=2)  # waking early would find nothing
DELIVERIES, OF_ONE_WORKSPACE, OF_ONE_RECEIVER = 40, 10, 4  # at once
WRITES = 2  # at once: firing needs connections too
FINISH_WITHIN = 1.0  # seconds for deliveries under way at a stop


class Courier:
    def __init__(
        self, database: Database, send: Send, vault: Vault | None = None, chance: Random | None = None
    ) -> None:
        self._database = database
        self._send = send
        self._vault = vault
        self._chance = chance or SystemRandom()
        self._writing = asyncio.Semaphore(WRITES)
        self._sending: set[asyncio.Task[None]] = set()
        self._busy: Counter[tuple[WorkspaceId, str]] = Counter()
        self.wake: Callable[[], None] = lambda: None  # called whenever a delivery ends

    @property
    def is_sending(self) -> bool:
        return bool(self._sending)

    async def step(self) -> timedelta:
        if (await installation.state(self._database)).is_held:
            return about(CHECK_EVERY, self._chance)  # a restored installation waits for its operator
        capacity = CourierCapacity(
            DELIVERIES - len(self._sending), OF_ONE_WORKSPACE, OF_ONE_RECEIVER, +self._busy
        )
        came = await take(self._database, capacity, self._vault)
        for parcel in came.parcels:
            self._begin(parcel)
        if came.taken and len(self._sending) < DELIVERIES:
            return AT_ONCE  # there may be more, which the bounds of other receivers held back
        check = about(CHECK_EVERY, self._chance)
        return check if came.until_next is None else min(came.until_next + LATE, check)

    async def close(self) -> None:
        """Finish soon. A delivery that is cut off is repeated after its lease."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=FINISH_WITHIN)
        for task in self._sending:
            task.cancel()
        if self._sending:
            await asyncio.wait(self._sending)

    def _begin(self, parcel: Parcel) -> None:
        self._busy[parcel.taken.workspace_id, parcel.taken.receiver] += 1
        task = asyncio.create_task(self._deliver(parcel), name=f"delivery {parcel.taken.id}")
        self._sending.add(task)
        task.add_done_callback(lambda task: self._free(task, parcel))

    async def _deliver(self, parcel: Parcel) -> None:
        try:
            came = await self._try(parcel)
            async with self._writing:
                await record(self._database, parcel.taken, came)
        except Unavailable as error:
            log.warning(
                "delivery.not_recorded", extra={"delivery": str(parcel.taken.id), "reason": str(error)}
            )
        except Exception:  # one bad delivery must not end the others
            log.exception("delivery.failed", extra={"delivery": str(parcel.taken.id)})

    async def _try(self, parcel: Parcel) -> Came:
        try:
            return await self._send(parcel)
        except Exception as error:  # recorded, so that it waits longer each time and ends
            log.exception("delivery.broke", extra={"delivery": str(parcel.taken.id)})
            return Unanswered(
                f"Foliot could not send it: {type(error).__name__}. The server's log has the details."
            )

    def _free(self, task: asyncio.Task[None], parcel: Parcel) -> None:
        self._sending.discard(task)
        self._busy[parcel.taken.workspace_id, parcel.taken.receiver] -= 1
        self.wake()
