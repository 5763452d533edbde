"""The event handler against a real server: the body of an event, and its outcome."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.event import EventConfig, EventHandler
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.sdk.context import Context
from tests.worker.test_http import handler, target

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CTX = Context(
    "w", "j-1", "Daily report", "run-1", 1, 3, "schedule", datetime(2027, 1, 15, tzinfo=UTC), number=3
)


async def run(config: dict[str, Any], url: str | None = None) -> HandlerResult:
    EventConfig.model_validate(config)
    events = EventHandler(handler(), url)
    try:
        return await events.run(Assignment(CTX, config, {"report_type": "daily"}))
    finally:
        await events.close()


@pytest.mark.requirement("S3-9")
async def test_an_event_names_its_job_and_its_repetition() -> None:
    async with target(OK) as (url, came):
        result = await run({"url": url, "workflow_id": 1, "trigger_node_id": "t-1"})
    assert isinstance(result.outcome, Succeeded)
    head, _, body = came[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook ")
    assert json.loads(body) == {
        "event": "schedule",
        "scheduled_job_id": "j-1",
        "scheduled_job_name": "Daily report",
        "repeat_number": 2,
        "payload": {"report_type": "daily"},
        "workflow_id": 1,
        "trigger_node_id": "t-1",
    }


async def test_braces_in_a_name_or_a_payload_are_sent_as_they_are() -> None:
    async with target(OK) as (url, came):
        events = EventHandler(handler())
        given = {"text": "{{run.id}}", "{{job.id}}": ["{{ customer }}"]}
        await events.run(Assignment(replace(CTX, job="Say {{run.id}}"), {"url": url}, given))
        await events.close()
    body = json.loads(came[0].partition(b"\r\n\r\n")[2])
    assert (body["scheduled_job_name"], body["payload"]) == ("Say {{run.id}}", given)


def test_an_event_takes_no_body_of_its_own() -> None:
    with pytest.raises(ValueError, match="body"):
        EventConfig.model_validate({"url": "https://example.test", "body": {"a": 1}})


async def test_an_answer_that_is_nested_too_deeply_is_a_success_without_usage() -> None:
    deep = b"[" * 60_000
    async with target(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(deep) + deep) as (url, _):
        result = await run({"url": url, "usage": {"tokens": "usage.tokens"}})
    assert isinstance(result.outcome, Succeeded)


async def test_a_job_without_an_endpoint_uses_the_one_of_the_worker() -> None:
    async with target(OK) as (url, came):
        result = await run({"workflow_id": "w"}, url)
    assert isinstance(result.outcome, Succeeded)
    assert len(came) == 1
    unheard = await run({"workflow_id": "w"})
    assert isinstance(unheard.outcome, Failed)
    assert unheard.outcome.error.code == "event_unheard"


async def test_an_event_that_is_only_accepted_is_no_success() -> None:
    async with target(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n") as (url, _):
        result = await run({"url": url})
    assert isinstance(result.outcome, Failed)
    assert result.outcome.error.code == "location_invalid"


async def test_a_refused_event_is_a_failure() -> None:
    async with target(b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n") as (url, _):
        result = await run({"url": url})
    assert isinstance(result.outcome, Failed)
    assert result.outcome.error.code == "http_status"
