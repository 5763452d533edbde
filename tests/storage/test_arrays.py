"""Arrays in PostgreSQL's binary form: what is packed is what the server reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg
import pytest

from foliot.storage import arrays
from foliot.storage.arrays import Packer

AT = datetime(2027, 3, 28, 1, 59, 59, 999_999, tzinfo=UTC)
WALL = datetime(1999, 12, 31, 23, 59, 59, 1)
ID = UUID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")


@pytest.mark.parametrize(
    ("kind", "packer", "values"),
    [
        ("uuid", arrays.uuids, [ID, None, UUID(int=0), UUID(int=2**128 - 1)]),
        ("timestamptz", arrays.instants, [AT, None, AT, datetime(1969, 1, 1, tzinfo=UTC)]),
        ("timestamp", arrays.wall_times, [WALL, WALL, None]),
        (
            "interval",
            arrays.durations,
            [timedelta(days=3, seconds=7, microseconds=1), None, -timedelta(seconds=1)],
        ),
        ("smallint", arrays.smallints, [0, -32_768, 32_767]),
        ("int", arrays.ints, [0, None, -(2**31), 2**31 - 1]),
        ("bigint", arrays.bigints, [0, -(2**63), 2**63 - 1]),
        ("boolean", arrays.booleans, [True, False, None]),
        ("text", arrays.texts, ["", "plain", None, "ünï 🕰", 'a "quoted", {braced} one', "plain"]),
        ("jsonb", arrays.jsons, [{"code": "x", "list": [1, None, "é"]}, None, [], "text", 0, False]),
    ],
)
def test_the_server_reads_what_was_packed(
    owner: psycopg.Connection[Any], kind: str, packer: Packer, values: Sequence[Any]
) -> None:
    arrays.register(owner.adapters)
    owner.execute("SET TimeZone TO 'UTC'")
    for some in (values, values[:1], [None, None], []):
        found = owner.execute(f"SELECT %s::{kind}[]", (packer(some),)).fetchone()
        assert found == (list(some),)


def test_an_instant_is_the_same_in_every_zone(owner: psycopg.Connection[Any]) -> None:
    arrays.register(owner.adapters)
    owner.execute("SET TimeZone TO 'UTC'")
    elsewhere = AT.astimezone(timezone(-timedelta(hours=3)))
    assert owner.execute("SELECT %s::timestamptz[]", (arrays.instants([elsewhere, AT]),)).fetchone() == (
        [AT, AT],
    )


def test_rows_become_columns_by_name(owner: psycopg.Connection[Any]) -> None:
    arrays.register(owner.adapters)
    columns: dict[str, Packer] = {"ids": arrays.uuids, "counts": arrays.ints}
    asked = "SELECT id, count FROM unnest(%(ids)s::uuid[], %(counts)s::int[]) AS asked (id, count)"
    assert owner.execute(asked, arrays.packed(columns, [(ID, 3), (UUID(int=1), None)])).fetchall() == [
        (ID, 3),
        (UUID(int=1), None),
    ]
    assert owner.execute(asked, arrays.packed(columns, [])).fetchall() == []


def test_rows_packed_one_by_one_stand_side_by_side(owner: psycopg.Connection[Any]) -> None:
    arrays.register(owner.adapters)
    columns: dict[str, Packer] = {"name": arrays.texts, "at": arrays.instants, "fold": arrays.smallints}
    rows = [("one", AT, 1), (None, AT + timedelta(days=1), None)]
    for some in (rows, rows[:1], []):
        made = arrays.assembled(columns, [arrays.pieces(columns, row) for row in some])
        assert made == arrays.packed(columns, some)
    alone = (arrays.instant_piece(arrays.raw_instant(AT)), arrays.smallint_piece(1))
    assert alone == arrays.pieces({"at": arrays.instants, "fold": arrays.smallints}, (AT, 1))
    assert arrays.instant_of(arrays.raw_instant(AT)) == AT
    assert arrays.raw_uuids([ID.bytes, UUID(int=0).bytes]) == arrays.uuids([ID, UUID(int=0)])
