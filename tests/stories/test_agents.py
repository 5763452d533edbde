"""An AI agent and its reminders: the protocol's own client drives the server over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from foliot import Client as FoliotClient
from foliot.clock import SystemClock
from foliot.domain.addresses import networks
from foliot.egress.client import Egress
from foliot.handlers.agent import AgentHandler
from foliot.handlers.registry import Assignment
from foliot.sdk.context import FakeContext
from tests.worker.test_agent import call_of, completion, peer

FOLIOT = str(Path(sys.executable).with_name("foliot"))


def add_agent(client: FoliotClient, name: str) -> str:
    member = client.members.create(name, kind="agent", role="editor")
    return client.keys.create(name, principal=member.id).secret


@asynccontextmanager
async def over_http(url: str, key: str) -> AsyncIterator[Client]:
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(url: str, key: str, *words: str) -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=FOLIOT, args=["mcp", *words], env={"FOLIOT_API_URL": url, "FOLIOT_API_KEY": key}
    )
    async with Client(command) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.structured_content
    return str(getattr(answer.content[0], "text", ""))


async def live_through_a_reminder(client: Client, stranger: Client) -> None:
    seen = await call(client, "remind_me", text="Water the plants.", delay="1 second", dry_run=True)
    assert seen["dry_run"]
    assert (await call(client, "list_jobs"))["jobs"] == []
    misspelt = await refused(client, "remind_me", text="Water the plants.", delay="1 second", dryRun=True)
    assert "dryRun" in misspelt, "an argument that is not known is never passed over"
    assert (await call(client, "list_jobs"))["jobs"] == []

    assert "time_zone" in await refused(client, "remind_me", text="Call.", at="tomorrow at 9am")
    assert "past" in await refused(client, "remind_me", text="Late.", at="2020-01-01 09:00", time_zone="UTC")

    made = await call(client, "remind_me", text="Water the plants.", delay="1 second", key="plants")
    again = await call(client, "remind_me", text="Water the plants.", delay="1 second", key="plants")
    job = made["job"]["id"]
    assert again["job"]["id"] == job
    assert made["undo"] == {"tool": "delete_job", "arguments": {"job": job}}

    # It comes due.
    letters = await call(client, "read_messages", wait=20)
    assert [each["untrusted_text"] for each in letters["messages"]] == ["Water the plants."]
    record = (await call(client, "list_runs", job=job))["runs"][0]
    run = await call(client, "get_run", run=record["id"])
    planned, started = (datetime.fromisoformat(run["run"][field]) for field in ("planned_for", "started_at"))
    assert planned <= started
    assert "ran" in (await call(client, "explain", run=record["id"]))["verdict"]

    # Another agent sees none of it.
    assert (await call(stranger, "list_jobs"))["jobs"] == []
    for tool, arguments in {
        "get_job": {"job": job},
        "delete_job": {"job": job},
        "pause_job": {"job": job, "reason": "mine now"},
        "resume_job": {"job": job},
        "skip_next": {"job": job, "reason": "mine now"},
        "undo_skip": {"job": job},
        "update_job": {
            "job": job,
            "revision": made["job"]["revision"],
            "changes": {"description": "mine now"},
        },
        "revert_job": {"job": job, "to_revision": made["job"]["revision"]},
        "run_now": {"job": job},
        "explain": {"job": job},
        "retry_run": {"run": record["id"]},
        "cancel_run": {"run": record["id"], "reason": "mine now"},
        "get_run": {"run": record["id"]},
        "get_run_logs": {"run": record["id"]},
        "read_messages": {"room": letters["room_id"]},
    }.items():
        assert "not_found" in (said := await refused(stranger, tool, **arguments)) or "no " in said, tool

    # It is deleted in two steps.
    plan = await call(client, "delete_job", job=job)
    assert plan["dry_run"]
    assert "confirm" in await refused(client, "delete_job", job=job, confirm="wrong")
    await call(client, "delete_job", job=job, confirm=plan["confirm"])
    assert (await call(client, "list_jobs"))["jobs"] == []


async def keep_a_job(client: Client, admin: FoliotClient) -> None:
    seen = await call(client, "preview_schedule", when="every weekday at 9am", time_zone="America/Bogota")
    assert seen["sentence"].startswith("Every weekday at 09:00")
    made = await call(
        client, "create_job", name="standup", when="every weekday at 9am", time_zone="America/Bogota",
        type="message", config={"text": "Write the standup note."},
    )  # fmt: skip
    assert len(made["next_times"]) == 3
    job = made["job"]
    changed = await call(
        client, "update_job", job="standup", revision=job["revision"], when="every monday at 8am"
    )
    assert changed["job"]["when"].startswith("Every Monday at 08:00")
    assert changed["job"]["time_zone"] == "America/Bogota"
    assert "revision" in await refused(client, "update_job", job="standup", revision=1, when="every hour")
    reverted = await call(client, changed["undo"]["tool"], **changed["undo"]["arguments"])
    assert reverted["job"]["when"] == job["when"]

    skipped = await call(client, "skip_next", job="standup", reason="A holiday.")
    soon = (SystemClock().now() + timedelta(days=7)).isoformat()
    lines = (await call(client, "whats_next", job="standup", until=soon))["lines"]
    assert lines[0]["fate"] == "skipped", (lines, skipped)
    await call(client, skipped["undo"]["tool"], **skipped["undo"]["arguments"])
    paused = await call(client, "pause_job", job="standup", reason="Vacation.", until="2099-01-01T00:00:00Z")
    assert paused["job"]["status"] == "paused"
    assert (await call(client, "resume_job", job="standup"))["job"]["status"] == "active"

    started = await call(client, "run_now", job="standup", key="once")
    assert (await call(client, "run_now", job="standup", key="once"))["run"]["id"] == started["run"]["id"]
    await asyncio.to_thread(lambda: list(admin.runs.follow_logs(started["run"]["id"])))  # until its end
    run = await call(client, "get_run", run=started["run"]["id"])
    assert run["run"]["status"] == "succeeded"
    assert run["untrusted_output"]["seq"] == 1
    await asyncio.to_thread(admin.runs.report_usage, started["run"]["id"], {"tokens": 12})
    figures = await call(client, "get_statistics", job="standup")
    assert (figures["totals"]["runs"], figures["usage_this_month"]) == (1, {"tokens": "12"})
    assert (await call(client, "get_statistics"))["usage_this_month"] == {"tokens": "12"}


async def let_a_job_use_the_tools(url: str, key: str) -> None:
    """A job of the type agent calls Foliot's own tools with the key of an agent."""
    calls = [call_of("list_jobs"), call_of("explain", '{"job": "standup"}')]
    async with peer(completion(calls=calls), completion("One job.")) as model:
        handler = AgentHandler(Egress(networks(("127.0.0.0/8",))))
        tools = {"url": f"{url}/mcp", "key": key, "allow": ["list_jobs", "explain"]}
        config = {"url": model.url, "model": "small-1", "tools": tools}
        done = await handler.run(Assignment(FakeContext(), config, {}))
        await handler.close()
    assert done.output == {"answer": "One job.", "turns": 2, "finish_reason": "stop"}, done
    jobs, explained = (each["content"] for each in model.asked[1]["messages"] if each["role"] == "tool")
    assert "standup" in jobs
    assert "verdict" in explained


