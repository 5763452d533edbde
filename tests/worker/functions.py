"""What the jobs of these tests call."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from foliot.sdk.context import Context


def add(given: dict[str, int]) -> int:
    return given["a"] + given["b"]


def nothing() -> None:
    print("said to nobody in particular")


def told(given: dict[str, Any], ctx: Context) -> list[Any]:
    return [given, ctx.run_id, ctx.fence, ctx.planned_for.year, os.getpid()]


def only_ctx(ctx: Context) -> int:
    return ctx.attempt


def breaks() -> None:
    raise LookupError("no such thing")


def leaves() -> None:
    sys.exit("enough")


def dies() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def not_json() -> object:
    return {1, 2}


def has_children(given: dict[str, str]) -> None:
    """Starts a child, and one in a session of its own, writes down who they are, and waits for ever."""
    sleep = [sys.executable, "-c", "import signal; signal.pause()"]
    pids = [os.getpid(), *(subprocess.Popen(sleep, start_new_session=new).pid for new in (False, True))]
    path = Path(given["pids"])
    path.with_suffix(".new").write_text(" ".join(map(str, pids)))
    path.with_suffix(".new").rename(path)
    signal.pause()


async def soon(given: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return given


THING = "not a function"


def chatty(given: dict[str, Any], ctx: Context) -> str:
    ctx.log("begin", given["a"])
    thread = threading.Thread(target=ctx.log, args=("from a thread\nin two lines",))
    thread.start()
    thread.join()
    return "said"


async def chatty_soon(ctx: Context) -> None:
    ctx.log("on the loop")
    await asyncio.to_thread(ctx.log, "from a thread")


def endless(ctx: Context) -> None:
    for number in range(20_000):
        ctx.log(number)
