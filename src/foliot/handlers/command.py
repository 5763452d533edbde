"""`command`: start a program on the worker's machine; success is exit code 0, or one of `success`.

`{"argv": ["backup", "--full"], "env": {}, "cwd", "stdin": "input"|"none", "success": [0]}`. There is no shell: what stands in
`argv` is what the program gets. It sees the variables that the worker's settings let through, those of `env`, and the run's own.
Off unless the worker allows it: whoever may write jobs of this type may run anything that the worker's user may, or the user that a
worker with the rights of root is told to run them as.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from asyncio import StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from foliot.handlers.config_fields import CommandConfig
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.output_stream import OutputStream
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.handlers.sandbox import Sandbox
from foliot.handlers.supervised_process import ProcessExit, ProcessLimits, Program, SupervisedProcess
from foliot.sdk.context import Context

log = logging.getLogger(__name__)

NO_BOUNDS, NO_CONFINES = ProcessLimits(), Sandbox()
TAIL = 8 * 1024  # bytes of each stream in the output
PIECE = 64 * 1024  # bytes read at once
LONGEST_LINE = 16 * 1024  # bytes; the logbook cuts sooner, by characters
FLOOD_PAUSE = (
    0.01  # seconds after each piece of what nobody keeps: at most 6 MiB a second are read and dropped
)


class CommandHandler:
    description: ClassVar = "Start a program on the worker's machine; exit code 0 is success."
    config_shape: ClassVar = CommandConfig

    def __init__(
        self,
        passed_on: tuple[str, ...] = (),
        bounds: ProcessLimits = NO_BOUNDS,
        confines: Sandbox = NO_CONFINES,
    ) -> None:
        self._bounds = bounds
        self._confines = confines
        user = confines.user
        its_own = {} if user is None else user.variables
        self._passed_on = (*passed_on, *its_own)
        self._ours = {**os.environ, **its_own}
        self._cwd = None if user is None else user.home

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> CommandHandler | None:
        if not deps.allow_commands:
            return None
        if os.geteuid() == 0 and deps.sandbox.user is None:
            log.warning(
                "commands.as_root", extra={"hint": "Set FOLIOT_COMMAND_USER to run them as somebody else."}
            )
        return cls(deps.command_env, deps.process_limits, deps.sandbox)

    async def run(self, assignment: Assignment) -> HandlerResult:
        config, ctx = assignment.config, assignment.ctx
        env = environment(config.get("env") or {}, self._passed_on, self._ours, ctx)
        program = Program(config["argv"], config.get("cwd") or self._cwd, env, self._bounds, self._confines)
        given = b"" if config.get("stdin") == "none" else json.dumps(dict(assignment.input)).encode()
        kept = await SupervisedProcess.start(program, stderr=PIPE)
        try:
            out, err = OutputStream("stdout", ctx.write), OutputStream("stderr", ctx.write)
            process = kept.process
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.gather(
                _feed(process.stdin, given), out.listen(process.stdout), err.listen(process.stderr)
            )
            ended = await kept.ended()
        except BaseException:
            await kept.end(group=True)
            raise
        return _done(ended, out, err, config.get("success") or [0])

    async def close(self) -> None:
        pass


def environment(
    given: Mapping[str, str], passed_on: tuple[str, ...], ours: Mapping[str, str], ctx: Context
) -> dict[str, str]:
    """The run's own fields come last: nobody can pose as another run."""
    return {
        **{name: ours[name] for name in passed_on if name in ours},
        **{name: str(value) for name, value in given.items()},
        "FOLIOT_RUN_ID": ctx.run_id,
        "FOLIOT_ATTEMPT": str(ctx.attempt),
        "FOLIOT_FENCE": str(ctx.fence),
        "FOLIOT_PLANNED_FOR": ctx.planned_for.isoformat(),
        "FOLIOT_JOB": ctx.job.replace("\0", ""),
        "FOLIOT_TRIGGER": ctx.trigger,
    }


async def _feed(stdin: StreamWriter, given: bytes) -> None:
    with suppress(ConnectionError):  # it need not read what it is given
        stdin.write(given)
        await stdin.drain()
    stdin.close()


def _done(ended: ProcessExit, out: OutputStream, err: OutputStream, success: list[int]) -> HandlerResult:
    if ended.exit_code is None and ended.signal is None:
        return failed("command_not_started", f"The command could not be started: {ended.why}.")
    output: dict[str, Any] = {
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "stdout_tail": out.tail,
        "stderr_tail": err.tail,
        "truncated": not (out.is_whole and err.is_whole),
    }
    if ended.is_crowded:
        return failed("too_many_processes", "It was ended: it had started too many processes.", output)
    if ended.exit_code in success:
        return succeeded(output)
    code = "exit_code" if ended.signal is None else "killed_by_signal"
    return failed(code, f"The command ended by {ended.how}.", output)
