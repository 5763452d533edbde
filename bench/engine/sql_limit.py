"""The plain-SQL limit: the statements of a tick, over the same rows in the same batches, with every planned time, id and parameter
made before the clock starts. What is left is PostgreSQL, the wire, and putting 500 ready pieces side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from struct import pack
from typing import Any, cast

import psycopg
from psycopg import Connection

from bench.engine.fires import LONGEST, population
from bench.engine.population import DUE
from bench.engine.processes import Measured, Signal, together
from bench.engine.setup import Bench
from foliot.domain.ids import raw_uuid7s
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.services.scheduling.fast_path import split_due
from foliot.services.scheduling.tick import BATCH
from foliot.storage import arrays
from foliot.storage.arrays import Packed
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.timers.fires import DueTimer, fire_fast
from foliot.storage.tx import Database, Role, Tx

_PIECE = 20  # bytes of an array's head; what follows is its values
_BEGIN = b"BEGIN; SELECT set_config('role', 'foliot_engine', true), set_config('search_path', 'foliot, pg_temp', true)"


def measure(bench: Bench, jobs: int, connections: int) -> Measured:
    with bench.database(population(jobs)) as site:
        return together(site.server_pid, [(firing, (site.url,))] * connections)


def firing(signal: Signal, url: str) -> tuple[int, float, float, Any]:
    pieces = asyncio.run(_prepared(url))
    heads = {name: piece[:12] for name, piece in next(iter(pieces.values())).items()}
    rows = {key: tuple(piece[_PIECE:] for piece in piece.values()) for key, piece in pieces.items()}
    now = DUE + timedelta(seconds=1)
    due = {"now": now, "limit": BATCH, "zone_data": ZONE_DATA_VERSION}
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        arrays.register(connection.adapters)
        connection.execute("SET TimeZone TO 'UTC'")
        began = signal.wait()
        fired, ended = 0, began
        while ended - began < LONGEST and (keys := _taken(connection, due)):
            columns = zip(*[rows[key] for key in keys], strict=True)
            size = pack(">ii", len(keys), 1)
            params = {
                name: Packed(head + size + b"".join(column))
                for (name, head), column in zip(heads.items(), columns, strict=True)
            }
            answer = connection.execute(sql.fires.fire_fast.text, {**params, "now": now}).fetchone()
            assert answer == (len(keys), len(keys))
            connection.execute("COMMIT")
            fired += len(keys)
            ended = time.monotonic()
        return fired, began, ended, None


def _taken(connection: Connection[Any], due: dict[str, Any]) -> list[bytes]:
    """The ids alone are looked at, and not even turned into UUIDs."""
    connection.execute(_BEGIN)
    cursor = connection.cursor(binary=True).execute(sql.fires.take_due.text, due)
    result = cursor.pgresult
    assert result is not None
    return [cast("bytes", result.get_value(row, 1)) for row in range(result.ntuples)]


async def _prepared(url: str) -> dict[bytes, dict[str, bytes]]:
    """What the real `fire` would send for each due job, one by one."""
    prepared: dict[bytes, dict[str, bytes]] = {}
    async with Database(url) as database, database.tx(Role.ENGINE) as tx:
        await tx.execute(
            SqlQuery(
                "bench.no_hurry",
                b"SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0",
            )
        )
        unlocked = SqlQuery("bench.due", sql.fires.take_due.text.replace(b"FOR UPDATE SKIP LOCKED", b""))
        rows = await tx.fetch_raw(unlocked, {"now": DUE, "limit": None, "zone_data": ZONE_DATA_VERSION})
    fires, others = split_due([DueTimer._make(row) for row in rows], DUE)
    assert not others, "every job of the population takes the fast path"
    for place, each in enumerate(fires):
        kept = _Kept(DUE + timedelta(milliseconds=place / 20))
        await fire_fast(cast("Tx", kept), [each])
        prepared[each.job_id] = kept.arrays
    return prepared


class _Kept:
    """Takes the place of a transaction and keeps what would have been sent."""

    chance = Random()  # of its own in each process, so that their ids differ

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.arrays: dict[str, bytes] = {}

    def new_raw_ids(self, count: int) -> list[bytes]:
        return raw_uuid7s(self.now, self.chance.randbytes(10 * count))

    async def fetch_one(self, _: SqlQuery, params: Mapping[str, Any]) -> dict[str, int]:
        self.arrays = {name: value for name, value in params.items() if isinstance(value, Packed)}
        return {"moved": 1, "recorded": 1}
