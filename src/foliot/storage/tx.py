"""Transactions: one connection, one role, one workspace, one instant.

The opening message sets everything that a transaction needs, and it ends with the transaction. Nothing stays on the session, so
a pooled connection cannot carry one workspace into the next request, and PgBouncer in transaction mode works as well as a
direct connection. Outside a transaction the login has no rights of its own.

Why: docs/decisions/005-transactions-carry-their-settings.md
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random, SystemRandom
from typing import Any, Self, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool

from foliot.clock import Clock
from foliot.domain.errors import DatabaseUnavailable, MisplacedDatabase
from foliot.domain.ids import WorkspaceId, raw_uuid7s, uuid7, uuid7s
from foliot.storage import arrays
from foliot.storage.errors import is_lost, is_read_only, is_retryable, may_retry, misplaced, unavailable
from foliot.storage.queries import SqlQuery
from foliot.storage.rows import column_reader, row_reader

K = TypeVar("K")
T = TypeVar("T")
Row = DictRow
_SAVEPOINT = SqlQuery("tx.savepoint", b"SAVEPOINT part")
_ROLL_BACK_SAVEPOINT = SqlQuery("tx.roll_back_part", b"ROLLBACK TO SAVEPOINT part")
_RELEASE_SAVEPOINT = SqlQuery("tx.release_part", b"RELEASE SAVEPOINT part")
_SET_WORKSPACE = SqlQuery("tx.set_workspace", b"SELECT set_config('foliot.workspace', %(workspace)s, true)")
Params = Mapping[str, Any]
ONLY_WHEN_ASKED = 1_000_000_000  # executions after which psycopg prepares a statement by itself


class Role(StrEnum):
    """The database role a transaction acts as."""

    APP = "foliot_app"  # one workspace, by row-level security
    ENGINE = "foliot_engine"  # every workspace, and only the tables that scheduling needs


@dataclass(frozen=True, slots=True)
class PoolSize:
    least: int = 1
    most: int = 10
    waiting: int = 200  # callers that may queue for a connection; further ones are refused
    wait: float = 5.0  # seconds a caller waits for a connection


class SwallowedError(RuntimeError):
    """A statement failed, its error was caught inside the transaction, and the commit did nothing."""


class Tx:
    """An open transaction. `now` is its only time. Statements may name %(now)s and %(workspace_id)s without being given them."""

    __slots__ = ("_connection", "_prepare", "chance", "locked", "now", "role", "workspace_id")

    def __init__(
        self,
        connection: AsyncConnection[Row],
        role: Role,
        workspace_id: WorkspaceId | None,
        now: datetime,
        chance: Random,
        *,
        prepared: bool = False,
    ) -> None:
        self._connection: AsyncConnection[Row] | None = connection
        self._prepare = prepared or None  # None is psycopg's default
        self.chance = chance
        self.role = role
        self.workspace_id = workspace_id
        self.now = now
        self.locked: dict[str, Any] = {}  # values read under a lock that this transaction holds, by its name

    def new_id(self) -> UUID:
        return uuid7(self.now, self.chance.randbytes(10))

    def new_ids(self, count: int) -> list[UUID]:
        """Draw the random bytes of a batch in one system call."""
        return uuid7s(self.now, self.chance.randbytes(10 * count))

    def new_raw_ids(self, count: int) -> list[bytes]:
        return raw_uuid7s(self.now, self.chance.randbytes(10 * count))

    async def fetch_raw(self, query: SqlQuery, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Return tuples with ids as bytes and instants as PostgreSQL's integers: for rows that are mostly passed on."""
        async with self._open(query).cursor(binary=True, row_factory=tuple_row) as cursor:
            arrays.read_raw(cursor.adapters)
            return await (await cursor.execute(query.text, self._bind(query, params))).fetchall()

    async def fetch_tuples(self, query: SqlQuery, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Return tuples, read in binary: for the engine's batches, where a row takes a few microseconds."""
        async with self._open(query).cursor(binary=True, row_factory=tuple_row) as cursor:
            bound = self._bind(query, params)
            return await (await cursor.execute(query.text, bound, prepare=self._prepare)).fetchall()

    async def fetch(self, query: SqlQuery, params: Params | None = None) -> list[Row]:
        return await (await self._run(query, params)).fetchall()

    async def fetch_one(self, query: SqlQuery, params: Params | None = None) -> Row | None:
        return await (await self._run(query, params)).fetchone()

    async def fetch_as(
        self, kind: Callable[..., T], query: SqlQuery, params: Params | None = None
    ) -> list[T]:
        """Return the rows as values of `kind`: fields by column name, or the only column (see `rows.py`)."""
        cursor, read = await self._run_as(kind, query, params)
        return [read(row) for row in await cursor.fetchall()]

    async def fetch_one_as(
        self, kind: Callable[..., T], query: SqlQuery, params: Params | None = None
    ) -> T | None:
        """Return the first row as a value of `kind`; None without a row, and for a single column that is NULL."""
        cursor, read = await self._run_as(kind, query, params)
        row = await cursor.fetchone()
        return None if row is None else read(row)

    async def fetch_value(self, kind: Callable[..., T], query: SqlQuery, params: Params | None = None) -> T:
        """Return the row of a query that always has one."""
        found = await self.fetch_one_as(kind, query, params)
        assert found is not None, query.name
        return found

    async def fetch_pairs(
        self, first: Callable[..., K], second: Callable[..., T], query: SqlQuery, params: Params | None = None
    ) -> list[tuple[K, T]]:
        """Return the rows of a query with two columns."""
        cursor = await self._run_tuples(query, params)
        read_first, read_second = column_reader(first, 0), column_reader(second, 1)
        return [(read_first(row), read_second(row)) for row in await cursor.fetchall()]

    async def execute(self, query: SqlQuery, params: Params | None = None) -> int:
        """Run a statement and return the number of rows that it changed."""
        return (await self._run(query, params)).rowcount

    @asynccontextmanager
    async def part(self) -> AsyncIterator[None]:
        """Run a part under a savepoint: an error undoes the part alone."""
        await self.execute(_SAVEPOINT)
        try:
            yield
        except Exception:
            self.locked.clear()  # the savepoint releases the locks of its part
            await self.execute(_ROLL_BACK_SAVEPOINT)
            await self.execute(_RELEASE_SAVEPOINT)
            raise
        await self.execute(_RELEASE_SAVEPOINT)

    @asynccontextmanager
    async def within(self, workspace_id: WorkspaceId | None) -> AsyncIterator[None]:
        """Switch to another workspace inside the block: for administrators of the installation."""
        original = self.workspace_id
        if workspace_id == original:
            yield
            return
        await self._set_workspace(workspace_id)
        try:
            yield
        finally:
            self.workspace_id = original
        await self._set_workspace(original)

    async def _set_workspace(self, workspace_id: WorkspaceId | None) -> None:
        await self.execute(_SET_WORKSPACE, {"workspace": workspace_id.hex if workspace_id else ""})
        self.workspace_id = workspace_id

    async def _run(self, query: SqlQuery, params: Params | None) -> psycopg.AsyncCursor[Row]:
        return await self._open(query).execute(query.text, self._bind(query, params))

    async def _run_tuples(
        self, query: SqlQuery, params: Params | None
    ) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        cursor = self._open(query).cursor(row_factory=tuple_row)
        return await cursor.execute(query.text, self._bind(query, params))

    async def _run_as(
        self, kind: Callable[..., T], query: SqlQuery, params: Params | None
    ) -> tuple[psycopg.AsyncCursor[tuple[Any, ...]], Callable[[Sequence[Any]], T]]:
        cursor = await self._run_tuples(query, params)
        result = cursor.pgresult  # `cursor.description` builds an object for each column
        assert result is not None
        return cursor, row_reader(kind, tuple([result.fname(at) for at in range(result.nfields)]))

    def _bind(self, query: SqlQuery, params: Params | None) -> Params | None:
        """Add the transaction's instant and workspace to the values of a statement, unless it is given others."""
        if params is None and b"%(" not in query.text:
            return None
        own: dict[str, Any] = {"now": self.now}
        if self.workspace_id is not None or self.role is Role.APP:  # the engine's statements name theirs
            own["workspace_id"] = self.workspace_id
        return {**own, **params} if params else own

    def _open(self, query: SqlQuery) -> AsyncConnection[Row]:
        if self._connection is None:
            raise RuntimeError(f"{query.name}: this transaction is over")
        return self._connection

    def _end(self) -> None:
        self._connection = None  # the pool may have given the connection to another transaction


class Database:
    """A bounded pool of connections to one PostgreSQL server, which opens transactions."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        size: PoolSize | None = None,
        chance: Random | None = None,
        is_direct: bool = False,
    ) -> None:
        """`is_direct` says that no pooler stands between: a prepared statement lives on a session, and a pooler changes those."""
        size = size or PoolSize()
        self._chance = chance or SystemRandom()
        self._clock = clock  # None: the database's own clock
        self._is_direct = is_direct
        self._cleaning: set[asyncio.Task[None]] = set()
        self._server: int | None = None  # the server that the first connection led to
        self._misplaced: MisplacedDatabase | None = None  # set while the address leads to another server
        self._pool = AsyncConnectionPool(
            url,
            connection_class=AsyncConnection[Row],
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "prepare_threshold": ONLY_WHEN_ASKED if is_direct else None,  # None prepares nothing
                "client_encoding": "UTF8",
                "connect_timeout": 5,
                "fallback_application_name": "foliot",
                "tcp_user_timeout": 15_000,  # detects a broken connection in seconds; the kernel's default is a quarter of an hour
            },
            configure=self._configure,
            min_size=size.least,
            max_size=size.most,
            max_waiting=size.waiting,
            timeout=size.wait,
            # The pool doubles its pause between attempts up to this bound. A long one would delay the return by minutes after the
            # server is back.
            reconnect_timeout=size.wait,
            name="foliot",
            open=False,
        )

    async def open(self) -> None:
        try:
            await self._pool.open(wait=True, timeout=self._pool.timeout)
        except psycopg.Error as error:
            await self._pool.close()
            raise _translated(error) from error

    async def close(self) -> None:
        await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

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
        """Open a transaction that commits at the end of the block and rolls back on any error.

        `system` shows rows without a workspace, `key_hash` the key with that hash. `relaxed` does not wait for the disk at
        commit: for heartbeats, logs and progress, whose loss does no harm. `prepared` plans what `fetch_tuples` runs once for each
        connection, where that is possible, and by indexes alone: a plan that was made for an empty table must fit a full one.
        """
        prepared = prepared and self._is_direct
        try:
            connection, now = await self._begin(
                _opening(role, workspace_id, system, key_hash, relaxed, prepared)
            )
            tx = Tx(connection, role, workspace_id, now, self._chance, prepared=prepared)
            try:
                yield tx
                await _commit(connection)
            except psycopg.Error as error:
                if is_read_only(error):  # the address may lead to another server by now
                    await connection.close()
                raise
            finally:
                tx._end()  # noqa: SLF001  # Tx and Database are one unit
                await self._return(connection)
        except psycopg.Error as error:
            if self._misplaced is not None and is_lost(error):
                raise self._misplaced from error
            raise _translated(error) from error

    @property
    def clock(self) -> Clock | None:
        """The clock that names the instants of transactions; None where the server's own clock does."""
        return self._clock

    def instant(self, read_at: datetime, age: float) -> datetime:
        """Return the current instant of the transactions' clock, given one that it returned `age` seconds ago."""
        return self._clock.now() if self._clock else read_at + timedelta(seconds=age)

    async def _begin(self, opening: bytes) -> tuple[AsyncConnection[Row], datetime]:
        """Open a transaction in one round trip. A dead connection has done nothing yet, so another one is tried, once."""
        for is_last in (False, True):
            connection = await self._pool.getconn()
            try:
                cursor = await connection.execute(opening)
                cursor.nextset()  # past the result of BEGIN
                row = await cursor.fetchone()
            except BaseException as error:
                refusal = misplaced(error)
                if refusal is not None:  # the address may lead to another server by now
                    await connection.close()
                await self._return(connection)
                if refusal is not None:
                    raise refusal from error
                if is_last or not may_retry(error):
                    raise
            else:
                assert row is not None
                return connection, self._clock.now() if self._clock else row["now"].astimezone(UTC)
            await (
                self._pool.check()
            )  # the cause has usually broken the other connections too: remove them first
        raise AssertionError("the loop returns or raises")

    async def _configure(self, connection: AsyncConnection[Row]) -> None:
        """Prepare a new connection, unless its address leads to another server by now, such as a copy of this one."""
        # PgBouncer tracks this setting per client, so it may stay on the session: every instant is read as UTC.
        await connection.execute("SET TimeZone TO 'UTC'")
        arrays.register(connection.adapters)
        server = await _server_id(connection)
        if self._server is not None and server not in (None, self._server):
            self._misplaced = MisplacedDatabase(
                "The address of the database leads to another server than at the start.",
                hint="Check the address, or start Foliot again if the database was moved.",
            )
            raise psycopg.OperationalError(self._misplaced.message)
        self._server, self._misplaced = self._server or server, None

    async def _return(self, connection: AsyncConnection[Row]) -> None:
        """Return the connection in a task of its own: the caller may be cancelled at every await."""
        task = asyncio.create_task(self._clean(connection))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)
        await asyncio.shield(task)

    async def _clean(self, connection: AsyncConnection[Row]) -> None:
        with suppress(
            psycopg.Error
        ):  # a connection that cannot roll back is broken, and the pool replaces it
            await connection.rollback()
        await self._pool.putconn(connection)


