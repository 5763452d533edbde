"""The command handler: a real program, what it says, and the end of everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.logs import MOST_LINES
from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.command import CommandHandler
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.output_stream import TAIL
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.handlers.supervised_process import ProcessLimits, Program, SupervisedProcess
from foliot.sdk.context import Context
from tests.polling import wait_until
from tests.worker.processes import is_alive

pytestmark = pytest.mark.anyio
CTX = Context("w", "j", "backup", "run-1", 2, 3, "schedule", datetime(2027, 1, 15, tzinfo=UTC))
MIB = 1024 * 1024


class Lines(list[tuple[str, str]]):
    def write(self, stream: str, text: str) -> None:
        self.append((stream, text))


async def run(
    *argv: str, given: dict[str, Any] | None = None, lines: Lines | None = None, **config: Any
) -> HandlerResult:
    handler = CommandHandler(("PATH",), ProcessLimits())
    return await by(handler, *argv, given=given, lines=lines, **config)


async def by(
    handler: CommandHandler,
    *argv: str,
    given: dict[str, Any] | None = None,
    lines: Lines | None = None,
    **config: Any,
) -> HandlerResult:
    ctx = CTX if lines is None else replace(CTX, write=lines.write)
    return await handler.run(Assignment(ctx, {"argv": list(argv), **config}, given or {}))


def error(done: HandlerResult) -> tuple[str, str]:
    assert isinstance(done.outcome, Failed), done
    return done.outcome.error.code, done.outcome.error.message


async def test_a_command_is_started_without_a_shell_and_its_output_reported() -> None:
    done = await run("printf", "%s|", "$HOME", "a b", "*")
    assert isinstance(done.outcome, Succeeded)
    assert done.output == {
        "exit_code": 0,
        "signal": None,
        "stdout_tail": "$HOME|a b|*|",
        "stderr_tail": "",
        "truncated": False,
    }


async def test_the_input_comes_on_stdin_as_json() -> None:
    assert (await run("cat", given={"full": True})).output["stdout_tail"] == '{"full": true}'
    assert (await run("cat", given={"full": True}, stdin="none")).output["stdout_tail"] == ""
    much = {"text": "x" * 200_000}
    assert (await run("wc", "-c", given=much)).output["stdout_tail"].strip() == "200012"
    assert isinstance((await run("true", given=much)).outcome, Succeeded)


async def test_lines_of_both_streams_reach_the_log_as_they_come() -> None:
    lines = Lines()
    script = "echo one; echo two >&2; printf three"
    await run("sh", "-c", script, lines=lines)
    assert [text for stream, text in lines if stream == "stdout"] == ["one", "three"]
    assert [text for stream, text in lines if stream == "stderr"] == ["two"]


async def test_a_line_is_reported_before_the_command_ends(tmp_path: Path) -> None:
    lines = Lines()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    task = asyncio.create_task(run("sh", "-c", f"echo begun; cat {gate}", lines=lines))
    await wait_until(lambda: ("stdout", "begun") in lines)
    await asyncio.to_thread(gate.write_text, "over")
    assert (await task).output["stdout_tail"] == "begun\nover"


async def test_exit_codes_and_signals_are_reported() -> None:
    done = await run("sh", "-c", "echo why >&2; exit 3")
    assert error(done) == ("exit_code", "The command ended by exit code 3.")
    assert (done.output["exit_code"], done.output["stderr_tail"]) == (3, "why\n")
    done = await run("sh", "-c", "kill -9 $$")
    assert error(done) == ("killed_by_signal", "The command ended by signal SIGKILL.")
    assert (done.output["exit_code"], done.output["signal"]) == (None, "SIGKILL")
    assert isinstance((await run("sh", "-c", "exit 3", success=[3])).outcome, Succeeded)


async def test_a_program_that_is_not_there_says_so(tmp_path: Path) -> None:
    code, message = error(await run("no-such-program"))
    assert (code, "No such file or directory: no-such-program" in message) == ("command_not_started", True)
    code, message = error(await run("true", cwd=str(tmp_path / "gone")))
    assert (code, str(tmp_path / "gone") in message) == ("command_not_started", True)


async def test_it_starts_in_the_folder_it_names(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    assert (await run("ls", cwd=str(tmp_path))).output["stdout_tail"] == "here\n"


async def test_it_sees_what_is_let_through_and_given_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET", "hidden")
    monkeypatch.setenv("REGION", "eu")
    handler = CommandHandler(("PATH", "REGION", "NOT_SET"), ProcessLimits())
    seen = (await by(handler, "env", env={"MODE": "full"})).output["stdout_tail"].split("\n")
    named = dict(line.split("=", 1) for line in seen if line)
    assert named.pop("PATH") == os.environ["PATH"]
    assert named == {
        "REGION": "eu",
        "MODE": "full",
        "FOLIOT_RUN_ID": "run-1",
        "FOLIOT_ATTEMPT": "2",
        "FOLIOT_FENCE": "3",
        "FOLIOT_PLANNED_FOR": "2027-01-15T00:00:00+00:00",
        "FOLIOT_JOB": "backup",
        "FOLIOT_TRIGGER": "schedule",
    }


async def test_endless_output_is_bounded_and_said_to_be() -> None:
    lines = Lines()
    done = await run("sh", "-c", "yes begin | head -n 300000; echo last", lines=lines)
    assert isinstance(done.outcome, Succeeded)
    assert len(lines) == MOST_LINES + 1
    assert done.output["truncated"] is True
    assert len(done.output["stdout_tail"]) == TAIL
    assert done.output["stdout_tail"].endswith("begin\nlast\n")


async def test_one_endless_line_does_not_grow_without_bound() -> None:
    lines = Lines()
    await run("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x", lines=lines)
    assert len(lines) > 1
    assert sum(len(text) for _, text in lines) == 1_000_000


async def test_what_is_no_text_is_kept_as_well_as_it_can_be() -> None:
    done = await run("printf", "a\\377\\000b")
    assert done.output["stdout_tail"] == "a\ufffd\ufffdb"


FAMILY = """
import os, signal, subprocess, sys
me = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"]
pids = [os.getpid(), subprocess.Popen(me).pid, subprocess.Popen(me, start_new_session=True).pid]
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    lost = subprocess.Popen(me, env={}, start_new_session=True).pid
    os.write(writer, str(lost).encode())
    os._exit(0)
