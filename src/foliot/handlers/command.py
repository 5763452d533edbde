"""`command`: start a program on the worker's machine; success is exit code 0, or one of `success`.

`{"argv": ["backup", "--full"], "env": {}, "cwd", "stdin": "input"|"none", "success": [0]}`. No shell reads `argv`. The program sees the
variables that the worker's settings let through, those of `env`, and those of the run. Off unless the worker allows it: the author of
such a job may run anything that the worker's user may, or the user that a worker with root's rights runs commands as.

Why: docs/decisions/304-commands-are-off-by-default.md
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
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from foliot.handlers.config_fields import Text
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.output_stream import OutputStream
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.handlers.sandbox import Sandbox
from foliot.handlers.supervised_process import ProcessExit, ProcessLimits, Program, SupervisedProcess
from foliot.sdk.context import Context
from foliot.wire.shape import Shape, described, refusal

log = logging.getLogger(__name__)

NO_LIMITS, NO_SANDBOX = ProcessLimits(), Sandbox()


def _word(value: str) -> str:
    if "\0" in value:
        raise refusal("word", "Text for a program cannot hold a NUL character.")
    return value


def _word_or_secret(value: Any) -> Any:
    return _word(value) if isinstance(value, str) else value


def _variable(name: str) -> str:
    if name in _RESERVED_VARIABLES or name.startswith(("LD_", "FOLIOT_")):
        raise refusal(
            "variable",
            f"{name} cannot be given to a command.",
            "It would change which programs and libraries are found, or the run's own fields. A worker's setting "
            "command_env lets variables of its own through.",
        )
    return name


# Variables that decide which code runs. Those of the dynamic linker all begin with LD_.
_RESERVED_VARIABLES = frozenset({"PATH", "BASH_ENV", "ENV", "IFS", "GCONV_PATH"})
Word = Annotated[str, Field(max_length=65_536), AfterValidator(_word)]
Variable = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^[A-Za-z_][A-Za-z0-9_]{0,199}$",
            "The name of a variable has only letters, digits and _, at most 200, and does not begin with a digit.",
        )
    ),
    AfterValidator(_variable),
]


class CommandConfig(Shape):
    argv: list[Word] = Field(
        min_length=1,
        max_length=1_000,
        description="The program and its arguments, word by word; no shell reads them.",
        examples=[["/usr/local/bin/backup", "--full"]],
    )
    env: dict[Variable, Annotated[Text, AfterValidator(_word_or_secret)]] = Field(
        default={}, max_length=200, description="Variables beside those that the worker lets through."
    )
    cwd: (
        Annotated[
            Word, Field(pattern=described(r"^/", "This must be a path that begins with /."), max_length=4_000)
        ]
        | None
    ) = Field(default=None, description="Folder to start in, from the root on; the worker's where left out.")
    stdin: Literal["input", "none"] = Field(
        default="input", description="What it reads: the run's input as JSON, or nothing."
    )
    success: list[Annotated[int, Field(ge=0, le=255)]] = Field(
        default=[], max_length=256, description="Exit codes that count as success; 0 where left out."
    )


class CommandHandler:
    description: ClassVar = "Start a program on the worker's machine; exit code 0 is success."
    config_shape: ClassVar = CommandConfig

    def __init__(
        self,
        passed_on: tuple[str, ...] = (),
        limits: ProcessLimits = NO_LIMITS,
        sandbox: Sandbox = NO_SANDBOX,
    ) -> None:
        """`passed_on` names the variables of this process that commands get."""
        self._limits = limits
        self._sandbox = sandbox
        user = sandbox.user
        of_user = {} if user is None else user.variables
        self._passed_on = (*passed_on, *of_user)
        self._environ = {**os.environ, **of_user}
        self._cwd = None if user is None else user.home

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> CommandHandler | None:
        if not deps.allow_commands:
            return None
        if os.geteuid() == 0 and deps.sandbox.user is None:
            log.warning(
                "commands.as_root", extra={"hint": "Set FOLIOT_COMMAND_USER to run them as another user."}
            )
        return cls(deps.command_env, deps.process_limits, deps.sandbox)

    async def run(self, assignment: Assignment) -> HandlerResult:
        config, ctx = assignment.config, assignment.ctx
        env = environment(config.get("env") or {}, self._passed_on, self._environ, ctx)
        program = Program(config["argv"], config.get("cwd") or self._cwd, env, self._limits, self._sandbox)
        given = b"" if config.get("stdin") == "none" else json.dumps(dict(assignment.input)).encode()
        supervised = await SupervisedProcess.start(program, stderr=PIPE)
        try:
            out, err = OutputStream("stdout", ctx.write), OutputStream("stderr", ctx.write)
            process = supervised.process
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.gather(
                _write_input(process.stdin, given), out.read(process.stdout), err.read(process.stderr)
            )
            exit_ = await supervised.wait()
        except BaseException:
            await supervised.stop(group=True)
            raise
        return _result(exit_, out, err, config.get("success") or [0])

    async def close(self) -> None:
        pass


def environment(
    given: Mapping[str, str], passed_on: tuple[str, ...], environ: Mapping[str, str], ctx: Context
) -> dict[str, str]:
    """Return the variables of a command. Those of the run come last: no job can pose as another run."""
    return {
        **{name: environ[name] for name in passed_on if name in environ},
        **{name: str(value) for name, value in given.items()},
        "FOLIOT_RUN_ID": ctx.run_id,
        "FOLIOT_ATTEMPT": str(ctx.attempt),
        "FOLIOT_FENCE": str(ctx.fence),
        "FOLIOT_PLANNED_FOR": ctx.planned_for.isoformat(),
        "FOLIOT_JOB": ctx.job.replace("\0", ""),
        "FOLIOT_TRIGGER": ctx.trigger,
    }


async def _write_input(stdin: StreamWriter, given: bytes) -> None:
    with suppress(ConnectionError):  # it need not read its input
        stdin.write(given)
        await stdin.drain()
    stdin.close()


def _result(exit_: ProcessExit, out: OutputStream, err: OutputStream, success: list[int]) -> HandlerResult:
    if exit_.exit_code is None and exit_.signal is None:
        return failed("command_not_started", f"The command could not be started: {exit_.reason}.")
    output: dict[str, Any] = {
        "exit_code": exit_.exit_code,
        "signal": exit_.signal,
        "stdout_tail": out.tail,
        "stderr_tail": err.tail,
        "truncated": not (out.is_whole and err.is_whole),
    }
    if exit_.is_crowded:
        return failed(
            "too_many_processes", "It was killed, because it had started too many processes.", output
        )
    if exit_.exit_code in success:
        return succeeded(output)
    code = "exit_code" if exit_.signal is None else "killed_by_signal"
    return failed(code, f"The command ended by {exit_.how}.", output)
