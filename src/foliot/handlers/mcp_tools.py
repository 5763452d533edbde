"""A client of an MCP server over streamable HTTP: lists its tools and calls them, through the guarded egress.

Only the tools that the job names exist for the caller. What a tool answers is data of others: it is cut, and never interpreted here.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from foliot import __version__
from foliot.egress.client import HttpAnswer, OutgoingRequest
from foliot.egress.url import HttpTarget
from foliot.handlers.registry import HandlerResult, failed

PROTOCOL = "2025-06-18"
LONGEST_RESULT = 20_000  # characters of one answer
Send = Callable[[OutgoingRequest], Awaitable[HttpAnswer | HandlerResult]]


class ToolServerFailed(Exception):
    """The server of the tools could not be asked; `result` is the end of the attempt."""

    def __init__(self, result: HandlerResult) -> None:
        super().__init__("the server of the tools could not be asked")
        self.result = result


class McpTools:
    def __init__(
        self, send: Send, target: HttpTarget, headers: Mapping[str, str], allow: Sequence[str], workspace: str
    ) -> None:
        self._send = send
        self._target = target
        self._headers = {
            "user-agent": f"foliot/{__version__}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "mcp-protocol-version": PROTOCOL,
            **headers,
        }
        self._allow = frozenset(allow)
        self._workspace = workspace
        self._calls = 0

    async def open(self) -> list[dict[str, Any]]:
        """Greet the server and return the allowed tools, as functions of a chat request. Raise ToolServerFailed."""
        about = {"name": "foliot", "version": __version__}
        await self._ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        await self._ask("notifications/initialized", None)
        listed = await self._ask("tools/list", {})
        tools: list[dict[str, Any]] = [
            {
                "type": "function",
                "function": {
                    "name": each["name"],
                    "description": str(each.get("description", ""))[:1_000],
                    "parameters": each.get("inputSchema") or {"type": "object", "properties": {}},
                },
            }
            for each in listed.get("tools", ())
            if isinstance(each, dict) and each.get("name") in self._allow
        ]
        missing = self._allow - {each["function"]["name"] for each in tools}
        if missing:
            message = f"The server of the tools has no {', '.join(sorted(missing))}."
            raise ToolServerFailed(failed("tool_unknown", message, permanent=True))
        return tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return what the tool answered, or why it did not, as text for the model."""
        if name not in self._allow:
            return f"Error: there is no tool {name[:100]!r}."
        found = await self._ask("tools/call", {"name": name, "arguments": dict(arguments)})
        data = found.get("structuredContent")
        parts = [str(each.get("text", "")) for each in found.get("content") or () if isinstance(each, dict)]
        text = "\n".join(parts) if data is None else json.dumps(data, ensure_ascii=False)
        text = text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + "… (cut)"
        return f"Error: {text}" if found.get("isError") else text

    async def _ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send one message of JSON-RPC; a notification, which has no parameters here, is not answered."""
        self._calls += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message |= {"id": self._calls, "params": params}
        content = json.dumps(message).encode()
        answer = await self._send(
            OutgoingRequest("POST", self._target, tuple(self._headers.items()), content, self._workspace)
        )
        if isinstance(answer, HandlerResult):
            raise ToolServerFailed(answer)
        if session := answer.headers.get("mcp-session-id"):
            self._headers["mcp-session-id"] = session
        if params is None:
            return {}
        found = _message_of(answer)
        if found is None:
            raise ToolServerFailed(
                failed("tools_invalid", f"The server of the tools gave no answer to {method}.")
            )
        if isinstance(error := found.get("error"), dict):
            text = str(error.get("message", "unknown"))[:500]
            if method == "tools/call":
                return {"isError": True, "content": [{"text": text}]}
            raise ToolServerFailed(
                failed("tools_refused", f"The server of the tools refused {method}: {text}")
            )
        result = found.get("result")
        return result if isinstance(result, dict) else {}


def _message_of(answer: HttpAnswer) -> dict[str, Any] | None:
    """Read the answer, which is JSON or the last event of a stream that has an answer."""
    text = answer.body.decode("utf-8", "replace")
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    else:
        texts = [text]
    for each in reversed(texts):
        try:
            found = json.loads(each)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and ("result" in found or "error" in found):
            return found
    return None
