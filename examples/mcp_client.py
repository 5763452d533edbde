"""An AI agent sets a reminder through the tools of MCP and reads it when it comes. `./dev serve` must be running.

A person makes the agent and its key with the Python client; the agent sees its own jobs only.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2 as httpx
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from foliot import Client


async def remember(url: str, key: str) -> None:
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        McpClient(streamable_http_client(f"{url}/mcp", http_client=http)) as mcp,
    ):

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = await mcp.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            found: dict[str, Any] = answer.structured_content
            return found

        meaning = await call("preview_schedule", when="every weekday at 9am", time_zone="Europe/Madrid")
        print(meaning["sentence"])
        made = await call("remind_me", text="Water the plants.", delay="2 seconds", key="plants")
        print(made["sentence"])
        for message in (await call("read_messages", wait=20))["messages"]:
            print(f"it came: {message['untrusted_text']}")
        reason = await call("explain", job=made["job"]["id"])
        print(reason["sentence"])


with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    agent = foliot.members.create("planner of the example", kind="agent", role="editor")
    secret = foliot.keys.create("of the planner", principal=agent.id).secret
    asyncio.run(remember(foliot.url, secret))
    foliot.members.delete(agent.id, jobs="archive")