os.wait()
pids.append(int(os.read(reader, 20)))
open(sys.argv[1] + ".new", "w").write(" ".join(map(str, pids)))
os.rename(sys.argv[1] + ".new", sys.argv[1])
if sys.argv[2] == "stays":
    signal.pause()
"""


async def family(tmp_path: Path, then: str) -> tuple[asyncio.Task[HandlerResult], list[int]]:
    """A program with a child, one in a session of its own, and one whose parent has gone and that carries no mark of ours."""
    said = tmp_path / "pids"
    task = asyncio.create_task(run(sys.executable, "-c", FAMILY, str(said), then))
    await wait_until(said.exists)
    return task, [int(pid) for pid in said.read_text().split()]


async def test_a_cancelled_command_ends_with_everything_it_started(tmp_path: Path) -> None:
    task, pids = await family(tmp_path, "stays")
    assert len(pids) == 4
    assert all(is_alive(pid) for pid in pids)
    task.cancel()
    await asyncio.wait([task])
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_program_ends_though_nobody_reads_what_it_still_says(at_once: bool) -> None:
    kept = await SupervisedProcess.start(Program(["yes"]), stderr=asyncio.subprocess.PIPE)
    said: Any = kept.process.stdout
    await wait_until(
        lambda: said._paused
    )  # more than the reader takes is there, and its end will never be seen
    async with asyncio.timeout(20):
        await kept.stop(at_once=at_once)
    assert not kept.is_alive


async def test_nothing_outlives_a_command_that_has_ended(tmp_path: Path) -> None:
    task, pids = await family(tmp_path, "goes")
    assert isinstance((await task).outcome, Succeeded)
    assert not any(is_alive(pid) for pid in pids)


async def test_a_command_is_asked_to_end_before_it_is_made_to(tmp_path: Path) -> None:
    begun, reported = tmp_path / "begun", tmp_path / "reported"
    script = f"trap 'echo bye > {reported}; exit 0' TERM; : > {begun}; while :; do sleep 0.05; done"
    task = asyncio.create_task(run("sh", "-c", script))
    await wait_until(begun.exists)
    task.cancel()
    await asyncio.wait([task])
    assert reported.read_text() == "bye\n"


async def test_when_the_keeper_is_killed_the_program_dies_with_it(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    task = asyncio.create_task(
        run("sh", "-c", f"echo $$ $PPID > {said}.new; mv {said}.new {said}; exec sleep 100")
    )
    await wait_until(said.exists)
    pid, supervisor = map(int, said.read_text().split())
    os.kill(supervisor, signal.SIGKILL)
    done = await task
    assert error(done)[0] == "killed_by_signal"
    await wait_until(lambda: not is_alive(pid))


async def test_one_that_starts_too_many_processes_is_ended_with_all_of_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"for n in $(seq 40); do sleep 100 & echo $! >> {pids}; done; wait"
    done = await by(CommandHandler(("PATH",), ProcessLimits(processes=20)), "sh", "-c", script)
    assert error(done)[0] == "too_many_processes"
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


async def test_one_that_takes_too_much_memory_fails_by_itself() -> None:
    handler = CommandHandler(("PATH",), ProcessLimits(memory=256 * MIB))
    done = await by(handler, sys.executable, "-c", "x = bytearray(1 << 30)")
    assert error(done)[0] == "exit_code"
    assert "MemoryError" in done.output["stderr_tail"]


async def test_a_worker_offers_commands_only_where_it_is_allowed() -> None:
    assert CommandHandler.from_deps(HandlerDeps()) is None
    assert CommandHandler.from_deps(HandlerDeps(allow_commands=True)) is not None