def test_an_agent_lives_through_a_reminder_over_both_transports(
    used_data_dir: Path, start_server: Any
) -> None:
    url = start_server().wait_for_url()
    with FoliotClient(url, (used_data_dir / "admin.key").read_text().strip()) as admin:
        first, second, stranger = (add_agent(admin, name) for name in ("fern", "moss", "stranger"))

        async def story() -> None:
            async with over_http(url, stranger) as other, over_http(url, first) as client:
                await live_through_a_reminder(client, other)
                await keep_a_job(client, admin)
            await let_a_job_use_the_tools(url, first)
            async with over_http(url, stranger) as other, over_stdio(url, second) as client:
                await live_through_a_reminder(client, other)
            async with over_stdio(url, second, "--read-only") as client:
                tools = (await client.list_tools()).tools
                assert all(each.annotations and each.annotations.read_only_hint for each in tools)

        asyncio.run(story())
        for key in ("", "fol_wrong"):
            answer = httpx.post(
                f"{url}/mcp", headers={"Authorization": f"Bearer {key}"} if key else {}, json={}
            )
            assert answer.status_code == 401
        assert "(/llms/how-to/mcp.md)" in httpx.get(f"{url}/llms.txt").text
        assert httpx.get(f"{url}/llms/how-to/mcp.md").text.startswith("# Tools for an AI agent")
        assert httpx.get(f"{url}/llms/../pyproject.md").status_code == 404
        # A person sees what the agents made, and whose it is.
        made = {job.name: job.created_by for job in admin.jobs.each(status=["archived", "active"])}
        assert {"standup", "Reminder: Water the plants."} <= set(made)
