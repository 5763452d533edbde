"""How a delivery goes on after an answer, or without one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from foliot.domain.delivery import (
    LONGEST_WAIT,
    PATIENCE,
    Answered,
    Came,
    Dead,
    Delivered,
    DeliveryKind,
    LeasedDelivery,
    TryAgain,
    Unanswered,
    Undeliverable,
    after,
)
from foliot.domain.ids import DeliveryId, WorkspaceId

BEGAN = datetime(2027, 1, 15, 9, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def taken(attempts: int = 1) -> LeasedDelivery:
    ids = WorkspaceId(uuid4()), DeliveryId(uuid4())
    return LeasedDelivery(
        *ids, DeliveryKind.ROOM_MESSAGE, uuid4(), 1, "example.test:443", BEGAN, attempts, attempts
    )


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_received(status: int) -> None:
    assert after(Answered(status, ""), taken(), BEGAN, 0.5) == Delivered(status)


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503])
def test_all_other_answers_are_tried_again(status: int) -> None:
    goes_on = after(Answered(status, "no"), taken(), BEGAN, 0.5)
    assert goes_on == TryAgain(BEGAN + 5 * SECOND, status, "no")


def test_410_stops_the_webhook() -> None:
    assert after(Answered(410, "gone"), taken(), BEGAN, 0.5) == Dead(410, "gone", stops=True)


def test_what_is_no_more_is_given_up_at_once() -> None:
    assert after(Undeliverable("gone"), taken(), BEGAN, 0.5) == Dead(None, "gone")


@pytest.mark.parametrize(
    ("asked", "wait"),
    [(MINUTE, MINUTE), (SECOND, 5 * SECOND), (None, 5 * SECOND), (timedelta(days=30), LONGEST_WAIT)],
)
def test_a_busy_receiver_is_left_alone_within_reason(asked: timedelta | None, wait: timedelta) -> None:
    goes_on = after(Answered(503, "busy", asked), taken(), BEGAN, 0.5)
    assert goes_on == TryAgain(BEGAN + wait, 503, "busy")


def test_waits_grow_to_six_hours_and_end_with_the_day() -> None:
    now, attempts, waits = BEGAN, 0, []
    while True:
        attempts += 1
        goes_on = after(Unanswered("no answer"), taken(attempts), now, 0.5)
        if isinstance(goes_on, Dead):
            break
        assert isinstance(goes_on, TryAgain)
        waits.append(goes_on.at - now)
        now = goes_on.at
    assert waits[:3] == [5 * SECOND, 20 * SECOND, 80 * SECOND]
    assert max(waits) == 6 * HOUR
    assert sum(waits, timedelta(0)) == PATIENCE
    assert 8 <= attempts <= 14


@pytest.mark.parametrize("came", [Answered(500, "no"), Unanswered("no")])
def test_one_that_waited_for_others_longer_than_a_day_is_tried_once(came: Came) -> None:
    assert isinstance(after(came, taken(), BEGAN + PATIENCE + HOUR, 0.5), Dead)


def test_chance_spreads_those_that_failed_together() -> None:
    ats = [after(Unanswered(""), taken(3), BEGAN, chance) for chance in (0.0, 1.0)]
    assert [at.at - BEGAN for at in ats if isinstance(at, TryAgain)] == [60 * SECOND, 100 * SECOND]
