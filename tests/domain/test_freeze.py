"""Which freeze decides, and until when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.errors import Invalid
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at, next_change
from foliot.domain.ids import FreezeId
from tests.domain.builders import at, make_uuid


def a_freeze(number: int, start: str, end: str | None, after: FreezePolicy = FreezePolicy.LATEST) -> Freeze:
    return Freeze(FreezeId(make_uuid(number)), at(start), None if end is None else at(end), after)


def test_a_freeze_holds_from_its_start_up_to_its_end() -> None:
    freeze = a_freeze(1, "08:00", "09:00")
    assert [freeze.holds(at(when)) for when in ("07:59", "08:00", "08:59", "09:00")] == [
        False,
        True,
        True,
        False,
    ]
    assert a_freeze(1, "08:00", None).holds(at("2099-01-01 00:00"))


def test_of_overlapping_freezes_skip_decides_then_the_longest_hold() -> None:
    short, long, endless = (
        a_freeze(1, "08:00", "09:00"),
        a_freeze(2, "08:00", "10:00"),
        a_freeze(3, "08:30", None),
    )
    skip = a_freeze(4, "08:45", "08:50", FreezePolicy.SKIP)
    chosen = [
        freeze_at((short, long, endless, skip), at(when)) for when in ("07:00", "08:10", "08:40", "08:46")
    ]
    assert chosen == [None, long, endless, skip]


def test_the_next_change_is_the_next_start_or_end() -> None:
    freezes = (a_freeze(1, "08:00", "09:00"), a_freeze(2, "08:30", None))
    changes = [next_change(freezes, at(when)) for when in ("07:00", "08:00", "08:30", "09:00")]
    assert changes == [at("08:00"), at("08:30"), at("09:00"), None]


def test_the_pace_spreads_a_minute_over_its_runs() -> None:
    assert Freeze(FreezeId(make_uuid(1)), at("08:00"), per_minute=120).pace == timedelta(seconds=0.5)


def test_a_freeze_that_cannot_be_is_refused() -> None:
    with pytest.raises(Invalid, match="ends after it starts"):
        a_freeze(1, "09:00", "08:00")
    with pytest.raises(Invalid, match="a minute"):
        Freeze(FreezeId(make_uuid(1)), at("08:00"), per_minute=0)
