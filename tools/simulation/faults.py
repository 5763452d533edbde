"""Faults: nodes that die, freeze, shut down or lose a commit's reply, at instants that follow from the seed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from operator import itemgetter
from random import Random
from typing import Any

import psycopg

from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.tx import Database, Params, Role, Row, Tx
from tools.simulation.world import HOUR, MINUTE, Size

BETWEEN = 100 * MINUTE  # faults, on average
_AT_COMMIT = 99  # no transaction has so many statements: it dies at its commit


class FaultKind(StrEnum):
    CRASH = "crash"  # memory is gone, leases stay behind
    FREEZE = "freeze"  # the process stops and goes on later, unaware
    BLACKOUT = "blackout"  # every node is down for hours
    TORN = "torn"  # dies in the middle of its next transaction, or just before the commit
    LOST_REPLY = "lost_reply"  # commits, and the reply is lost
    DRAIN = "drain"  # a graceful shutdown: what it holds is handed back


@dataclass(frozen=True, slots=True)
class Fault:
    at: datetime
    kind: FaultKind
    node: int
    lasts: timedelta
    statements: int = 0  # of a torn transaction that are still carried out


def faults(size: Size, nodes: int) -> Iterator[Fault]:
    chance = Random(f"{size.lot}/faults")
    at = size.start
    while size.with_faults:
        at += timedelta(seconds=int(chance.expovariate(1 / BETWEEN.total_seconds())))
        if at >= size.end:
            return
        kind = chance.choices(list(FaultKind), (5, 4, 1, 6, 4, 2))[0]
        longest = 9 * HOUR if kind is FaultKind.BLACKOUT else HOUR
        lasts = timedelta(seconds=chance.randint(20, int(longest.total_seconds())))
        yield Fault(at, kind, chance.randrange(nodes), lasts, chance.choice((0, 1, 2, 3, _AT_COMMIT)))


class NodeDied(BaseException):
    """No code of the product may catch this: a killed process handles nothing."""


class FaultyDatabase(Database):
    """The product's own database; an armed fault happens in the next transaction."""

    armed: Fault | None = None

    async def open(self) -> None:
        # There is no pooler here, and planning the same few statements again takes a third of a simulation's time.
        assert isinstance(self._pool.kwargs, dict)
        self._pool.kwargs["prepare_threshold"] = 3
        await super().open()

    @asynccontextmanager
    async def tx(
        self,
        role: Role,
        workspace_id: WorkspaceId | None = None,
        *,
        system: bool = False,
        key_hash: bytes | None = None,
        relaxed: bool = False,
        prepared: bool = False,
    ) -> AsyncIterator[Tx]:
        fault, self.armed = self.armed, None
        async with super().tx(
            role, workspace_id, system=system, key_hash=key_hash, relaxed=relaxed, prepared=prepared
        ) as tx:
            if fault is None or fault.kind is not FaultKind.TORN:
                yield _RepeatableTx(tx)
            else:
                yield _TornTx(tx, fault.statements)
                raise NodeDied
        if fault is not None:
            raise DatabaseUnavailable("The connection broke during the commit (simulated).")


class _RepeatableTx(Tx):
    """Order timers that are due at the same instant by id: the seed decides which is first at a cap, not the order of rows on disk."""

    __slots__ = ()

    def __init__(self, tx: Tx) -> None:
        assert tx._connection is not None  # noqa: SLF001  # it was opened a moment ago
        super().__init__(tx._connection, tx.role, tx.workspace_id, tx.now, tx.chance)  # noqa: SLF001

    async def fetch_raw(self, query: SqlQuery, params: Params | None = None) -> list[tuple[Any, ...]]:
        rows = await super().fetch_raw(query, params)
        return sorted(rows, key=itemgetter(1)) if query is sql.fires.take_due else rows


class _TornTx(_RepeatableTx):
    __slots__ = ("_left",)

    def __init__(self, tx: Tx, statements: int) -> None:
        super().__init__(tx)
        self._left = statements

    async def _run(self, query: SqlQuery, params: Params | None) -> psycopg.AsyncCursor[Row]:
        if self._left == 0:
            raise NodeDied
        self._left -= 1
        return await super()._run(query, params)
