"""What is sent again, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from foliot.sdk import Client, Conflict, Invalid, RateLimited, Unavailable, Unreachable, Unreadable
from foliot.sdk.connection import Connection
from tests.sdk.conftest import ScriptedServer

BUSY: dict[str, Any] = {
    "type": "about:blank",
    "title": "Busy",
    "status": 503,
    "detail": "No database right now.",
    "code": "database_unavailable",
    "errors": [],
    "request_id": "r-1",
}
RUN: dict[str, Any] = {
    "id": "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5",
    "job_id": "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5",
    "number": 1,
    "status": "ready",
    "skip_reason": None,
    "trigger": "manual",
    "planned_for": "2027-01-02T18:00:00Z",
    "planned_local": "2027-01-02T18:00:00",
    "planned_until": None,
    "count": None,
    "started_at": None,
    "finished_at": None,
    "duration_ms": None,
    "lag_ms": None,
    "job_name": "beat",
    "note": None,
    "triggered_by": None,
    "retry_of": None,
    "upstream_run_id": None,
    "created_at": "2027-01-15T12:00:00Z",
    "cancel_requested_at": None,
    "attempt_count": 0,
    "input": None,
    "output": None,
    "error": None,
    "worker": None,
}


Open = Callable[..., Client]


@pytest.fixture(params=[False, True], ids=["httpx2", "brief"])
def open_client(request: pytest.FixtureRequest, scripted_server: ScriptedServer) -> Open:
    """The client of programs, and that of short commands, which must not behave differently."""
    connection = Connection(scripted_server.url, "key", is_local=True, is_brief=request.param)
    return partial(Client, connection=connection)


def test_a_post_whose_answer_was_lost_is_repeated_under_the_same_key(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [None, (503, {}, BUSY), (201, {}, RUN)]
    with open_client() as client:
        assert client.jobs.run(RUN["job_id"]).number == 1
    keys = {got.headers["Idempotency-Key"] for got in scripted_server.got}
    assert len(scripted_server.got) == 3
    assert len(keys) == 1


def test_two_calls_have_two_keys_and_a_given_one_is_used(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [(201, {}, RUN)]
    with open_client() as client:
        client.jobs.run("a")
        client.jobs.run("a")
        client.jobs.run("a", idempotency_key="mine")
    first, second, third = (got.headers["Idempotency-Key"] for got in scripted_server.got)
    assert first != second
    assert third == "mine"


def test_repeats_are_bounded_and_the_last_answer_stands(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [(503, {}, BUSY)]
    with (
        open_client(retries=2) as client,
        pytest.raises(Unavailable, match="No database") as refused,
    ):
        client.runs.get("a")
    assert len(scripted_server.got) == 3
    assert (refused.value.code, refused.value.request_id) == ("database_unavailable", "r-1")


def test_a_refusal_is_not_repeated(scripted_server: ScriptedServer, open_client: Open) -> None:
    scripted_server.answers = [(422, {}, {**BUSY, "status": 422, "code": "invalid"})]
    with open_client() as client, pytest.raises(Invalid):
        client.runs.get("a")
    assert len(scripted_server.got) == 1


def test_what_is_still_under_way_under_its_key_is_asked_for_again(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    in_flight = {**BUSY, "status": 409, "code": "idempotency_in_flight"}
    scripted_server.answers = [None, (409, {"Retry-After": "1"}, in_flight), (201, {}, RUN)]
    with open_client() as client:
        assert client.jobs.run("a").number == 1
    assert len({got.headers["Idempotency-Key"] for got in scripted_server.got}) == 1
    assert len(scripted_server.got) == 3


def test_any_other_conflict_stands(scripted_server: ScriptedServer, open_client: Open) -> None:
    scripted_server.answers = [(409, {}, {**BUSY, "status": 409, "code": "illegal_move"})]
    with open_client() as client, pytest.raises(Conflict):
        client.jobs.run("a")
    assert len(scripted_server.got) == 1


def test_a_server_that_asks_for_much_patience_is_not_waited_for(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [
        (429, {"Retry-After": "3600"}, {**BUSY, "status": 429, "code": "rate_limited"})
    ]
    with open_client() as client, pytest.raises(RateLimited) as refused:
        client.runs.get("a")
    assert refused.value.retry_after == 3600
    assert len(scripted_server.got) == 1


def test_a_connection_that_breaks_again_and_again_is_reported(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [None]
    with open_client(retries=1) as client, pytest.raises(Unreachable, match="broke"):
        client.runs.get("a")
    assert len(scripted_server.got) == 2


def test_fields_that_a_newer_server_adds_are_passed_over(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [
        (200, {}, {**RUN, "mood": "good", "error": {"code": "x", "message": "y", "more": 1}})
    ]
    with open_client() as client:
        found = client.runs.get("a")
    assert found.error is not None
    assert found.error.message == "y"
    assert not hasattr(found, "mood")


def test_an_answer_that_is_not_foliots_is_reported_with_its_place(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    scripted_server.answers = [
        (200, {}, {**RUN, "number": "one"}),
        (200, {}, b"<html>"),
        (500, {}, b"<html>"),
    ]
    with open_client() as client:
        with pytest.raises(Unreadable, match="/number"):
            client.runs.get("a")
        with pytest.raises(Unreadable):
            client.runs.get("a")
        with pytest.raises(Exception, match="answered 500"):
            client.runs.get("a")


def test_what_has_no_form_in_json_is_refused_before_it_is_sent(
    scripted_server: ScriptedServer, open_client: Open
) -> None:
    with open_client() as client:
        for wrong in (float("nan"), object()):
            with pytest.raises(Invalid, match="JSON"):
                client.jobs.run("a", input={"x": wrong})
    assert scripted_server.got == []
