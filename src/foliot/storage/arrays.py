"""Columns of a batch as PostgreSQL's binary arrays. The driver's own dumper runs Python code for every value, which for a batch of
forty columns costs more than planning it; here a column takes a few calls in C.

The statement names the type of each array (`%(job_id)s::uuid[]`), so the parameters carry none.

Why: docs/decisions/400-fast-path-of-a-tick.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct, pack
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryLoader
from psycopg.types.string import ByteaBinaryLoader

T = TypeVar("T")

_HEAD = 20  # bytes of an array in front of its values
_NULL = b"\xff\xff\xff\xff"  # the length of NULL
_DAY = 86_400_000_000
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001  # wall-clock times carry no zone
_SMALLINT, _INT, _BIGINT = Struct(">h"), Struct(">i"), Struct(">q")
_SIZED_SMALLINT, _SIZED_BIGINT = Struct(">ih"), Struct(">iq")
_UUID_LENGTH = _INT.pack(16)


class Packed(bytes):
    """An array in PostgreSQL's binary form."""

    __slots__ = ()


Packer = Callable[[Sequence[Any]], Packed]


def uuids(values: Sequence[UUID | None]) -> Packed:
    try:
        return raw_uuids([value.int.to_bytes(16, "big") for value in values])  # type: ignore[union-attr]
    except AttributeError:  # one of them is None
        data = [_NULL if value is None else _UUID_LENGTH + value.int.to_bytes(16, "big") for value in values]
        return _array(2950, len(values), b"".join(data))


def instants(values: Sequence[datetime | None]) -> Packed:
    return _repeated(1184, values, _instant)


def wall_times(values: Sequence[datetime | None]) -> Packed:
    return _repeated(1114, values, _wall_time)


def durations(values: Sequence[timedelta | None]) -> Packed:
    return _repeated(1186, values, _duration)


def smallints(values: Sequence[int | None]) -> Packed:
    return _numbers(21, _SMALLINT, values)


def ints(values: Sequence[int | None]) -> Packed:
    return _numbers(23, _INT, values)


def bigints(values: Sequence[int | None]) -> Packed:
    return _numbers(20, _BIGINT, values)


def booleans(values: Sequence[bool | None]) -> Packed:
    return _repeated(16, values, Struct(">?").pack)


def texts(values: Sequence[str | None]) -> Packed:
    return _repeated(25, values, str.encode)


def jsons(values: Sequence[Any]) -> Packed:
    """Pack jsonb; None is NULL."""
    return _array(
        3802, len(values), b"".join([_NULL if value is None else _sized(_json(value)) for value in values])
    )


def packed(columns: Mapping[str, Packer], rows: Sequence[tuple[Any, ...]]) -> dict[str, Packed]:
    """Pack the rows of a batch by column."""
    values: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return {name: packer(column) for (name, packer), column in zip(columns.items(), values, strict=True)}


def pieces(columns: Mapping[str, Packer], row: Sequence[Any]) -> tuple[bytes, ...]:
    """Pack one row for `assembled`, so that values shared by many rows are packed once."""
    return tuple(packer((value,))[_HEAD:] for packer, value in zip(columns.values(), row, strict=True))


def instant_piece(raw: int) -> bytes:
    """Pack an instant or wall-clock time given as PostgreSQL's integer."""
    return _SIZED_BIGINT.pack(8, raw)


def smallint_piece(value: int) -> bytes:
    return _SIZED_SMALLINT.pack(2, value)


def text_piece(value: str) -> bytes:
    return _sized(value.encode())


def assembled(columns: Mapping[str, Packer], rows: Sequence[tuple[bytes, ...]]) -> dict[str, Packed]:
    values: Iterable[Sequence[bytes]] = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return {
        name: _array(_type_of(packer), len(rows), b"".join(column))
        for (name, packer), column in zip(columns.items(), values, strict=True)
    }


def raw_uuids(values: Sequence[bytes]) -> Packed:
    """Pack ids given as sixteen bytes each."""
    return _array(2950, len(values), _UUID_LENGTH + _UUID_LENGTH.join(values))


def raw_instant(value: datetime) -> int:
    """Return PostgreSQL's integer: microseconds since the year 2000."""
    since = value - _EPOCH
    return since.days * _DAY + since.seconds * 1_000_000 + since.microseconds


def raw_wall_time(value: datetime) -> int:
    since = value - _WALL_EPOCH
    return since.days * _DAY + since.seconds * 1_000_000 + since.microseconds


def instant_of(raw: int) -> datetime:
    return _EPOCH + timedelta(microseconds=raw)


def register(adapters: psycopg.adapt.AdaptersMap) -> None:
    adapters.register_dumper(Packed, _PackedDumper)


def read_raw(adapters: psycopg.adapt.AdaptersMap) -> None:
    """Read ids as bytes and instants as integers (`instant_of`): converting each costs more than reading it."""
    adapters.register_loader("uuid", ByteaBinaryLoader)
    adapters.register_loader("timestamptz", Int8BinaryLoader)


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj


def _numbers(oid: int, number: Struct, values: Sequence[int | None]) -> Packed:
    """Join values of one size with their length as the separator."""
    length = _INT.pack(number.size)
    if not values or None in values or values.count(values[0]) == len(values):
        return _repeated(oid, values, number.pack)
    return _array(oid, len(values), length + length.join(map(number.pack, values)))


def _repeated(oid: int, values: Sequence[T | None], dump: Callable[[T], bytes]) -> Packed:
    """Dump each distinct value once."""
    dumped = {value: _NULL if value is None else _sized(dump(value)) for value in set(values)}
    if len(dumped) == 1:
        return _array(oid, len(values), next(iter(dumped.values())) * len(values))
    return _array(oid, len(values), b"".join([dumped[value] for value in values]))


def _array(oid: int, length: int, data: bytes) -> Packed:
    if not length:
        return Packed(pack(">iii", 0, 0, oid))
    return Packed(pack(">iiiii", 1, 1, oid, length, 1) + data)


@cache
def _type_of(packer: Packer) -> int:
    oid: int = _INT.unpack(packer(())[8:12])[0]
    return oid


def _sized(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _instant(value: datetime) -> bytes:
    return _BIGINT.pack(raw_instant(value))


def _wall_time(value: datetime) -> bytes:
    return _BIGINT.pack(raw_wall_time(value))


def _duration(value: timedelta) -> bytes:
    return pack(">qii", value.seconds * 1_000_000 + value.microseconds, value.days, 0)


def _json(value: Any) -> bytes:
    return b"\x01" + json.dumps(value).encode()
