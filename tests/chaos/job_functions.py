"""Functions of the jobs in a chaos run. The witness is a file: one line when an attempt begins, every 50 ms while it works, and when it ends."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from foliot.sdk.context import Context

PAUSE = 0.05  # seconds


def note(given: dict[str, Any], ctx: Context, what: str) -> None:
    fields = (what, ctx.run_id, ctx.attempt, ctx.fence, time.time(), ctx.planned_for.timestamp(), os.getpid())  # noqa: TID251
    descriptor = os.open(given["sink"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (" ".join(map(str, fields)) + "\n").encode())
    os.close(descriptor)


async def brief(given: dict[str, Any], ctx: Context) -> dict[str, int]:
    note(given, ctx, "began")
    await asyncio.sleep(0)
    note(given, ctx, "ended")
    return {"fence": ctx.fence}


def steady(given: dict[str, Any], ctx: Context) -> None:
    """Work in a process of its own for some seconds."""
    note(given, ctx, "began")
    for _ in range(int(given["seconds"] / PAUSE)):
        time.sleep(PAUSE)  # noqa: TID251
        note(given, ctx, "works")
    note(given, ctx, "ended")


async def patient(given: dict[str, Any], ctx: Context) -> None:
    """Work on the worker's loop for some seconds."""
    note(given, ctx, "began")
    for _ in range(int(given["seconds"] / PAUSE)):
        await asyncio.sleep(PAUSE)
        note(given, ctx, "works")
    note(given, ctx, "ended")
