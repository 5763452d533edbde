"""Commands as processes that need not load everything anew: each is forked from one that has.

Loading is most of what a short command costs, and the tests of this room run hundreds. What is asked of the loading itself, and of
`foliot` as it is installed, is asked of the real program: see test_commands.py.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn


class Forge:
    def __init__(self, address: Path) -> None:
        self._address = address

    def run(
        self, *args: str, cwd: Path, env: Mapping[str, str], within: float
    ) -> subprocess.CompletedProcess[str]:
        with (
            tempfile.TemporaryDirectory(prefix="foliot-test-") as folder,
            socket.socket(socket.AF_UNIX) as line,
        ):
            out, err = Path(folder, "out"), Path(folder, "err")
            line.settimeout(within)
            line.connect(str(self._address))
            asked = {"args": args, "cwd": str(cwd), "env": dict(env), "out": str(out), "err": str(err)}
            line.sendall(json.dumps(asked).encode())
            line.shutdown(socket.SHUT_WR)
            code = int(line.makefile().read())
            return subprocess.CompletedProcess(args, code, out.read_text(), err.read_text())


@contextmanager
def forge() -> Iterator[Forge]:
    with tempfile.TemporaryDirectory(prefix="foliot-test-") as folder:
        address = Path(folder, "forge")
        command = (sys.executable, "-m", "tests.cli.forge", str(address))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline(), "the forge did not start"
                yield Forge(address)
            finally:
                process.kill()


def main(address: str) -> None:

    import foliot.cli.main
    import foliot.sdk.synchronous.client  # noqa: F401

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        print("open", flush=True)
        while (
            door in select.select([door, sys.stdin], [], [])[0]
        ):  # stdin speaks when whoever started us is gone
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _serve(line)
            line.close()
            while _reap():
                pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _serve(line: socket.socket) -> NoReturn:
    asked = json.loads(line.makefile().read())
    child = os.fork()
    if child == 0:
        line.close()
        _become(asked)
    _, status = os.waitpid(child, 0)
    line.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(asked: dict[str, object]) -> NoReturn:
    from foliot.cli.main import main as command

    code = 1
    try:
        for number, path in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
            os.dup2(os.open(str(path), flags, 0o600), number)
        os.chdir(str(asked["cwd"]))
        os.environ.clear()
        os.environ.update(asked["env"])  # type: ignore[call-overload]
        time.tzset()
        sys.argv = ["foliot", *asked["args"]]  # type: ignore[misc]
        command()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
