"""Three tables of moves and the one function that applies them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.errors import IllegalMove
from foliot.domain.lifecycle import (
    ATTEMPT_MOVES,
    FAILURES,
    JOB_MOVES,
    RUN_MOVES,
    TERMINAL,
    AttemptEvent,
    AttemptStatus,
    JobEvent,
    JobStatus,
    RunEvent,
    RunStatus,
    advance,
)
from tools.lifecycle_page import page

EVERY_PAIR: list[tuple[StrEnum, StrEnum, Mapping[Any, StrEnum]]] = [
    *((status, event, JOB_MOVES) for status, event in product(JobStatus, JobEvent)),
    *((status, event, RUN_MOVES) for status, event in product(RunStatus, RunEvent)),
    *((status, event, ATTEMPT_MOVES) for status, event in product(AttemptStatus, AttemptEvent)),
]


@pytest.mark.requirement("C-13", "S2-21")
def test_every_status_meets_every_event_and_moves_or_is_refused_with_what_is_possible() -> None:
    for status, event, moves in EVERY_PAIR:
        answer = moved(status, event)
        if (status, event) in moves:
            assert answer == moves[status, event]
        else:
            assert isinstance(answer, IllegalMove)
            assert status.value.replace("_", " ") in answer.message
            assert "From " not in (answer.hint or "")


def moved(status: Any, event: Any) -> StrEnum | IllegalMove:
    try:
        after: StrEnum = advance(status, event)
    except IllegalMove as refusal:
        return refusal
    return after


def test_a_refusal_names_what_it_is_what_was_asked_and_what_is_possible() -> None:
    with pytest.raises(IllegalMove) as refused:
        advance(JobStatus.PAUSED, JobEvent.PAUSE)
    assert refused.value.message == "This job is already paused."
    assert refused.value.hint == "You can resume, disable or archive it."
    with pytest.raises(IllegalMove) as refused:
        advance(JobStatus.COMPLETED, JobEvent.PAUSE)
    assert refused.value.message == "This job is completed; it cannot be paused."
    assert refused.value.hint == "You can archive it."


def test_a_finished_run_never_changes_and_points_at_retry() -> None:
    assert {s.value for s in TERMINAL} == {
        "succeeded",
        "failed",
        "timed_out",
        "interrupted",
        "cancelled",
        "skipped",
    }
    assert FAILURES < TERMINAL
    with pytest.raises(IllegalMove) as refused:
        advance(RunStatus.SUCCEEDED, RunEvent.CLAIM)
    assert refused.value.message == "This run has already ended: it is succeeded."
    assert refused.value.hint == "Retry it to start a new run of the same job."


def test_an_event_of_a_run_is_no_move_of_a_job() -> None:
    assert isinstance(moved(JobStatus.ACTIVE, RunEvent.CLAIM), IllegalMove)


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DISABLED, JobStatus.FAILED])
def test_resume_leaves_paused_disabled_and_failed(status: JobStatus) -> None:
    assert advance(status, JobEvent.RESUME) is JobStatus.ACTIVE


def test_anything_but_an_archived_job_can_be_archived() -> None:
    for status in set(JobStatus) - {JobStatus.ARCHIVED}:
        assert advance(status, JobEvent.ARCHIVE) is JobStatus.ARCHIVED


@pytest.mark.parametrize(
    ("moves", "start"),
    [(JOB_MOVES, JobStatus.PENDING), (JOB_MOVES, JobStatus.DISABLED), (RUN_MOVES, RunStatus.READY)],
)
def test_every_status_can_be_reached(
    moves: Mapping[tuple[StrEnum, StrEnum], StrEnum], start: StrEnum
) -> None:
    reached, edge = {start}, {start}
    while edge:
        edge = {after for (before, _), after in moves.items() if before in edge} - reached
        reached |= edge
    assert reached >= set(type(start)) - {JobStatus.DISABLED}


def test_the_page_of_lifecycles_is_drawn_from_the_tables() -> None:
    written = Path(__file__).parents[2] / "docs" / "explanation" / "lifecycles.md"
    assert written.read_text() == page(), "the tables changed: draw the page again, as its first lines say"
