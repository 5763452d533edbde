"""Functions of the jobs in the stories: they log each execution to a file, and some wait at a gate."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from foliot.clock import pause
from foliot.sdk.context import Context


def note(given: dict[str, Any], ctx: Context, what: str = "done") -> None:
    """Write the line to the disk at once: the process may be killed next."""
    descriptor = os.open(given["sink"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{what} {ctx.run_id} {ctx.attempt} {ctx.fence}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


async def quickly(given: dict[str, Any], ctx: Context) -> dict[str, int]:
    await asyncio.sleep(0)
    note(given, ctx)
    return {"fence": ctx.fence}


def gated(given: dict[str, Any], ctx: Context) -> None:
    note(given, ctx, "began")
    while not Path(given["gate"]).exists():
        pause(0.01)
    note(given, ctx, "ended")


async def blocking(given: dict[str, Any], ctx: Context) -> None:
    """Block the event loop, which an async function must not do."""
    gated(given, ctx)


def telling_its_pid(given: dict[str, Any], ctx: Context) -> None:
    ctx.log(str(os.getpid()))
    gated(given, ctx)


def talking(given: dict[str, Any], ctx: Context) -> str:
    ctx.log("before the gate")
    gated(given, ctx)
    ctx.log("behind the gate")
    return "done"


def killed(given: dict[str, Any], ctx: Context) -> None:
    note(given, ctx, "began")
    os.kill(os.getpid(), signal.SIGKILL)


def hungry(given: dict[str, Any], ctx: Context) -> int:
    note(given, ctx, "began")
    return len(bytearray(64 << 30))


def bomb(given: dict[str, Any], ctx: Context) -> None:
    """Each process makes two more, and they wait for ever; seven generations, 127 in all, so that no machine suffers."""
    note(given, ctx, "began")
    for _ in range(6):
        os.fork()
    with suppress(PermissionError):  # the first leads a session already
        os.setsid()
    with Path(given["pids"]).open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    signal.pause()


def flood(ctx: Context) -> None:
    while True:
        ctx.log("more and more")


def keeps(given: dict[str, Any], ctx: Context) -> None:
    ctx.artifact("players.csv", "x" * given["size"])


def third_time_lucky(given: dict[str, Any], ctx: Context) -> int:
    note(given, ctx, "tried")
    ctx.log(f"attempt {ctx.attempt}")
    if ctx.attempt < 3:
        raise RuntimeError("the server did not come up")
    return ctx.attempt
