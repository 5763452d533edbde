"""Functions that the jobs of these tests call."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from foliot import Cancel, Context, Fail, Foliot, Retry, Skip, TimeOut
from foliot.clock import pause


def add(given: dict[str, int]) -> int:
    return given["a"] + given["b"]


def nothing() -> None:
    print("said to nobody in particular")


def reported(given: dict[str, Any], ctx: Context) -> list[Any]:
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


app = Foliot("tests")


@app.job
def by_name(ctx: Context, a: int, *, b: int = 2) -> list[Any]:
    ctx.progress(1, 2)
    return [a, b, ctx.run_id]


@app.job
async def by_name_soon(a: int, context: Context) -> list[Any]:
    await asyncio.sleep(0)
    return [a, context.attempt]


@app.job
def asks(how: str) -> None:
    raise ENDS[how]


@app.job
async def asks_soon(how: str) -> None:
    raise ENDS[how]


ENDS: dict[str, Exception] = {
    "retry": Retry("later", after="5m"),
    "retry by policy": Retry("some time"),
    "skip": Skip("nothing to do"),
    "fail": Fail("no use"),
    "fail once": Fail("try again", permanent=False, code="bank_closed"),
    "cancelled": Cancel("the customer left"),
    "timed out": TimeOut("the bank did not answer"),
}


async def notices(given: dict[str, str], ctx: Context) -> None:
    try:
        _write(given["began"])
        await asyncio.Event().wait()
    finally:
        _write(given["reported"], str(ctx.cancelled))


def notices_manually(given: dict[str, str], ctx: Context) -> None:
    try:
        _write(given["began"])
        signal.pause()
    finally:
        _write(given["reported"], str(ctx.cancelled))


def _write(path: str, text: str = "") -> None:
    Path(path).write_text(text)


def keeps(given: dict[str, str], ctx: Context) -> str:
    ctx.artifact("report.csv", "a,b\n", media_type="text/csv")
    ctx.artifact("raw", b"\x00" * 300_000)
    ctx.artifact("copy", path=given["path"])
    ctx.progress(1, 4, note="a quarter")
    return "kept"


async def keeps_soon(given: dict[str, str], ctx: Context) -> str:
    return await asyncio.to_thread(keeps, given, ctx)


def spends(given: dict[str, Any], ctx: Context) -> None:
    ctx.report_usage(tokens=1200, usd=0.1)
    ctx.report_usage(given or {"usd": "0.000000002"})


async def spends_soon(given: dict[str, Any], ctx: Context) -> None:
    spends(given, ctx)


def keeps_too_much(ctx: Context) -> None:
    ctx.artifact("large", b"x" * 101)


def with_secret(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.log(f"using {ctx.secrets['token']}")
    return {"length": len(ctx.secrets["token"]), "shown": repr(ctx)}


async def with_secret_on_the_loop(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return with_secret(given, ctx)


def prints(given: dict[str, Any]) -> str:
    print("one", given.get("a"))
    print("two, to the other", file=sys.stderr)
    subprocess.run(["echo", "three, by a child"], check=True)
    sys.stdout.write("four, without an end")
    return "printed"


def prints_and_waits(given: dict[str, str]) -> None:
    print("begun")
    while not Path(given["gate"]).exists():
        pause(0.01)


def prints_for_ever() -> None:
    while True:
        print("more and more")


def prints_and_dies() -> None:
    print("last words")
    os.kill(os.getpid(), signal.SIGKILL)


def leaves_a_thread(given: dict[str, str], ctx: Context) -> int:
    """Returns, while a thread goes on to log and print until a file is there."""

    def go_on() -> None:
        while not Path(given["until"]).exists():
            ctx.log("late secret of", ctx.workspace_id)
            print("late print of", ctx.workspace_id, flush=True)
            pause(0.001)

    threading.Thread(target=go_on, daemon=True).start()
    return os.getpid()


def leaves_a_process(ctx: Context) -> int:
    subprocess.Popen(["sh", "-c", "while :; do echo late; sleep 0.01; done"])
    return os.getpid()


def leaves_an_orphan(ctx: Context) -> int:
    subprocess.run(["sh", "-c", "(while :; do echo late; sleep 0.01; done) &"], check=True)
    return os.getpid()


def last_words(given: dict[str, str], ctx: Context) -> None:
    try:
        _write(given["began"])
        signal.pause()
    finally:
        ctx.log("cleaned up")
        print("and printed")


def fails_deep() -> None:
    secret_token = "s3cret-value"
    raise LookupError(f"no {secret_token}")


async def fails_deep_soon() -> None:
    fails_deep()


def tells_all(ctx: Context) -> list[Any]:
    return [ctx.workspace, ctx.triggered_by, ctx.deadline and ctx.deadline.isoformat()]


def out_of_memory() -> None:
    raise MemoryError


async def chatters(given: dict[str, str]) -> None:
    """Prints from itself, a task and a thread, with a rest that has no newline."""
    print("hello", given["name"])
    await asyncio.sleep(0)
    await asyncio.gather(_murmur(given["name"]), asyncio.to_thread(print, "thread", given["name"]))
    print("error", given["name"], file=sys.stderr)
    print("rest", given["name"], end="")


async def _murmur(name: str) -> None:
    print("task", name)
