"""The agent handler against a real peer that plays chat completions and an MCP server, in all the ways that go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from foliot.domain.addresses import networks
from foliot.domain.outcomes import Failed, Succeeded
from foliot.egress.client import Egress
from foliot.handlers.agent import DATA_NOTE, AgentConfig, AgentHandler
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.sdk.context import Context, FakeContext
from foliot.testing.clock import ManualClock

pytestmark = pytest.mark.anyio
NOW = datetime(2027, 1, 15, tzinfo=UTC)
TOOLS = [
    {"name": name, "description": f"does {name}", "inputSchema": {"type": "object", "properties": {}}}
    for name in ("list_jobs", "delete_job")
]


def completion(
    text: str | None = None, calls: list[Any] | None = None, ended: str = "stop"
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text} | ({} if calls is None else {"tool_calls": calls})
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return {"choices": [{"message": message, "finish_reason": ended}], "usage": usage}


def call_of(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass
class Peer:
    """A server of both protocols. `answers` are given in turn, the last one for ever: a status and a body, or a body."""

    answers: list[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)
    called: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    tool_answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda call: {"structuredContent": {"jobs": []}}
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = next(int(line[15:]) for line in head.splitlines() if line.startswith("content-length:"))
        body = json.loads(await reader.readexactly(size))
        self.keys += [line[15:] for line in head.splitlines() if line.startswith("authorization: ")]
        if head.startswith("post /mcp "):
            status, answer, more = 200, self._tool(body), ""
        else:
            self.asked.append(body)
            found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            status, answer = found if isinstance(found, tuple) else (200, found)
            more = "retry-after: 7\r\n" if status == 429 else ""
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-length: {len(raw)}\r\n{more}"
            "content-type: application/json\r\nconnection: close\r\n\r\n".encode()
            + raw
        )
        writer.close()

    def _tool(self, message: dict[str, Any]) -> Any:
        method = message["method"]
        if method == "tools/call":
            self.called.append(message["params"])
        results: dict[str, Any] = {
            "initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {}},
            "tools/list": lambda: {"tools": TOOLS},
            "tools/call": lambda: self.tool_answer(message["params"]),
        }
        return (
            {"jsonrpc": "2.0", "id": message["id"], "result": results[method]()} if "id" in message else b""
        )


@asynccontextmanager
async def peer(*answers: Any, **more: Any) -> AsyncIterator[Peer]:
    made = Peer(list(answers), **more)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


async def run(at: Peer, ctx: Context | None = None, **config: Any) -> HandlerResult:
    given = {"url": f"{at.url}/v1", "model": "small-1", "prompt": "What is late?", **config}
    handler = AgentHandler(Egress(networks(("127.0.0.0/8",))), ManualClock(NOW))
    try:
        return await handler.run(Assignment(ctx or FakeContext(), given, {"n": 1}))
    finally:
        await handler.close()


def tools(at: Peer, *allow: str) -> dict[str, Any]:
    return {"url": f"{at.url}/mcp", "key": "fol_agent", "allow": list(allow)}


def code(done: HandlerResult) -> tuple[str, bool]:
    assert isinstance(done.outcome, Failed)
    return done.outcome.error.code, done.outcome.permanent


async def test_the_answer_is_the_output_and_the_conversation_the_log() -> None:
    ctx = FakeContext(job="review")
    price = {"unit": "usd", "input_per_million": "3", "output_per_million": "15"}
    async with peer(completion("Nothing is late.")) as at:
        done = await run(
            at, ctx, key="sk-1", system="You watch {{job.name}}.", prompt="Look at {{run.input}}.", price=price,
            temperature=0.2, max_tokens=50,
        )  # fmt: skip
    assert done == HandlerResult(
        Succeeded(), {"answer": "Nothing is late.", "turns": 1, "finish_reason": "stop"}
    )
    [asked] = at.asked
    assert asked["messages"] == [
        {"role": "system", "content": f"You watch review.\n\n{DATA_NOTE}"},
        {"role": "user", "content": 'Look at {"n": 1}.'},
    ]
    assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("small-1", 0.2, 50)
    assert "tools" not in asked
    assert at.keys == ["bearer sk-1"]
    assert ctx.lines[-1] == "assistant: Nothing is late."
    assert ctx.used == {
        "tokens": Decimal(120),
        "input_tokens": Decimal(100),
        "output_tokens": Decimal(20),
        "usd": Decimal("0.0006"),
    }


async def test_a_model_calls_the_tools_that_the_job_names_and_no_others() -> None:
    ctx = FakeContext()
    calls = [call_of("list_jobs", '{"q": "late"}'), call_of("delete_job"), call_of("list_jobs", "{broken")]
    async with peer(completion(calls=calls, ended="tool_calls"), completion("None.")) as at:
        done = await run(at, ctx, tools=tools(at, "list_jobs"))
    assert done.output["answer"] == "None."
    assert [each["function"]["name"] for each in at.asked[0]["tools"]] == ["list_jobs"]
    assert at.called == [{"name": "list_jobs", "arguments": {"q": "late"}}]
    results = [each["content"] for each in at.asked[1]["messages"] if each["role"] == "tool"]
    assert results == [
        '{"jobs": []}',
        "Error: there is no tool 'delete_job'.",
        "Error: the arguments are not a JSON object.",
    ]
    assert set(at.keys) == {"bearer fol_agent"}
    assert 'assistant: calls list_jobs {"q": "late"}' in ctx.lines
    assert ctx.used["tokens"] == 240


async def test_a_tool_that_refuses_is_an_answer_for_the_model_and_a_long_one_is_cut() -> None:
    def answer(call: dict[str, Any]) -> dict[str, Any]:
        if call["arguments"]:
            return {"isError": True, "content": [{"type": "text", "text": "not allowed"}]}
        return {"content": [{"type": "text", "text": "x" * 50_000}]}

    calls = [call_of("list_jobs", '{"a": 1}'), call_of("list_jobs")]
    async with peer(completion(calls=calls), completion("Done."), tool_answer=answer) as at:
        done = await run(at, tools=tools(at, "list_jobs"))
    assert isinstance(done.outcome, Succeeded)
    refused, long = [each["content"] for each in at.asked[1]["messages"] if each["role"] == "tool"]
    assert refused == "Error: not allowed"
    assert len(long) < 21_000


async def test_an_endless_loop_of_tool_calls_ends_after_the_turns_of_the_job() -> None:
    async with peer(completion(calls=[call_of("list_jobs")])) as at:
        done = await run(at, tools=tools(at, "list_jobs"), max_turns=3)
    assert (code(done), len(at.asked), len(at.called)) == (("agent_turns", True), 3, 3)


@pytest.mark.parametrize(
    "bounds",
    [
        {"budget": {"tokens": 200}},
        {"budget": {"cost": "0.001"}, "price": {"input_per_million": "3", "output_per_million": "15"}},
    ],
)
async def test_no_turn_begins_once_the_budget_is_used(bounds: dict[str, Any]) -> None:
    ctx = FakeContext()
    async with peer(completion(calls=[call_of("list_jobs")])) as at:
        done = await run(at, ctx, tools=tools(at, "list_jobs"), **bounds)
    assert (code(done), len(at.asked)) == (("agent_budget", True), 2)
    assert ctx.used["tokens"] == 240


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((429, {"error": "slow down"}), ("http_status", False)),
        ((500, b"oops"), ("http_status", False)),
        ((400, {"error": "no such model"}), ("http_status", True)),
        ((401, {"error": "bad key"}), ("http_status", False)),
        (b"<html>", ("agent_answer_invalid", False)),
        (b"[" * 100_000, ("agent_answer_invalid", False)),
        ({"choices": []}, ("agent_answer_invalid", False)),
        ({"choices": [{"message": None}]}, ("agent_answer_invalid", False)),
        ([1, 2], ("agent_answer_invalid", False)),
        (completion(""), ("agent_no_answer", False)),
        (completion("cut", ended="length"), ("agent_cut_off", True)),
        (completion("…", ended="content_filter"), ("agent_cut_off", True)),
    ],
)
async def test_failures_are_retried_or_final_as_those_of_http_are(
    answer: Any, expected: tuple[str, bool]
) -> None:
    async with peer(answer) as at:
        done = await run(at)
    assert code(done) == expected


async def test_a_busy_endpoint_says_when_to_come_back() -> None:
    async with peer((429, {})) as at:
        done = await run(at)
    assert isinstance(done.outcome, Failed)
    assert done.outcome.not_before == timedelta(seconds=7)


async def test_a_hanging_endpoint_a_closed_port_and_a_refused_address_fail() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert code(await run(Peer([], url=url), timeout="50ms")) == ("http_timeout", False)
    assert code(await run(Peer([], url="http://127.0.0.1:1")))[1] is False
    assert code(await run(Peer([], url="http://10.0.0.1"))) == ("address_refused", True)


async def test_tools_that_the_server_does_not_have_are_final() -> None:
    async with peer(completion("x")) as at:
        done = await run(at, tools=tools(at, "list_jobs", "launch_rocket"))
    assert code(done) == ("tool_unknown", True)
    assert at.asked == []


async def test_usage_that_is_no_number_counts_as_none() -> None:
    odd = completion("Yes.") | {"usage": {"prompt_tokens": -5, "completion_tokens": "many"}}
    ctx = FakeContext()
    async with peer(odd) as at:
        done = await run(at, ctx)
    assert (isinstance(done.outcome, Succeeded), ctx.used) == (True, {})


async def test_a_cost_beyond_the_largest_amount_counts_as_the_largest() -> None:
    dear = completion("Yes.") | {"usage": {"prompt_tokens": 10**11, "completion_tokens": 0}}
    ctx = FakeContext()
    async with peer(dear) as at:
        done = await run(at, ctx, price={"input_per_million": "999999999999999"})
    assert isinstance(done.outcome, Succeeded)
    assert (ctx.used["tokens"], ctx.used["usd"]) == (Decimal(10**11), Decimal(10**15 - 1))


async def test_arguments_that_are_nested_too_deeply_are_an_answer_for_the_model() -> None:
    async with peer(completion(calls=[call_of("list_jobs", "[" * 100_000)]), completion("Done.")) as at:
        done = await run(at, tools=tools(at, "list_jobs"))
    assert isinstance(done.outcome, Succeeded)
    assert (at.called, "not a JSON object" in at.asked[1]["messages"][-1]["content"]) == ([], True)


async def test_text_of_the_input_is_not_filled_in_twice() -> None:
    async with peer(completion("Yes.")) as at:
        handler = AgentHandler(Egress(networks(("127.0.0.0/8",))), ManualClock(NOW))
        config = {"url": f"{at.url}/v1?api-version=1", "model": "m"}
        await handler.run(Assignment(replace(CTX), config, {"text": "{{run.id}}"}))
        await handler.close()
    assert at.asked[0]["messages"][1]["content"] == '{"text": "{{run.id}}"}'


CTX = Context("w", "j", "job", "r", 1, 1, "manual", NOW)


def test_the_configuration_is_checked_when_a_job_is_written() -> None:
    good = {"url": "https://api.example.com/v1", "key": {"secret": "k"}, "model": "m"}
    AgentConfig.model_validate(good)
    for wrong in (
        {**good, "key": "sk-plain"},
        {**good, "max_turns": 0},
        {**good, "tools": {"url": "https://f.example/mcp", "allow": []}},
        {**good, "prompt": "{{run.nothing}}"},
        {**good, "budget": {"cost": "-1"}},
        {**good, "budget": {"cost": "1"}},
    ):
        with pytest.raises(ValueError, match="validation"):
            AgentConfig.model_validate(wrong)
