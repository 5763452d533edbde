"""Ids: made for one or for a batch, they are UUIDs of version 7 and sort by time."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.ids import made_at, raw_uuid7s, uuid7s
from tests.domain.builders import at

NOON = at("12:00:00.123")


@given(st.integers(0, 40).flatmap(lambda count: st.binary(min_size=10 * count, max_size=10 * count)))
def test_ids_of_a_batch_are_like_those_made_one_by_one(entropy: bytes) -> None:
    for made in (uuid7s(NOON, entropy), [UUID(bytes=raw) for raw in raw_uuid7s(NOON, entropy)]):
        assert len(made) == len(entropy) // 10
        assert {(id_.version, id_.variant, made_at(id_)) for id_ in made} <= {
            (7, UUID(int=1 << 63).variant, NOON)
        }


def test_all_chance_shows_in_an_id() -> None:
    nothing, everything = raw_uuid7s(NOON, bytes(10) + b"\xff" * 10)
    assert (int.from_bytes(nothing) ^ int.from_bytes(everything)).bit_count() == 74
