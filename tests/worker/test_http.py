"""The http handler against a real server: what is sent, what counts as success, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.http import KEPT, HttpHandler
from foliot.handlers.registry import Assignment, Done
from foliot.sdk.context import Context
from tests.waiting import until

pytestmark = pytest.mark.anyio
CTX = Context("w", "j", "job", "run-1", 2, 3, "schedule", datetime(2027, 1, 15, tzinfo=UTC))


@asynccontextmanager
async def target(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Answers every request with these bytes; remembers what came."""
    came: list[bytes] = []
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(
            (int(line[15:]) for line in head.lower().splitlines() if line[:15] == b"content-length:"), 0
        )
        came.append(head + await reader.readexactly(size))
        writer.write(answer)
        if not answer:
            await reader.read()  # until the caller hangs up
        writer.close()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", came
        if came:
            await asyncio.wait_for(gone.wait(), 20)


async def run(config: dict[str, Any], **given: Any) -> Done:
    return await HttpHandler().run(Assignment(CTX, config, given))


def said(status: int, body: bytes = b"", *headers: str) -> bytes:
    head = "\r\n".join((f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers, "", ""))
    return head.encode() + body


def code(done: Done) -> str:
    assert isinstance(done.outcome, Failed)
    return done.outcome.error.code


async def test_the_input_is_posted_as_json_with_the_names_of_the_run() -> None:
    async with target(said(201, b"made", "content-type: text/plain")) as (url, came):
        done = await run({"url": url, "headers": {"X-Mine": "yes"}}, full=True)
    kept = {"status": 201, "content_type": "text/plain", "body": "made", "truncated": False}
    assert done == Done(Succeeded(), kept)
    head, _, body = came[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook HTTP/1.1")
    assert json.loads(body) == {"full": True}
    for line in (b"idempotency-key: run-1", b"foliot-attempt: 2", b"foliot-fence: 3", b"x-mine: yes"):
        assert line in head.lower()


async def test_method_body_and_success_codes_are_the_jobs_own() -> None:
    async with target(said(404)) as (url, came):
        done = await run({"url": url, "method": "put", "body": "plain", "success": [404]})
        await run({"url": url, "method": "get"}, ignored=1)
    assert isinstance(done.outcome, Succeeded)
    assert came[0].endswith(b"\r\n\r\nplain")
    assert came[1].endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [301, 404, 500])
async def test_other_codes_fail_and_redirects_are_not_followed(status: int) -> None:
    async with target(said(status, b"why", "location: http://127.0.0.1:1/")) as (url, came):
        done = await run({"url": url})
    assert code(done) == "http_status"
    assert (done.output["status"], done.output["body"], len(came)) == (status, "why", 1)


async def test_a_long_answer_is_kept_in_part() -> None:
    async with target(said(200, b"x" * (KEPT + 1))) as (url, _):
        done = await run({"url": url})
    assert (len(done.output["body"]), done.output["truncated"]) == (KEPT, True)


async def test_a_target_that_is_not_there_or_hangs_up_is_a_failure_to_retry() -> None:
    async with target(b"nonsense\r\n\r\n") as (url, _):
        assert code(await run({"url": url})) == "http_failed"
    done = await run({"url": url})
    assert code(done) == "http_failed"
    assert isinstance(done.outcome, Failed)
    assert not done.outcome.permanent


async def test_a_target_that_never_answers_is_ended_with_the_attempt() -> None:
    async with target(b"") as (url, came):
        task = asyncio.create_task(run({"url": url}))
        await until(lambda: came)
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "ftp://x/", "//x/", "http://", "http://x:port/"])
async def test_only_http_addresses_are_used(url: str) -> None:
    done = await run({"url": url})
    assert code(done) == "url_invalid"
    assert isinstance(done.outcome, Failed)
    assert done.outcome.permanent


async def test_what_failed_is_a_line_without_what_may_be_secret_in_the_address() -> None:
    lines: list[tuple[str, str]] = []
    ctx = replace(CTX, write=lambda stream, text: lines.append((stream, text)))
    async with target(said(500)) as (url, _):
        secret = url.replace("http://", "http://ada:hunter2@") + "?token=hunter2"
        await HttpHandler().run(Assignment(ctx, {"url": secret}, {}))
    assert lines == [("system", f"POST {url}: The target answered 500.")]
    async with target(said(200)) as (url, _):
        await HttpHandler().run(Assignment(ctx, {"url": url}, {}))
    assert len(lines) == 1
