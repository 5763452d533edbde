"""Rows become typed values by column name, and a query that does not fit its type is an error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, NewType
from uuid import UUID

import pytest

from foliot.storage.queries import SqlQuery
from foliot.storage.rows import row_reader
from foliot.storage.tx import Database, Role

pytestmark = pytest.mark.anyio
JobId = NewType("JobId", UUID)
JOB = JobId(UUID(int=7))


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    id: JobId
    color: Color | None
    corners: tuple[int, ...]
    origin: Point
    label: Point | None
    note: str = ""


class Pair(NamedTuple):
    left: int
    right: str | None = None


def test_fields_are_read_by_name_and_type() -> None:
    columns = (b"color", b"id", b"corners", b"origin", b"label.x", b"label.y")
    read = row_reader(Shape, columns)
    assert read(("red", JOB, [1, 2], {"x": 3}, 4, 5)) == Shape(JOB, Color.RED, (1, 2), Point(3), Point(4, 5))
    assert read((None, JOB, [], {"x": 3}, None, None)) == Shape(JOB, None, (), Point(3), None)


def test_a_named_tuple_and_a_single_column_are_read() -> None:
    assert row_reader(Pair, (b"right", b"left"))(("b", 1)) == Pair(1, "b")
    assert row_reader(Pair, (b"left",))((1,)) == Pair(1)
    assert row_reader(JobId, (b"id",))((JOB,)) == JOB
    assert row_reader(Color, (b"color",))(("red",)) is Color.RED
    assert row_reader(Color, (b"color",))((None,)) is None


def test_a_query_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"no column for Pair\.left"):
        row_reader(Pair, (b"right",))
    with pytest.raises(TypeError, match="Pair has no field for middle"):
        row_reader(Pair, (b"left", b"middle"))
    with pytest.raises(TypeError, match="one value"):
        row_reader(JobId, (b"id", b"name"))


async def test_a_transaction_returns_typed_rows(database: Database) -> None:
    pairs = SqlQuery(
        "test.pairs", b"SELECT n AS left, 'n' || n AS right FROM generate_series(1, %(most)s) AS n"
    )
    now = SqlQuery("test.now", b"SELECT '2026-01-01'::timestamptz")
    async with database.tx(Role.APP) as tx:
        assert await tx.fetch_as(Pair, pairs, {"most": 2}) == [Pair(1, "n1"), Pair(2, "n2")]
        assert await tx.fetch_one_as(Pair, pairs, {"most": 0}) is None
        assert await tx.fetch_pairs(int, str, pairs, {"most": 1}) == [(1, "n1")]
        assert await tx.fetch_value(datetime, now) == datetime(2026, 1, 1, tzinfo=UTC)
