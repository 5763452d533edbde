"""`foliot` commands as processes that need not import everything again: each is forked from one that has.

Importing is most of what a command costs: half a second of CPU for `foliot jobs list`, two and a half for `foliot serve`.
Tests of the imports themselves, and of `foliot` as it is installed, run the installed program: see tests/cli/test_commands.py.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

import typer.main

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    "foliot.cli.main",
    "foliot.sdk.synchronous.client",
    "foliot.wiring.host",
    "foliot.wiring.node",
    # Imported on first use by the client and the command line: half of what a short command costs.
    "encodings.idna",
    "foliot.sdk.synchronous.jobs",
    "foliot.sdk.synchronous.runs",
    "httpcore2",
    "typer._adapters",
)
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect("{address}")
    request = {{"args": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}
    socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], (0, 1, 2))
    pid, code = connection.makefile()
sys.exit(int(code))
"""
FOLIOT = Path(sys.executable).with_name("foliot")


def environ_without_foliot() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}


def run_foliot(
    *args: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 60.0, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` with `capture_output` does."""
    with contextlib.ExitStack() as files:
        into, out, err = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        into.write(stdin)
        into.seek(0)
        known = environ_without_foliot() if env is None else env
        process = _server().start(args, cwd, known, (into.fileno(), out.fileno(), err.fileno()))
        try:
            process.wait(timeout)
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(args, process.wait(), out.read(), err.read())


def start_foliot(*args: str | Path, cwd: Path, env: Mapping[str, str]) -> ForkedProcess:
    """Start a command that lasts; its `stdout` has what it writes on both streams."""
    reader, writer = os.pipe()
    try:
        with Path(os.devnull).open() as nothing:
            process = _server().start(args, cwd, env, (nothing.fileno(), writer, writer))
    finally:
        os.close(writer)
    process.stdout = os.fdopen(reader)
    return process


def write_program(folder: Path) -> None:
    """Write a program `foliot` that passes its arguments, folder, environment and streams to the fork server."""
    program = folder / "foliot"
    program.write_text(PROGRAM.format(python=sys.executable, address=_server().address))
    program.chmod(0o755)


def start_installed(*args: str | Path, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start the installed program, which imports all it needs."""
    return subprocess.Popen(
        (FOLIOT, *args), cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


class ForkedProcess:
    """The part of `subprocess.Popen` that tests use, for a process whose parent is the fork server."""

    def __init__(self, args: tuple[str | Path, ...], connection: socket.socket) -> None:
        self.args = args
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self._connection = connection
        self._answers = connection.makefile()
        self.pid = int(self._answers.readline())

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([str(word) for word in self.args], timeout or 0.0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Server:
    """The fork server as the tests see it. It ends with the process that started it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="foliot-test-")
        self.address = str(Path(self._folder.name, "fork-server"))
        command = (sys.executable, "-m", "tests.fork_server", self.address)
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the fork server did not start"

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def start(
        self, args: tuple[str | Path, ...], cwd: Path, env: Mapping[str, str], files: tuple[int, int, int]
    ) -> ForkedProcess:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        request = {"args": [str(word) for word in args], "cwd": str(cwd), "env": dict(env)}
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], files)
        return ForkedProcess(args, connection)


@functools.cache
def _server() -> _Server:
    return _Server()


def end_server() -> None:
    """End the fork server, if one was started."""
    if _server.cache_info().currsize:
        _server().end()
        _server.cache_clear()


def main(address: str) -> None:
    _import_foliot()
    children: dict[int, socket.socket] = {}
    wakeup, wakeup_end = socket.socketpair()
    wakeup.setblocking(False)
    wakeup_end.setblocking(False)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_end.fileno(), warn_on_full_buffer=False)
        print("ready", flush=True)
        while True:
            ready = select.select([listener, wakeup, sys.stdin], [], [])[0]
            if sys.stdin in ready:  # it closes with the process that started this one
                return
            if wakeup in ready:
                wakeup.recv(1 << 12)
                _report_ended(children)
            if listener in ready:
                connection, _ = listener.accept()
                request, files = _receive(connection)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (listener, wakeup, wakeup_end, connection, *children.values()):
                        other.close()
                    _run(request, files)
                for number in files:
                    os.close(number)
                connection.sendall(f"{child}\n".encode())
                children[child] = connection


def _import_foliot() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    # Made once for all commands: to make the tree of commands costs more than most of them do.
    typer.main.get_command = functools.cache(typer.main.get_command)
    _load_commands(typer.main.get_command(importlib.import_module("foliot.cli.main").app))
    gc.collect()
    gc.freeze()  # what the children share is not touched by their collections


def _load_commands(command: Any) -> None:
    """Import and build each command of a group, which otherwise happens on first use."""
    for each in getattr(command, "commands", {}).values():
        _load_commands(each)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    text, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    return json.loads(text), files


def _report_ended(children: dict[int, socket.socket]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with children.pop(child) as connection, contextlib.suppress(OSError):
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Become the command: its streams, folder, environment and import path, and an end like that of a program."""
    from foliot.cli.main import main as command

    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        for file in files:
            os.close(file)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[:] = [
            str(FOLIOT.parent),
            *paths,
            *(path for path in sys.path if path not in {"", str(ROOT)}),
        ]
        sys.argv = [str(FOLIOT), *request["args"]]
        command()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does at the end of a program
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