async def _server_id(connection: AsyncConnection[Row]) -> int | None:
    """Return the server's own number, which its standbys share; None where the login may not read it."""
    try:
        row = await (await connection.execute("SELECT system_identifier FROM pg_control_system()")).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return None if row is None else row["system_identifier"]


def _opening(
    role: Role,
    workspace_id: WorkspaceId | None,
    system: bool,
    key_hash: bytes | None,
    relaxed: bool,
    prepared: bool,
) -> bytes:
    """Return BEGIN and all settings as one message. Only a UUID and bytes have `hex`, so no other text gets in."""
    settings = {
        "role": role.value,
        "foliot.workspace": workspace_id.hex if workspace_id else "",
        "foliot.system": "on" if system else "",
        "foliot.key_hash": key_hash.hex() if key_hash else "",
        "search_path": "foliot, pg_temp",
        "statement_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",  # a hung process must not hold row locks for ever
    }
    if relaxed:
        settings["synchronous_commit"] = "off"
    if prepared:
        # Before PostgreSQL 18 a scan that cannot be avoided seems so expensive here that it would compile the plan.
        settings |= {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}
    calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    return (
        f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT {calls}, clock_timestamp() AS now".encode()
    )


async def _commit(connection: AsyncConnection[Row]) -> None:
    try:
        cursor = await connection.execute("COMMIT")
    except psycopg.Error as error:
        if not (is_lost(error) or is_retryable(error.sqlstate)):
            raise  # a deferred constraint: the database refused, and that is certain
        raise DatabaseUnavailable(
            "The connection broke during the commit: the change may be kept or not.",
            hint="Repeat the request with the same Idempotency-Key; it is done once.",
        ) from error
    if (
        cursor.statusmessage != "COMMIT"
    ):  # PostgreSQL answers ROLLBACK, without an error, where a statement had failed
        raise SwallowedError(
            "a statement failed in this transaction and its error was caught: nothing is committed"
        )


def _translated(error: psycopg.Error) -> Exception:
    return unavailable(error) or error
