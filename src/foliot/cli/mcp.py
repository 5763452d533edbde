"""`foliot mcp`: tools for an AI agent over standard input and output."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from foliot.domain.errors import Unavailable


def mcp(
    *,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")
    ] = False,
) -> None:
    """Serve the tools of an AI agent (Model Context Protocol) over standard input and output.

    An MCP client starts this command. It uses the server and the key of FOLIOT_API_URL and FOLIOT_API_KEY; give the agent
    a key of its own with `foliot members add NAME --kind agent` and `foliot keys create`. A running server offers the same
    tools at /mcp.
    """
    try:
        from foliot.mcp.server import serve_stdio
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise Unavailable(
            "The tools for agents are not installed.", hint="Install them: pip install 'foliot[mcp]'."
        ) from None
    asyncio.run(serve_stdio(read_only=read_only))
