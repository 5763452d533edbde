"""Columns of a batch as PostgreSQL's binary arrays. The driver's own dumper takes a Python step or three for every value, which
for a batch of forty columns costs more than planning it; here a column is a few steps in C.

The statement names the type of each array (`%(job_id)s::uuid[]`), so the parameters carry none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct, pack
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

T = TypeVar("T")

_NULL = b"\xff\xff\xff\xff"  # the length of what is not there
_DAY = 86_400_000_000
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001  # wall-clock times carry no zone
_INT, _BIGINT = Struct(">i").pack, Struct(">q").pack


class Packed(bytes):
    """An array in PostgreSQL's binary form."""

    __slots__ = ()


Packer = Callable[[Sequence[Any]], Packed]


def uuids(values: Sequence[UUID | None]) -> Packed:
    return _fixed(2950, 16, values, _uuid)


def instants(values: Sequence[datetime | None]) -> Packed:
    return _fixed(1184, 8, values, _instant)


def wall_times(values: Sequence[datetime | None]) -> Packed:
    return _fixed(1114, 8, values, _wall_time)


def durations(values: Sequence[timedelta | None]) -> Packed:
    return _repeated(1186, values, _duration)


def smallints(values: Sequence[int | None]) -> Packed:
    return _fixed(21, 2, values, Struct(">h").pack)


def ints(values: Sequence[int | None]) -> Packed:
    return _fixed(23, 4, values, _INT)


def bigints(values: Sequence[int | None]) -> Packed:
    return _fixed(20, 8, values, _BIGINT)


def booleans(values: Sequence[bool | None]) -> Packed:
    return _repeated(16, values, Struct(">?").pack)


def texts(values: Sequence[str | None]) -> Packed:
    return _repeated(25, values, str.encode)


def jsons(values: Sequence[Any]) -> Packed:
    """jsonb; None is SQL's NULL."""
    return _array(
        3802, len(values), b"".join([_NULL if value is None else _sized(_json(value)) for value in values])
    )


def packed(columns: Mapping[str, Packer], rows: Sequence[tuple[Any, ...]]) -> dict[str, Packed]:
    """The rows of a batch by column: name -> array."""
    values: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return {name: pack(column) for (name, pack), column in zip(columns.items(), values, strict=True)}


def register(adapters: psycopg.adapt.AdaptersMap) -> None:
    adapters.register_dumper(Packed, _PackedDumper)


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj


def _fixed(oid: int, size: int, values: Sequence[T | None], dump: Callable[[T], bytes]) -> Packed:
    """Where each value has the same size, the sizes can be what joins them."""
    length = _INT(size)
    if not values:
        return _array(oid, 0, b"")
    if None not in values:
        return _array(oid, len(values), length + length.join(map(dump, values)))  # type: ignore[arg-type]
    return _array(
        oid, len(values), b"".join([_NULL if value is None else length + dump(value) for value in values])
    )


def _repeated(oid: int, values: Sequence[T | None], dump: Callable[[T], bytes]) -> Packed:
    """Where few values stand many times, each is dumped once."""
    dumped = {value: _NULL if value is None else _sized(dump(value)) for value in set(values)}
    return _array(oid, len(values), b"".join([dumped[value] for value in values]))


def _array(oid: int, length: int, data: bytes) -> Packed:
    if not length:
        return Packed(pack(">iii", 0, 0, oid))
    return Packed(pack(">iiiii", 1, 1, oid, length, 1) + data)


def _sized(data: bytes) -> bytes:
    return _INT(len(data)) + data


def _uuid(value: UUID) -> bytes:
    return value.int.to_bytes(16, "big")


def _instant(value: datetime) -> bytes:
    since = value - _EPOCH
    return _BIGINT(since.days * _DAY + since.seconds * 1_000_000 + since.microseconds)


def _wall_time(value: datetime) -> bytes:
    since = value - _WALL_EPOCH
    return _BIGINT(since.days * _DAY + since.seconds * 1_000_000 + since.microseconds)


def _duration(value: timedelta) -> bytes:
    return pack(">qii", value.seconds * 1_000_000 + value.microseconds, value.days, 0)


def _json(value: Any) -> bytes:
    return b"\x01" + json.dumps(value).encode()
