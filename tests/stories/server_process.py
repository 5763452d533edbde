"""`foliot serve` as a process: its output, its readiness and its end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.fork_server import ForkedProcess, environ_without_foliot, start_foliot, start_installed

Process = subprocess.Popen[str] | ForkedProcess
START_WITHIN = 60.0
STOP_WITHIN = 15.0


class LoggedProcess:
    """A process whose output is read line by line while it runs."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as spoken:
            for line in spoken:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first line that matches; fail with the whole output if none comes."""
        deadline = time.monotonic() + START_WITHIN
        with self._changed:
            while True:
                for line in self.lines:
                    if found := re.search(pattern, line):
                        return found
                left = deadline - time.monotonic()
                if left <= 0 or not self._reader.is_alive():
                    raise AssertionError(f"no line matches {pattern!r} in:\n{self.output}")
                self._changed.wait(min(left, 0.5))

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def stop(self, by: signal.Signals = signal.SIGTERM) -> float:
        """Stop the process and return the seconds until its end."""
        began = time.monotonic()
        self.process.send_signal(by)
        self.process.wait(STOP_WITHIN + 5)
        took = time.monotonic() - began
        self._reader.join(STOP_WITHIN)
        return took

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(STOP_WITHIN)


class ServerProcess(LoggedProcess):
    """A `foliot serve`, or another command that lasts, in a forked process."""

    def __init__(self, data_dir: Path, *words: str, **environ: str) -> None:
        env = environ_without_foliot() | {"FOLIOT_PORT": "0"} | environ
        command = words or ("serve", "--data-dir", data_dir)
        super().__init__(self._start(*command, cwd=data_dir.parent, env=env))

    @staticmethod
    def _start(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> Process:
        return start_foliot(*command, cwd=cwd, env=env)

    def wait_for_url(self) -> str:
        return self.wait_for(r"serving at (http://127\.0\.0\.1:\d+)$")[1]


class InstalledServerProcess(ServerProcess):
    """The same by the installed program."""

    @staticmethod
    def _start(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> Process:
        return start_installed(*command, cwd=cwd, env=env)


def get_json(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


def wait_until_readiness_is(wanted: int, url: str) -> dict[str, Any]:
    deadline, pause = time.monotonic() + START_WITHIN, threading.Event()
    while (answer := get_json(f"{url}/readyz"))[0] != wanted:
        assert time.monotonic() < deadline, answer
        pause.wait(0.05)
    return answer[1]


def wait_until_warnings_are(right: Callable[[list[str]], bool], url: str) -> None:
    wait_until(lambda: right(get_json(f"{url}/readyz")[1]["warnings"]), "the right warnings")


def wait_until(holds: Callable[[], object], what: str, within: float = START_WITHIN) -> None:
    deadline, pause = time.monotonic() + within, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"waited {within:.0f} s for {what}"
        pause.wait(0.02)
