"""The http handler against a real server: what is sent, what counts as success, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from foliot.domain.addresses import networks
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.signatures import key_of, signature_headers
from foliot.egress.client import KEPT, Egress, parse_retry_after
from foliot.handlers.http import HttpConfig, HttpHandler
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.sdk.context import Context
from foliot.testing.clock import ManualClock
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
NOW = datetime(2021, 2, 25, 15, 2, 10, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
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


def handler() -> HttpHandler:
    return HttpHandler(Egress(networks(("127.0.0.0/8",))), ManualClock(NOW))


async def run(config: dict[str, Any], **given: Any) -> HandlerResult:
    http = handler()
    try:
        return await http.run(Assignment(CTX, config, given))
    finally:
        await http.close()


def said(status: int, body: bytes = b"", *headers: str) -> bytes:
    head = "\r\n".join((f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers, "", ""))
    return head.encode() + body


def code(done: HandlerResult) -> str:
    assert isinstance(done.outcome, Failed)
    return done.outcome.error.code


async def test_the_input_is_posted_as_json_with_the_names_of_the_run() -> None:
    async with target(said(201, b"made", "content-type: text/plain")) as (url, came):
        done = await run({"url": url, "headers": {"X-Mine": "yes"}}, full=True)
    kept = {"status": 201, "reason": "X", "content_type": "text/plain", "body": "made", "truncated": False}
    assert done == HandlerResult(Succeeded(), kept)
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


@asynccontextmanager
async def working(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Gives these answers in turn, the last one for ever; remembers the first lines of the requests."""
    came: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        came.append(head)
        writer.write(answers[min(len(came), len(answers)) - 1])
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", came


async def test_a_target_that_only_accepts_the_work_is_no_success_unless_the_job_says_so() -> None:
    async with target(said(202)) as (url, _):
        done = await run({"url": url})
        assert code(done) == "only_accepted"
        assert isinstance(done.outcome, Failed)
        assert done.outcome.permanent  # the target may be at work
        assert isinstance((await run({"url": url, "success": [202]})).outcome, Succeeded)


@pytest.mark.parametrize(
    ("last", "outcome"),
    [(b'{"job": {"state": "done"}}', None), (b'{"job": {"state": "failed"}}', "work_failed")],
)
async def test_the_location_of_accepted_work_is_asked_until_it_has_ended(
    last: bytes, outcome: str | None
) -> None:
    accepted = said(202, b"", "location: /jobs/7?x=1")
    going, busy = said(200, b'{"job": {"state": "going"}}'), said(503)
    async with working(accepted, said(202), busy, going, said(200, last)) as (url, came):
        when = {"every": "1ms", "field": "job.state"}
        done = await run({"url": url, "headers": {"Authorization": "Bearer x"}, "success_when": when}, n=1)
    assert [each.split(b" HTTP", 1)[0] for each in came] == [b"POST /hook", *[b"GET /jobs/7?x=1"] * 4]
    assert all(b"authorization: Bearer x" in each for each in came)
    assert done.output["body"] == last.decode()
    assert isinstance(done.outcome, Succeeded) if outcome is None else code(done) == outcome


async def test_the_first_other_code_ends_accepted_work_where_no_field_is_named() -> None:
    accepted = said(202, b"", "location: /jobs/7")
    for last, outcome in ((said(200), None), (said(404), "http_status")):
        async with working(accepted, accepted, last) as (url, _):
            done = await run({"url": url, "success_when": {"every": "1ms"}})
        assert isinstance(done.outcome, Succeeded) if outcome is None else code(done) == outcome


@pytest.mark.parametrize("location", ["", "http://127.0.0.1:1/", "//127.0.0.1:1/x", "file:///etc/passwd"])
async def test_a_location_elsewhere_is_not_asked(location: str) -> None:
    async with working(said(202, b"", f"location: {location}")) as (url, came):
        done = await run({"url": url, "success_when": {"every": "1ms"}})
    assert (code(done), len(came)) == ("location_invalid", 1)


@pytest.mark.parametrize("status", [301, 404, 500])
async def test_other_codes_fail_and_redirects_are_not_followed(status: int) -> None:
    async with target(said(status, b"why", "location: http://127.0.0.1:1/")) as (url, came):
        done = await run({"url": url})
    assert code(done) == "http_status"
    assert (done.output["status"], done.output["body"], len(came)) == (status, "why", 1)


@pytest.mark.parametrize(
    ("status", "is_permanent"), [(405, True), (422, True), (404, False), (500, False), (503, False)]
)
async def test_a_code_that_the_same_request_gets_again_is_not_retried(
    status: int, *, is_permanent: bool
) -> None:
    async with target(said(status)) as (url, _):
        done = await run({"url": url})
    assert isinstance(done.outcome, Failed)
    assert done.outcome.permanent is is_permanent


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
        await wait_until(lambda: came)
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
        await handler().run(Assignment(ctx, {"url": f"{url}/s3cret?token=hunter2"}, {}))
    origin = "/".join(url.split("/")[:3])
    assert lines == [("system", f"POST {origin}: The target answered 500 X.")]
    async with target(said(200)) as (url, _):
        await handler().run(Assignment(ctx, {"url": url}, {}))
    assert len(lines) == 1


async def test_facts_of_the_run_are_filled_in_where_the_job_names_them() -> None:
    body = {
        "text": "run {{run.id}} of {{ job.name }}",
        "attempt": "{{run.attempt}}",
        "given": ["{{run.input}}", 1, None],
        "{{run.id}}": "for {{run.planned_for}}: {{run.input}}",
    }
    async with target(said(200)) as (url, came):
        config = {
            "url": f"{url}/{{{{run.id}}}}?job={{{{job.name}}}}",
            "headers": {"X-Job": "{{job.name}}!"},
            "body": body,
        }
        await handler().run(Assignment(replace(CTX, job="a b&c"), config, {"full": True}))
        await run({"url": url, "body": "{{run.input}} and {{run.trigger}} and {{unknown}}"}, n=1)
    head, _, sent = came[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook/run-1?job=a%20b%26c HTTP/1.1")
    assert b"x-job: a b&c!" in head
    assert json.loads(sent) == {
        "text": "run run-1 of a b&c",
        "attempt": 2,
        "given": [{"full": True}, 1, None],
        "{{run.id}}": 'for 2027-01-15T00:00:00+00:00: {"full": true}',
    }
    assert came[1].endswith(b'\r\n\r\n{"n": 1} and schedule and {{unknown}}')


def test_a_signature_is_that_of_standard_webhooks() -> None:
    made = signature_headers([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, b'{"test": 2432232314}')
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert key_of(SECRET) == key_of(SECRET.removeprefix("whsec_"))


async def test_a_signed_request_has_one_signature_for_each_secret_and_cannot_be_configured_otherwise() -> (
    None
):
    async with target(said(200)) as (url, came):
        headers = {"Webhook-Id": "forged", "Webhook-Signature": "v1,forged"}
        await run({"url": url, "sign": [SECRET, SECRET], "headers": headers}, n=1)
    expected = signature_headers([SECRET, SECRET], "run-1", NOW, b'{"n": 1}')
    lines = came[0].decode().split("\r\n")
    assert sorted(line for line in lines if line.startswith("webhook-")) == sorted(
        f"{name}: {value}" for name, value in expected.items()
    )


async def test_a_secret_that_cannot_sign_is_reported_but_not_shown() -> None:
    async with target(said(200)) as (url, came):
        done = await run({"url": url, "sign": "hunter2"})
    assert code(done) == "config_invalid"
    assert "hunter2" not in str(done)
    assert came == []


async def test_the_whole_exchange_has_a_deadline_of_its_own() -> None:
    async with target(b"") as (url, _):
        done = await run({"url": url, "timeout": "50ms"})
    assert code(done) == "http_timeout"
    assert isinstance(done.outcome, Failed)
    assert not done.outcome.permanent


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_target_says_when_to_come_again(status: int) -> None:
    async with target(said(status, b"", "retry-after: 120")) as (url, _):
        done = await run({"url": url})
    assert isinstance(done.outcome, Failed)
    assert done.outcome.not_before == timedelta(minutes=2)
    assert (
        done.outcome.error.message
        == f"The target answered {status} X. It asks for no other request within 2m."
    )


async def test_only_busy_targets_are_heeded() -> None:
    async with target(said(500, b"", "retry-after: 120")) as (url, _):
        done = await run({"url": url})
    assert isinstance(done.outcome, Failed)
    assert done.outcome.not_before is None


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("7", timedelta(seconds=7)),
        ("Thu, 25 Feb 2021 15:03:10 GMT", timedelta(minutes=1)),
        ("Thu, 25 Feb 2021 15:02:10 GMT", None),
        ("0", None),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, wait: timedelta | None) -> None:
    assert parse_retry_after(text, NOW) == wait


@pytest.mark.parametrize(
    "headers",
    [{"Host": "inside"}, {"Transfer-Encoding": "chunked"}, {"X-Mine": "a\r\nX-Other: b"}, {"X-Mine": "a\nb"}],
)
async def test_headers_that_would_make_another_request_are_not_sent(headers: dict[str, str]) -> None:
    async with target(said(200)) as (url, came):
        done = await run({"url": url, "headers": headers})
    assert (code(done), came) == ("config_invalid", [])


async def test_a_secret_with_the_line_break_of_its_file_is_sent_without() -> None:
    async with target(said(200)) as (url, came):
        await run({"url": url, "headers": {"Authorization": "Bearer x\n"}})
    assert b"authorization: Bearer x\r\n" in came[0]


@pytest.mark.parametrize("name", ["Foliot-Run-Id", "foliot-fence", "FOLIOT-ANYTHING"])
async def test_a_job_cannot_set_the_headers_by_which_receivers_know_a_run(name: str) -> None:
    with pytest.raises(ValueError, match="set by Foliot"):
        HttpConfig.model_validate({"url": "https://example.com/", "headers": {name: "x"}})


@pytest.mark.requirement("S3-22")
async def test_amounts_of_the_answer_are_reported_as_usage() -> None:
    body = b'{"usage": {"total_tokens": 1200, "cost": "0.0123", "odd": -1}}'
    seen: list[dict[str, Any]] = []
    lines: list[str] = []
    ctx = replace(CTX, spend=lambda usage: seen.append(dict(usage)), write=lambda _, text: lines.append(text))
    paths = {"tokens": "usage.total_tokens", "usd": "usage.cost", "odd": "usage.odd", "none": "usage.none"}
    http = handler()
    async with target(said(200, body)) as (url, _):
        done = await http.run(Assignment(ctx, {"url": url, "usage": paths}, {}))
    await http.close()
    assert done.outcome == Succeeded()
    assert seen == [{"tokens": 1200}, {"usd": Decimal("0.0123")}]
    assert lines == [
        "The usage at usage.odd was not taken: odd: An amount is at least 0 and less than 1,000,000,000,000,000."
    ]
